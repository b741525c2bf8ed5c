"""``load_catalog``: the file, the changes that it makes, and the message of every mistake."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from threading import Barrier

import msgspec
import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from core import clock
from inference.catalog import lifecycle
from inference.catalog.file import (
    BackendTable,
    CatalogFile,
    DeploymentTable,
    LimitTable,
    ModelTable,
    PricingTable,
    read_catalog_file,
)
from inference.catalog.lifecycle import Status, status
from inference.catalog.load import load_catalog
from inference.models import Backend, Deployment, ModelEntry, Price, WeightsRecord
from tests.support.cases.catalog_files import (
    BACKEND,
    FILE,
    FUTURE,
    MODEL,
    SUCCESSOR,
    Load,
    superseded,
)

pytestmark = pytest.mark.django_db


def test_a_file_creates_a_whole_catalog_and_reports_each_change(load: Load) -> None:
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


SECOND = BACKEND.replace("gpu-1", "gpu-2")
TWO = BACKEND + SECOND + MODEL.replace("[{ name", '[{ name = "gpu-2", model = "m" }, { name')
DRAFT = FILE.replace("published = true", "")
NOTICE = BACKEND + superseded() + SUCCESSOR
RETIRED = BACKEND + superseded(shutdown_at="2020-01-31T00:00:00Z") + SUCCESSOR
AGAIN = {
    "the same": (NOTICE, NOTICE, ["nothing to change"]),
    "a retired model": (RETIRED, RETIRED, ["nothing to change"]),
    "without the notice": (NOTICE, FILE, ["nothing to change"]),
    "a draft that is published": (DRAFT, FILE, ["published acme/demo-8b"]),
    "other values": (
        FILE,
        FILE.replace("32768", "65536").replace("= 256", "= 8").replace("-awq", "-fp8"),
        [
            "backend gpu-1: max_concurrency 256 -> 8",
            "model acme/demo-8b: context_length 32768 -> 65536",
            "deployment acme/demo-8b@2026-11-01 on gpu-1: model demo-8b-awq -> demo-8b-fp8",
        ],
    ),
    "other fields and defaults": (
        FILE,
        FILE + "extra_fields = { top_k = 40 }\ndefaults = { temperature = 0.6 }\n",
        [
            "model acme/demo-8b: extra_fields {} -> {'top_k': 40}",
            "model acme/demo-8b: defaults {} -> {'temperature': 0.6}",
        ],
    ),
    "another weight": (
        FILE,
        FILE.replace('-awq" }', '-awq", weight = 5 }'),
        ["deployment acme/demo-8b@2026-11-01 on gpu-1: weight 100 -> 5"],
    ),
    "without a deployment": (
        TWO,
        FILE,
        ["switched off deployment acme/demo-8b@2026-11-01 on gpu-2, which the file leaves out"],
    ),
}
"""A file, the next one, and the changes that it makes."""


@pytest.mark.parametrize("name", AGAIN)
def test_a_second_file_changes_what_differs(load: Load, name: str) -> None:
    first, second, changes = AGAIN[name]
    load(first)

    assert load(second) == changes
    assert load(second) == ["nothing to change"]


def test_a_drain_that_the_file_does_not_mention_goes_on(load: Load) -> None:
    load(FILE)
    Deployment.objects.update(draining=True)

    assert load(FILE) == ["nothing to change"]
    assert load(FILE.replace('-awq" }', '-awq", draining = false }')) == [
        "deployment acme/demo-8b@2026-11-01 on gpu-1: draining True -> False"
    ]
    drained = FILE.replace('-awq" }', '-awq", draining = true }')
    assert load(drained) == ["deployment acme/demo-8b@2026-11-01 on gpu-1: draining False -> True"]


def test_a_deployment_that_was_left_out_can_come_back_and_serves(load: Load) -> None:
    load(TWO)
    Deployment.objects.update(draining=True)
    load(FILE)

    assert "deployment acme/demo-8b@2026-11-01 on gpu-2: enabled False -> True" in load(TWO)

    assert set(Deployment.objects.values_list("backend__name", "enabled", "draining")) == {
        ("gpu-1", True, True),
        ("gpu-2", True, False),
    }


def test_a_changed_price_is_appended(load: Load) -> None:
    load(FILE)

    changes = load(FILE.replace('"0.15"', '"0.125"'))

    assert [change.split(" from ")[0] for change in changes] == ["price of acme/demo-8b"]
    assert [price.input_per_mtok for price in Price.objects.order_by("effective_from")] == [
        Decimal("0.15"),
        Decimal("0.125"),
    ]


def test_rows_that_the_file_does_not_name_stay(load: Load) -> None:
    load(FILE)
    other = MODEL.replace("acme/demo-8b", "acme/other")

    load(other)

    assert ModelEntry.objects.count() == 2
    assert Deployment.objects.filter(enabled=True).count() == 2


def test_a_successor_may_stand_further_down(load: Load) -> None:
    changes = load(NOTICE)

    entry = ModelEntry.objects.get(identifier="acme/demo-8b")
    assert status(entry, clock.now()) is Status.SUPERSEDED
    assert entry.superseded_by == ModelEntry.objects.get(identifier="acme/demo-8b-v2")
    assert changes[-1] == (
        f"superseded acme/demo-8b by acme/demo-8b-v2, shutdown at {FUTURE[:-1]}.000Z"
    )


def test_the_shutdown_date_of_a_file_moves_it(load: Load) -> None:
    load(NOTICE)
    later = FUTURE.replace("01-31", "03-31")

    load(BACKEND + superseded(shutdown_at=later) + SUCCESSOR)

    moved = ModelEntry.objects.get(identifier="acme/demo-8b").shutdown_at
    assert moved == datetime.fromisoformat(later)


def test_a_draft_may_be_given_other_weights(load: Load) -> None:
    load(DRAFT)
    assert status(ModelEntry.objects.get(), clock.now()) is Status.DRAFT

    load(DRAFT.replace("@2026-11-01", "@2026-12-01"))

    assert ModelEntry.objects.get().weights.name == "acme/demo-8b@2026-12-01"


def test_a_new_database_gets_a_retired_model_back_as_retired(load: Load) -> None:
    load(RETIRED)

    entry = ModelEntry.objects.get(identifier="acme/demo-8b")
    assert status(entry, clock.now()) is Status.RETIRED


def test_values_of_a_retired_model_are_not_changed(load: Load) -> None:
    load(RETIRED)

    changes = load(RETIRED.replace("32768", "65536").replace('"0.15"', '"0.2"'))

    assert [change for change in changes if "acme/demo-8b-v2" not in change] == []


def test_a_file_cannot_shut_down_a_serving_model_in_the_past(load: Load) -> None:
    load(NOTICE)

    with pytest.raises(CommandError, match=r"models\[0\]\.shutdown_at: The shutdown date has"):
        load(RETIRED)


def test_a_file_cannot_revive_a_retired_model(load: Load) -> None:
    load(RETIRED)

    with pytest.raises(CommandError, match=r"models\[0\]: acme/demo-8b is retired"):
        load(NOTICE)


def test_two_models_may_share_weights_and_backend(load: Load) -> None:
    load(FILE + MODEL.replace('"acme/demo-8b"', '"acme/demo-8b-long"'))

    assert (WeightsRecord.objects.count(), Deployment.objects.count()) == (1, 1)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be read: No such file"):
        call_command("load_catalog", tmp_path / "missing.toml")


def test_a_planned_price_survives_a_load(load: Load) -> None:
    load(FILE)
    entry = ModelEntry.objects.get()
    planned = clock.now() + timedelta(days=1)
    Price.objects.create(
        entry=entry, input_per_mtok="9", output_per_mtok="9", currency="USD", effective_from=planned
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
    file = read_catalog_file(FILE.encode(), CatalogFile)
    start = Barrier(2)

    def run() -> list[str]:
        try:
            start.wait(timeout=60)
            return load_catalog(file)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as threads:
        loads = [threads.submit(run), threads.submit(run)]

    assert sorted(len(load.result()) for load in loads) == [0, 6]


GUIDE = Path(__file__).parents[3] / "docs/operate/catalog.md"


def test_the_guides_example_loads(load: Load) -> None:
    example = re.search(r"```toml\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert example

    load(example[1])

    standing = {entry.identifier: status(entry, clock.now()) for entry in ModelEntry.objects.all()}
    assert standing == {"acme/demo-8b": Status.ACTIVE, "acme/demo-7b": Status.SUPERSEDED}
    assert load(example[1]) == ["nothing to change"]


@pytest.mark.parametrize(
    "table", [BackendTable, ModelTable, DeploymentTable, LimitTable, PricingTable]
)
def test_the_guide_describes_every_key(table: type[msgspec.Struct]) -> None:
    guide = GUIDE.read_text(encoding="utf-8")

    assert [
        key for key in table.__struct_fields__ if not re.search(rf"`[^`]*\b{key}\b", guide)
    ] == []


@pytest.mark.parametrize(
    ("line", "running_usage"),
    [
        ("", "auto"),
        ('running_usage = "none"\n', "none"),
        ("continuous_usage = true\n", "vllm"),
        ("continuous_usage = false\n", "none"),
    ],
)
def test_running_usage_is_learnt_unless_the_file_says_otherwise(
    load: Load, line: str, running_usage: str
) -> None:
    load(BACKEND.replace("continuous_usage = true\n", line))

    assert Backend.objects.get().running_usage == running_usage


def test_a_backend_table_sets_usage_reporting_and_connections(load: Load) -> None:
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
    assert backend.extra_fields == {"top_k": 40, "chat_template_kwargs": {"enable_thinking": False}}
    assert "backend gpu-1: running_usage vllm -> llama.cpp" in changes
