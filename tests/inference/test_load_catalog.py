"""``load_catalog``: what an operator writes, what changes, and what every mistake is told as."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from io import StringIO
from pathlib import Path
from threading import Barrier

import msgspec
import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from inference import lifecycle
from inference.catalog_file import (
    BackendTable,
    DeploymentTable,
    ModelTable,
    PricingTable,
    read_catalog_file,
)
from inference.catalog_load import load_catalog
from inference.lifecycle import Status, status
from inference.models import Backend, Deployment, ModelEntry, Price, WeightsRecord
from svc_project.lib import clock

pytestmark = pytest.mark.django_db

Load = Callable[[str], list[str]]

BACKEND = """
[[backends]]
name = "gpu-1"
base_url = "http://127.0.0.1:9000/v1"
api_key_env = "SVC_BACKEND_KEY_GPU1"
max_concurrency = 256
continuous_usage = true
"""
MODEL = """
[[models]]
id = "acme/demo-8b"
weights = "acme/demo-8b@2026-11-01"
tokenizer = "o200k"
backends = [{ name = "gpu-1", model = "demo-8b-awq" }]
context_length = 32768
max_request_bytes = 1048576
default_max_output_tokens = 2048
tool_calling = true
structured_output = true
published = true
pricing = { input_per_mtok = "0.15", output_per_mtok = "0.60", currency = "USD" }
"""
SUCCESSOR = MODEL.replace('"acme/demo-8b"', '"acme/demo-8b-v2"').replace("@2026-11-01", "@2")
FILE = BACKEND + MODEL
FUTURE = f"{datetime.now(UTC).year + 1}-01-31T00:00:00Z"


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def load(content: str) -> list[str]:
        path = tmp_path / "catalog.toml"
        path.write_text(content, encoding="utf-8")
        out = StringIO()
        call_command("load_catalog", path, stdout=out)
        return out.getvalue().splitlines()

    return load


def superseded(model: str = MODEL, shutdown_at: str = FUTURE) -> str:
    return f'{model}superseded_by = "acme/demo-8b-v2"\nshutdown_at = {shutdown_at}\n'


def test_a_file_brings_up_a_whole_catalog_and_tells_each_change(load: Load) -> None:
    changes = load(FILE)

    entry = ModelEntry.objects.get()
    assert status(entry, clock.now()) is Status.ACTIVE
    assert (entry.identifier, entry.context_length) == ("acme/demo-8b", 32768)
    assert (entry.max_request_bytes, entry.default_max_output_tokens) == (1048576, 2048)
    assert (entry.tool_calling, entry.structured_output) == (True, True)
    weights = WeightsRecord.objects.get()
    assert (weights.name, weights.source, weights.revision, weights.tokenizer) == (
        "acme/demo-8b@2026-11-01",
        "acme/demo-8b",
        "2026-11-01",
        "o200k",
    )
    backend = Backend.objects.get()
    assert (backend.base_url, backend.api_key_env) == (
        "http://127.0.0.1:9000/v1",
        "SVC_BACKEND_KEY_GPU1",
    )
    assert (backend.max_concurrency, backend.running_usage) == (256, "vllm")
    deployment = Deployment.objects.get()
    assert (deployment.weights, deployment.backend) == (weights, backend)
    assert deployment.model == "demo-8b-awq"
    assert Price.objects.get().output_per_mtok == Decimal("0.60")
    assert changes[:4] == [
        "created backend gpu-1",
        "created weights acme/demo-8b@2026-11-01",
        "created model acme/demo-8b",
        "created deployment acme/demo-8b@2026-11-01 on gpu-1 as demo-8b-awq",
    ]
    assert changes[4].startswith("price of acme/demo-8b from ")
    assert changes[4].endswith(": 0.15 in, 0.60 out, USD per million tokens")
    assert changes[5:] == ["published acme/demo-8b"]


def test_loading_a_file_again_changes_nothing(load: Load) -> None:
    content = BACKEND + superseded() + SUCCESSOR
    load(content)

    assert load(content) == ["nothing to change"]
    assert Price.objects.count() == 2


def test_a_changed_price_is_appended(load: Load) -> None:
    load(FILE)

    changes = load(FILE.replace('"0.15"', '"0.125"'))

    assert [change.split(" from ")[0] for change in changes] == ["price of acme/demo-8b"]
    assert [price.input_per_mtok for price in Price.objects.order_by("effective_from")] == [
        Decimal("0.15"),
        Decimal("0.125"),
    ]


def test_changed_figures_are_told_with_the_old_and_the_new(load: Load) -> None:
    load(FILE)

    changes = load(FILE.replace("32768", "65536").replace("= 256", "= 8").replace("-awq", "-fp8"))

    assert changes == [
        "backend gpu-1: max_concurrency 256 -> 8",
        "model acme/demo-8b: context_length 32768 -> 65536",
        "deployment acme/demo-8b@2026-11-01 on gpu-1: model demo-8b-awq -> demo-8b-fp8",
    ]


def test_a_deployment_that_the_file_leaves_out_is_switched_off(load: Load) -> None:
    second = BACKEND.replace("gpu-1", "gpu-2")
    two = MODEL.replace("[{ name", '[{ name = "gpu-2", model = "m" }, { name')
    load(BACKEND + second + two)

    assert load(FILE) == [
        "switched off deployment acme/demo-8b@2026-11-01 on gpu-2, which the file leaves out"
    ]
    assert load(BACKEND + second + two) == [
        "deployment acme/demo-8b@2026-11-01 on gpu-2: enabled False -> True"
    ]


def test_what_the_file_does_not_name_stays(load: Load) -> None:
    load(FILE)
    other = MODEL.replace("acme/demo-8b", "acme/other")

    load(other)

    assert ModelEntry.objects.count() == 2
    assert Deployment.objects.filter(enabled=True).count() == 2


def test_a_successor_may_stand_further_down(load: Load) -> None:
    changes = load(BACKEND + superseded() + SUCCESSOR)

    entry = ModelEntry.objects.get(identifier="acme/demo-8b")
    assert status(entry, clock.now()) is Status.SUPERSEDED
    assert entry.superseded_by == ModelEntry.objects.get(identifier="acme/demo-8b-v2")
    assert changes[-1] == (
        f"superseded acme/demo-8b by acme/demo-8b-v2, shutdown at {FUTURE[:-1]}.000Z"
    )


def test_the_shutdown_date_of_a_file_moves_it(load: Load) -> None:
    load(BACKEND + superseded() + SUCCESSOR)
    later = FUTURE.replace("01-31", "03-31")

    load(BACKEND + superseded(shutdown_at=later) + SUCCESSOR)

    moved = ModelEntry.objects.get(identifier="acme/demo-8b").shutdown_at
    assert moved == datetime.fromisoformat(later)


def test_a_file_without_a_notice_does_not_withdraw_it(load: Load) -> None:
    load(BACKEND + superseded() + SUCCESSOR)

    assert load(FILE) == ["nothing to change"]


def test_a_draft_stays_a_draft_until_the_file_publishes_it(load: Load) -> None:
    load(FILE.replace("published = true", ""))
    assert status(ModelEntry.objects.get(), clock.now()) is Status.DRAFT

    assert load(FILE) == ["published acme/demo-8b"]


def test_a_draft_may_be_given_other_weights(load: Load) -> None:
    draft = FILE.replace("published = true", "")
    load(draft)

    load(draft.replace("@2026-11-01", "@2026-12-01"))

    assert ModelEntry.objects.get().weights.name == "acme/demo-8b@2026-12-01"


def test_a_new_database_gets_a_retired_model_back_as_retired(load: Load) -> None:
    content = BACKEND + superseded(shutdown_at="2020-01-31T00:00:00Z") + SUCCESSOR

    load(content)

    entry = ModelEntry.objects.get(identifier="acme/demo-8b")
    assert status(entry, clock.now()) is Status.RETIRED
    assert load(content) == ["nothing to change"]


def test_figures_of_a_retired_model_are_left_alone(load: Load) -> None:
    content = BACKEND + superseded(shutdown_at="2020-01-31T00:00:00Z") + SUCCESSOR
    load(content)

    changes = load(content.replace("32768", "65536").replace('"0.15"', '"0.2"'))

    assert [change for change in changes if "acme/demo-8b-v2" not in change] == []


def test_a_file_cannot_shut_down_a_serving_model_in_the_past(load: Load) -> None:
    load(BACKEND + superseded() + SUCCESSOR)

    with pytest.raises(CommandError, match=r"models\[0\]\.shutdown_at: The shutdown date has"):
        load(BACKEND + superseded(shutdown_at="2020-01-31T00:00:00Z") + SUCCESSOR)


def test_a_file_cannot_revive_a_retired_model(load: Load) -> None:
    load(BACKEND + superseded(shutdown_at="2020-01-31T00:00:00Z") + SUCCESSOR)

    with pytest.raises(CommandError, match=r"models\[0\]: acme/demo-8b is retired"):
        load(BACKEND + superseded() + SUCCESSOR)


def test_two_models_may_share_weights_and_backend(load: Load) -> None:
    load(FILE + MODEL.replace('"acme/demo-8b"', '"acme/demo-8b-long"'))

    assert (WeightsRecord.objects.count(), Deployment.objects.count()) == (1, 1)


def edited(old: str, new: str) -> str:
    assert old in FILE
    return FILE.replace(old, new)


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
    "price with too many decimals": (
        edited('"0.15"', '"0.000000001"'),
        "models[0].pricing.input_per_mtok: A price has at most 8 decimals",
    ),
    "negative price": (
        edited('"0.60"', '"-1"'),
        "models[0].pricing.output_per_mtok: A price must be zero or more.",
    ),
    "currency": (edited('"USD"', '"usd"'), "models[0].pricing.currency: Use the three capital"),
    "identifier": (edited('"acme/demo-8b"', '"acme//demo"'), "models[0].id: Use at most 200"),
    "zero context": (edited("32768", "0"), "models[0].context_length: "),
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
    "backend without room": (edited("256", "0"), "backends[0].max_concurrency: "),
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
    "its own successor": (
        FILE + 'superseded_by = "acme/demo-8b"',
        "models[0].superseded_by: acme/demo-8b cannot be its own successor.",
    ),
    "draft as successor": (
        BACKEND + superseded() + SUCCESSOR.replace("published = true", ""),
        "models[0].superseded_by: acme/demo-8b-v2 is not published.",
    ),
    "successor of a draft": (
        edited("published = true", 'superseded_by = "acme/x"'),
        "models[0].superseded_by: Only a published model",
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
    "voices that are no tables": ("voices = [1]\n", "voices[0]: Expected object, got int."),
}


@pytest.mark.parametrize(("content", "told"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_told_with_file_table_and_key_and_changes_nothing(
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


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be read: No such file"):
        call_command("load_catalog", tmp_path / "missing.toml")


def test_a_planned_price_survives_a_load(load: Load) -> None:
    load(FILE)
    entry = ModelEntry.objects.get()
    planned = clock.now() + timedelta(days=1)
    Price.objects.create(
        entry=entry,
        input_per_mtok="9",
        output_per_mtok="9",
        currency="USD",
        effective_from=planned,
    )

    assert load(FILE) == ["nothing to change"]


def test_a_notice_given_elsewhere_keeps_its_date_when_the_file_names_none(load: Load) -> None:
    load(BACKEND + MODEL + SUCCESSOR)
    entry = ModelEntry.objects.get(identifier="acme/demo-8b")
    successor = ModelEntry.objects.get(identifier="acme/demo-8b-v2")
    lifecycle.supersede(entry, successor, clock.now() + timedelta(days=9))

    assert load(BACKEND + MODEL + 'superseded_by = "acme/demo-8b-v2"\n' + SUCCESSOR) == [
        "nothing to change"
    ]


@pytest.mark.django_db(transaction=True)
def test_two_loads_at_once_make_one_catalog() -> None:
    file = read_catalog_file(FILE.encode())
    start = Barrier(2)

    def run() -> list[str]:
        try:
            start.wait(timeout=30)
            return load_catalog(file)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as threads:
        loads = [threads.submit(run), threads.submit(run)]

    assert sorted(len(load.result()) for load in loads) == [0, 6]


GUIDE = Path(__file__).parents[2] / "docs/operate/catalog.md"


def test_the_guides_example_loads(load: Load) -> None:
    example = re.search(r"```toml\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.S)
    assert example

    load(example[1])

    standing = {entry.identifier: status(entry, clock.now()) for entry in ModelEntry.objects.all()}
    assert standing == {"acme/demo-8b": Status.ACTIVE, "acme/demo-7b": Status.SUPERSEDED}
    assert load(example[1]) == ["nothing to change"]


@pytest.mark.parametrize("table", [BackendTable, ModelTable, DeploymentTable, PricingTable])
def test_the_guide_describes_every_key(table: type[msgspec.Struct]) -> None:
    guide = GUIDE.read_text(encoding="utf-8")

    assert [
        key for key in table.__struct_fields__ if not re.search(rf"`[^`]*\b{key}\b", guide)
    ] == []


def test_a_backend_says_how_it_reports_and_what_it_does_with_connections(load: Load) -> None:
    told = """running_usage = "llama.cpp"
output_cap_field = "max_tokens"
headers = { "x-portkey-provider" = "openai" }
extra_fields = { top_k = 40, chat_template_kwargs = { enable_thinking = false } }
keep_alive = "off"
disconnect_drain_seconds = 0
"""
    load(BACKEND)
    changes = load(BACKEND.replace("continuous_usage = true\n", told))

    backend = Backend.objects.get()
    assert (backend.running_usage, backend.keep_alive) == ("llama.cpp", "off")
    assert backend.disconnect_drain_seconds == 0
    assert backend.output_cap_field == "max_tokens"
    assert backend.headers == {"x-portkey-provider": "openai"}
    assert backend.extra_fields == {
        "top_k": 40,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    assert "backend gpu-1: running_usage vllm -> llama.cpp" in changes


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
        ('headers = { "a b" = "c" }', "backends[0].headers: 'a b' is no name"),
        ('headers = { x-a = "1", X-A = "2" }', "backends[0].headers: A header is there twice"),
        ('headers = { x-a = "1\\r\\nx-b: 2" }', "backends[0].headers: Give x-a as"),
        ('headers = { x-a = "" }', "backends[0].headers: Give x-a as"),
        ("headers = { x-a = 1 }", "backends[0].headers"),
        ("extra_fields = { temperature = 1.0 }", "backends[0].extra_fields: Leave temperature"),
        ("extra_fields = { max_tokens = 5 }", "output_cap_field decides"),
        ("extra_fields = { timings_per_token = true }", "running_usage decides"),
        ("extra_fields = { top_p_min = nan }", "backends[0].extra_fields: Use text"),
        ("extra_fields = { since = 2026-01-01 }", "backends[0].extra_fields: Value must"),
        ('extra_fields = { a = "\\u0000" }', "backends[0].extra_fields: Leave the character"),
        (f'extra_fields = {{ a = "{"x" * 17000}" }}', "backends[0].extra_fields: Give at most"),
    ],
)
def test_what_a_backend_cannot_say(load: Load, line: str, place: str) -> None:
    with pytest.raises(CommandError, match=re.escape(place)):
        load(f"{BACKEND}{line}\n")

    assert not Backend.objects.exists()
