"""``load_catalog``: the message of every mistake, which changes nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from inference.models import Backend, Deployment, ModelEntry, Price, WeightsRecord
from tests.support.cases.catalog_files import (
    BACKEND,
    FILE,
    FUTURE,
    MODEL,
    SUCCESSOR,
    Load,
    edited,
    superseded,
)

pytestmark = pytest.mark.django_db


MISTAKES = {
    "not TOML": ("[[models]\n", "This is not TOML"),
    "not text": ("\udcff", "This is not TOML"),
    "unknown table": ("[[model]]\n", "model: There is no such key here."),
    "unknown key": (edited("tool_calling", "tools"), "models[0].tools: There is no such key here."),
    "missing key": (edited("context_length = 32768", ""), "models[0].context_length: This key is"),
    "missing pricing key": (
        edited(', currency = "USD"', ""),
        "models[0].pricing.currency: This key is required.",
    ),
    "price as a number": (
        edited('"0.15"', "0.15"),
        'models[0].pricing.input_per_mtok: Expected str, got float, a decimal in quotes such as "0.15".',
    ),
    "price with a mistyped point": (
        edited('"0.15"', '"0_15"'),
        "models[0].pricing.input_per_mtok: '0_15' is not a decimal number such as 0.15.",
    ),
    "price of more digits than any": (
        edited('"0.15"', f'"0.{"1" * 70}"'),
        "models[0].pricing.input_per_mtok: '0.1111",
    ),
    "price of a huge exponent": (
        edited('"0.15"', '"1e99999999"'),
        "models[0].pricing.input_per_mtok: '1e99999999' is not a decimal",
    ),
    "number without a value": (
        BACKEND + "first_byte_seconds = nan\n",
        "backends[0].first_byte_seconds: Give a finite number.",
    ),
    "endless number": (
        BACKEND + "total_seconds = inf\n",
        "backends[0].total_seconds: Give a finite number.",
    ),
    "too deep": (f"x = {'[' * 3000}{']' * 3000}", "This is not TOML"),
    "number of too many digits": (f"x = {'9' * 5000}", "This is not TOML"),
    "negative price": (
        edited('"0.60"', '"-1"'),
        "models[0].pricing.output_per_mtok: A price must be zero or more.",
    ),
    "identifier": (edited('"acme/demo-8b"', '"acme//demo"'), "models[0].id: Use at most 200"),
    "ceiling above context": (
        edited("2048", "99999"),
        "models[0]: default_max_output_tokens must not be above context_length.",
    ),
    "wrong type": (
        edited("32768", '"32768"'),
        "models[0].context_length: Expected int, got str.",
    ),
    "backend address": (
        edited("http://127.0.0.1:9000/v1", "http://169.254.169.254/"),
        "backends[0].base_url: Link-local",
    ),
    "key instead of a variable": (
        edited("SVC_BACKEND_KEY_GPU1", "sk-123"),
        "backends[0].api_key_env: Give the name of a variable",
    ),
    "backend twice": (BACKEND + BACKEND, "backends[1].name: gpu-1 is there twice."),
    "model twice": (FILE + MODEL, "models[1].id: acme/demo-8b is there twice."),
    "backend twice in a model": (
        edited("[{ name", '[{ name = "gpu-1", model = "x" }, { name'),
        "models[0].backends[1].name: gpu-1 is there twice.",
    ),
    "unknown backend": (MODEL, "models[0].backends[0].name: There is no backend gpu-1."),
    "published without backend": (
        edited('[{ name = "gpu-1", model = "demo-8b-awq" }]', "[]"),
        "models[0].backends: No enabled backend serves",
    ),
    "unknown successor": (
        BACKEND + superseded(),
        "models[0].superseded_by: There is no model acme/demo-8b-v2.",
    ),
    "shutdown without successor": (
        FILE + f"shutdown_at = {FUTURE}",
        "models[0].shutdown_at: Name the successor",
    ),
    "shutdown without offset": (
        BACKEND + superseded(shutdown_at=FUTURE[:-1]) + SUCCESSOR,
        "models[0].shutdown_at: Expected datetime with a timezone component, such as 2027",
    ),
    "tokenizers that differ": (
        FILE + MODEL.replace('"acme/demo-8b"', '"acme/b"').replace("o200k", "cl100k"),
        "models[1].tokenizer: acme/demo-8b@2026-11-01 has o200k further up.",
    ),
    "names that differ": (
        FILE + MODEL.replace('"acme/demo-8b"', '"acme/b"').replace("-awq", "-fp8"),
        "models[1].backends[0].model: gpu-1 serves acme/demo-8b@2026-11-01 as demo-8b-awq",
    ),
    "weight that is none": (
        edited('-awq" }', '-awq", weight = 0 }'),
        "models[0].backends[0].weight: A weight is at least 1. Drain the deployment",
    ),
    "weights that differ": (
        FILE
        + MODEL.replace('"acme/demo-8b"', '"acme/b"').replace('-awq" }', '-awq", weight = 5 }'),
        "models[1].backends[0].weight: gpu-1 has 100 for acme/demo-8b@2026-11-01 further up.",
    ),
    "a drain that differs": (
        edited('-awq" }', '-awq", draining = false }')
        + MODEL.replace('"acme/demo-8b"', '"acme/b"').replace(
            '-awq" }', '-awq", draining = true }'
        ),
        "models[1].backends[0].draining: gpu-1 has False for acme/demo-8b@2026-11-01 further up.",
    ),
    "drained only": (
        edited('-awq" }', '-awq", draining = true }'),
        "models[0].backends: No enabled backend serves",
    ),
    "fields that callers set": (
        f"{FILE}extra_fields = {{ temperature = 1.0 }}\n",
        "models[0].extra_fields: Leave temperature out; it comes with each request.",
    ),
    "a default out of range": (
        f"{FILE}defaults = {{ temperature = 3 }}\n",
        "models[0].defaults: 'temperature' must be a number between 0 and 2.",
    ),
    "a limit of nothing": (
        f'{FILE}limits = [{{ organization = "acme" }}]\n',
        "models[0].limits[0]: Give requests_per_minute, tokens_per_minute or both.",
    ),
    "limits of one organization": (
        f'{FILE}limits = [{{ organization = "a", tokens_per_minute = 1 }}, '
        '{ organization = "a", tokens_per_minute = 2 }]\n',
        "models[0].limits[1].organization: a is there twice.",
    ),
    "comments too often": (
        f"{FILE}keep_alive_seconds = 0.5\n",
        "models[0].keep_alive_seconds: Give 1 to 3600 seconds.",
    ),
    "comments after what is no number": (
        f"{FILE}keep_alive_seconds = nan\n",
        "models[0].keep_alive_seconds: Give a finite number.",
    ),
    "voices that are no tables": ("voices = [1]\n", "voices[0]: Expected object, got int."),
}


@pytest.mark.parametrize(("content", "told"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_reported_with_file_table_and_key_and_changes_nothing(
    content: str, told: str, tmp_path: Path
) -> None:
    path = tmp_path / "catalog.toml"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))

    with pytest.raises(CommandError) as refused:
        call_command("load_catalog", path)

    assert str(refused.value).startswith(f"catalog.toml: {told}")
    assert not any(
        table.objects.exists() for table in (Backend, WeightsRecord, ModelEntry, Deployment, Price)
    )


LATER_MISTAKES = {
    "other weights": (
        edited("@2026-11-01", "@2026-12-01"),
        "models[0].weights: acme/demo-8b is pinned to acme/demo-8b@2026-11-01.",
    ),
    "unpublishing": (
        edited("published = true", "published = false"),
        "models[0].published: acme/demo-8b is published, and that cannot be undone.",
    ),
    "another tokenizer": (
        edited("o200k", "cl100k"),
        "models[0].tokenizer: acme/demo-8b@2026-11-01 has o200k",
    ),
}


@pytest.mark.parametrize(("content", "told"), LATER_MISTAKES.values(), ids=LATER_MISTAKES)
def test_a_later_file_cannot_undo_what_was_published(load: Load, content: str, told: str) -> None:
    load(FILE)

    with pytest.raises(CommandError) as refused:
        load(content)

    assert str(refused.value).startswith(f"catalog.toml: {told}")
    assert load(FILE) == ["nothing to change"]


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ('running_usage = "vllm"', "backends[0].continuous_usage"),
        ('keep_alive = "sometimes"', "backends[0].keep_alive"),
        ("disconnect_drain_seconds = -1", "backends[0].disconnect_drain_seconds"),
        ('output_cap_field = "n_predict"', "backends[0].output_cap_field"),
        ('headers = { Authorization = "Bearer x" }', "backends[0].headers: Leave Authorization"),
        ('headers = { Host = "a" }', "backends[0].headers: Leave Host out"),
        ('headers = { transfer-encoding = "chunked" }', "backends[0].headers: Leave"),
        ('headers = { proxy-connection = "close" }', "backends[0].headers: Leave"),
        ('headers = { "a b" = "c" }', "backends[0].headers: 'a b' is not a valid header name"),
        ('headers = { x-a = "1", X-A = "2" }', "backends[0].headers: A header is given twice"),
        ('headers = { x-a = "1\\r\\nx-b: 2" }', "backends[0].headers: Give x-a as"),
        ('headers = { x-a = "" }', "backends[0].headers: Give x-a as"),
        ("headers = { x-a = 1 }", "backends[0].headers"),
        ("extra_fields = { temperature = 1.0 }", "backends[0].extra_fields: Leave temperature"),
        ("extra_fields = { max_tokens = 5 }", "output_cap_field decides"),
        ("extra_fields = { timings_per_token = true }", "running_usage decides"),
        ('extra_fields = { cache_salt = "a" }', "cache_salt out; prefix_cache decides"),
        ('prefix_cache = "mine"', "backends[0].prefix_cache"),
        ("extra_fields = { top_p_min = nan }", "backends[0].extra_fields.top_p_min: Give a finite"),
        ("extra_fields = { since = 2026-01-01 }", "backends[0].extra_fields: Value must"),
        (
            'extra_fields = { a = "\\u0000" }',
            "backends[0].extra_fields.a: It holds a null character",
        ),
        (f'extra_fields = {{ a = "{"x" * 17000}" }}', "backends[0].extra_fields: Give at most"),
    ],
)
def test_invalid_values_of_a_backend_table_are_refused(load: Load, line: str, place: str) -> None:
    with pytest.raises(CommandError, match=re.escape(place)):
        load(f"{BACKEND}{line}\n")

    assert not Backend.objects.exists()
