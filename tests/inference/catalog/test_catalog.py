"""The snapshot of the catalog: complete, cheap, replaced as a whole, and never lost."""

from __future__ import annotations

import time
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from accounts.changes import ChangeWatcher
from accounts.models import Organization
from core import clock
from core.errors import InternalError, ModelNotFound, ModelRetired
from inference.catalog import lifecycle, snapshot
from inference.catalog.catalog import Catalog
from inference.catalog.snapshot import SMALLEST_READ_BYTES, read_snapshot
from inference.models import Deployment, ModelLimit
from tests.support.builders import catalog_rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def watcher() -> ChangeWatcher:
    return ChangeWatcher()


@pytest.fixture
def catalog(watcher: ChangeWatcher) -> Catalog:
    return Catalog(watcher)


def test_before_the_first_catalog_no_model_is_said_to_be_missing(catalog: Catalog) -> None:
    with pytest.raises(InternalError):
        catalog.resolve("acme/demo-8b", time.time())

    catalog.load()

    with pytest.raises(ModelNotFound):
        catalog.resolve("acme/demo-8b", time.time())


def test_a_published_model_carries_all_that_a_request_needs(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    monkeypatch.setenv("SVC_BACKEND_KEY_GPU", "the-key")
    settings.SVC_BACKEND_IDLE_SECONDS = 7.0
    entry = catalog_rows.draft(
        max_request_bytes=5_000_000,
        tool_calling=True,
        weights=catalog_rows.weights(tokenizer="o200k"),
    )
    catalog_rows.price(entry)
    backend = catalog_rows.backend(
        base_url="https://gpu/v1/",
        api_key_env="SVC_BACKEND_KEY_GPU",
        first_byte_seconds=3,
        max_concurrency=9,
    )
    catalog_rows.deployed(entry, backend, model="demo-awq")
    organization = Organization.objects.create(name="Acme")
    ModelLimit.objects.create(organization=organization, entry=entry, tokens_per_minute=5)
    lifecycle.publish(entry)
    assert entry.published_at is not None

    catalog.load()
    model = catalog.resolve("acme/demo-8b", time.time())

    assert (model.model_id, model.model_version_id) == (str(entry.pk), str(entry.weights_id))
    assert (model.context_length, model.default_max_output_tokens) == (32768, 2048)
    assert (model.tool_calling, model.structured_output) == (True, False)
    assert (model.tokenizer, model.created) == ("o200k", int(entry.published_at.timestamp()))
    [deployment] = model.deployments
    assert (deployment.model, deployment.backend.base_url) == ("demo-awq", "https://gpu/v1")
    assert deployment.backend.headers == {"Authorization": "Bearer the-key"}
    assert deployment.backend.max_concurrency == 9
    assert (deployment.backend.timeouts.first_byte, deployment.backend.timeouts.idle) == (3, 7)
    limits = model.limits[str(organization.pk)]
    assert (limits.requests_per_minute, limits.tokens_per_minute) == (None, 5)
    assert catalog.snapshot.largest_request_bytes == 5_000_000


def test_a_backend_never_shows_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SVC_BACKEND_KEY_GPU", "the-key")
    catalog_rows.deployed(
        catalog_rows.published(), catalog_rows.backend(api_key_env="SVC_BACKEND_KEY_GPU")
    )

    assert "the-key" not in repr(read_snapshot())


def test_a_backends_key_may_be_in_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("keys") / "gpu"
    path.write_text("from-the-file")
    monkeypatch.setenv("SVC_BACKEND_KEY_GPU_FILE", str(path))

    assert (
        snapshot.backend_key(catalog_rows.backend(api_key_env="SVC_BACKEND_KEY_GPU"))
        == "from-the-file"
    )


def test_a_missing_backend_key_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    backend = catalog_rows.backend("gpu-x", api_key_env="SVC_BACKEND_KEY_UNSET")
    catalog_rows.deployed(catalog_rows.published(), backend)

    read_snapshot()

    assert "backend gpu-x: The variable SVC_BACKEND_KEY_UNSET is not set" in caplog.text


def test_a_backend_whose_row_cannot_be_read_costs_no_other_backend(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A value that a newer release wrote, say, whose schema is this one's."""
    entry = catalog_rows.published()
    newer = catalog_rows.backend("gpu-new")
    catalog_rows.deployed(entry, newer, model="m")
    type(newer).objects.filter(pk=newer.pk).update(running_usage="of-tomorrow")

    [model] = read_snapshot().models.values()

    assert [deployment.model for deployment in model.deployments] == ["demo-on-backend"]
    assert "backend gpu-new is not used, its row cannot be read" in caplog.text


def test_switched_off_deployments_and_backends_serve_nothing() -> None:
    entry = catalog_rows.published()
    catalog_rows.deployed(entry, model="m", enabled=False)
    catalog_rows.deployed(entry, catalog_rows.backend(enabled=False), model="off")

    [model] = read_snapshot().models.values()

    assert [deployment.model for deployment in model.deployments] == ["demo-on-backend"]


def test_a_draining_deployment_is_known_and_serves_nothing(catalog: Catalog) -> None:
    entry = catalog_rows.published()
    first = entry.weights.deployments.get()
    second = catalog_rows.deployed(entry)
    Deployment.objects.filter(pk=first.pk).update(draining=True)

    catalog.load()

    model = catalog.resolve("acme/demo-8b", time.time())
    assert [each.backend.name for each in model.deployments] == [second.backend.name]
    assert [each.backend.name for each in model.draining] == [first.backend.name]


@pytest.mark.parametrize(
    ("weights", "shares"),
    [
        ((100, 100), [0.0, 0.0]),
        ((7, 7), [0.0, 0.0]),
        ((90, 10), [0.9, 0.1]),
        # What drains or is switched off takes no share.
        ((90, 10, "draining", "off"), [0.9, 0.1]),
        ((100, "draining"), [0.0]),
    ],
)
def test_shares_are_of_what_serves_and_none_where_all_weigh_the_same(
    catalog: Catalog, weights: tuple[Any, ...], shares: list[float]
) -> None:
    entry = catalog_rows.published()
    Deployment.objects.all().delete()
    for weight in weights:
        catalog_rows.deployed(
            entry,
            draining=weight == "draining",
            enabled=weight != "off",
            weight=weight if isinstance(weight, int) else 1,
        )

    catalog.load()

    model = catalog.resolve("acme/demo-8b", time.time())
    assert sorted(each.share for each in model.deployments) == sorted(shares)


def test_a_models_own_fields_go_over_those_of_its_backends_and_of_no_other_model(
    catalog: Catalog,
) -> None:
    entry = catalog_rows.published(extra_fields={"b": {"x": 2}, "c": 3})
    backend = entry.weights.deployments.get().backend
    backend.extra_fields = {"a": 1, "b": {"y": 1}}
    backend.save()
    other = catalog_rows.draft("acme/other", weights=entry.weights)
    catalog_rows.price(other)
    lifecycle.publish(other)

    catalog.load()

    (own,) = catalog.resolve("acme/demo-8b", time.time()).deployments
    (plain,) = catalog.resolve("acme/other", time.time()).deployments
    assert own.extra_fields == b'"a":1,"b":{"x":2},"c":3'
    assert (plain.extra_fields, plain.backend) == (None, own.backend)


@pytest.mark.parametrize(
    "columns", [{"extra_fields": {"model": "x"}}, {"extra_fields": []}, {"defaults": {"seed": 1}}]
)
def test_a_model_whose_additions_cannot_be_sent_is_not_served_without_them(
    catalog: Catalog, caplog: pytest.LogCaptureFixture, columns: dict[str, Any]
) -> None:
    entry = catalog_rows.published()
    other = catalog_rows.published("acme/other")
    type(entry).objects.filter(pk=entry.pk).update(**columns)

    catalog.load()

    assert catalog.resolve("acme/demo-8b", time.time()).deployments == ()
    assert catalog.resolve(other.identifier, time.time()).deployments
    assert "model acme/demo-8b is not served" in caplog.text


def test_the_snapshot_takes_as_many_queries_for_fifty_entries_as_for_one() -> None:
    catalog_rows.published("acme/first")
    with CaptureQueriesContext(connection) as for_one:
        read_snapshot()
    for number in range(49):
        catalog_rows.published(f"acme/model-{number}")
    with CaptureQueriesContext(connection) as for_fifty:
        models = read_snapshot().models

    assert len(models) == 50
    assert len(for_one) == len(for_fifty) == 4


def test_small_models_do_not_keep_an_unknown_model_from_being_a_404(catalog: Catalog) -> None:
    catalog_rows.published(max_request_bytes=10)

    catalog.load()

    assert catalog.snapshot.largest_request_bytes == SMALLEST_READ_BYTES


def test_a_draft_and_an_unknown_identifier_are_not_found(catalog: Catalog) -> None:
    catalog_rows.ready("acme/draft")
    catalog.load()

    for identifier in ("acme/draft", "acme/unknown", "", "x" * 100_000):
        with pytest.raises(ModelNotFound) as refused:
            catalog.resolve(identifier, time.time())
        assert (refused.value.param, refused.value.code) == ("model", "model_not_found")
        assert len(refused.value.message) < 300


def test_a_retired_model_names_the_first_successor_that_still_serves(catalog: Catalog) -> None:
    last = catalog_rows.published("acme/v3")
    middle = catalog_rows.retired("acme/v2", last)
    catalog_rows.retired("acme/v1", middle)
    catalog.load()

    with pytest.raises(ModelRetired, match="Use its successor 'acme/v3'") as refused:
        catalog.resolve("acme/v1", time.time())

    assert (refused.value.param, refused.value.code) == ("model", "model_retired")


def test_the_first_price_of_a_model_holds_where_the_clock_is_behind(catalog: Catalog) -> None:
    """Another host has just published the model, by its own clock."""
    entry = catalog_rows.published()
    later = clock.now() + timedelta(hours=1)
    catalog_rows.price(entry, later, input_per_mtok="0.30", output_per_mtok="0.90", currency="EUR")
    catalog.load()
    behind = time.time() - 7200

    model = catalog.resolve("acme/demo-8b", behind)

    assert model.price_at(behind).input == Decimal("0.15")


def test_retirement_and_a_planned_price_come_by_the_clock_without_a_reload(
    catalog: Catalog,
) -> None:
    entry = catalog_rows.published()
    later = clock.now() + timedelta(hours=1)
    catalog_rows.price(entry, later, input_per_mtok="0.30", output_per_mtok="0.90", currency="EUR")
    lifecycle.supersede(entry, catalog_rows.published("acme/next"), later + timedelta(hours=1))
    catalog.load()
    model = catalog.resolve("acme/demo-8b", time.time())

    before, after = model.price_at(later.timestamp() - 0.001), model.price_at(later.timestamp())

    assert (before.input, before.currency) == (Decimal("0.15"), "USD")
    assert (after.input, after.output, after.currency, after.provisional) == (
        Decimal("0.30"),
        Decimal("0.90"),
        "EUR",
        True,
    )
    with pytest.raises(ModelRetired):
        catalog.resolve("acme/demo-8b", later.timestamp() + 3600)


def test_an_operators_change_arrives_with_the_next_poll(
    catalog: Catalog, watcher: ChangeWatcher
) -> None:
    watcher.poll()
    catalog_rows.published("acme/new")

    watcher.poll()

    assert catalog.resolve("acme/new", time.time()).id == "acme/new"


def test_a_failing_reload_keeps_the_old_catalog_and_is_retried(
    catalog: Catalog,
    watcher: ChangeWatcher,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    catalog_rows.published("acme/old")
    watcher.poll()
    catalog_rows.published("acme/new")
    with monkeypatch.context() as broken:
        broken.setattr("inference.catalog.catalog.read_snapshot", _away)
        watcher.poll()
        watcher.poll()

    assert set(catalog.snapshot.models) == {"acme/old"}
    assert caplog.text.count("a change of catalog was not loaded: OperationalError") == 1
    assert "secret of the database" not in caplog.text
    watcher.poll()
    assert set(catalog.snapshot.models) == {"acme/old", "acme/new"}


def test_a_failing_catalog_does_not_keep_other_changes_from_arriving(
    watcher: ChangeWatcher,
) -> None:
    from accounts.changes import CATALOG, KEYS, lock

    told = []
    watcher.subscribe(CATALOG, _away)
    watcher.subscribe(KEYS, lambda: told.append(KEYS))
    lock(CATALOG)
    lock(KEYS)

    watcher.poll()

    assert told == [KEYS]


def _away() -> Any:
    raise OperationalError("secret of the database")


def test_a_view_reloads_only_where_no_watcher_runs(
    catalog: Catalog, watcher: ChangeWatcher
) -> None:
    catalog_rows.published("acme/one")
    assert set(catalog.current().models) == {"acme/one"}
    catalog_rows.published("acme/two")
    assert set(catalog.current().models) == {"acme/one", "acme/two"}
    watcher.poll()

    with CaptureQueriesContext(connection) as queries:
        catalog.current()

    assert len(queries) == 0


def test_a_view_goes_on_with_the_last_catalog_while_the_database_is_away(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog_rows.published("acme/one")
    catalog.load()
    monkeypatch.setattr("inference.catalog.catalog.read_snapshot", _away)

    assert set(catalog.current().models) == {"acme/one"}
    with pytest.raises(OperationalError):
        Catalog(ChangeWatcher()).current()
