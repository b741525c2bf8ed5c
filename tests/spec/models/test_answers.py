"""The answers of GET /v1/models and GET /v1/models/{model}."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.changes import key_watcher, watcher
from accounts.keys import keys
from accounts.models import Organization, Scope
from core import clock
from inference.catalog import lifecycle
from inference.catalog.catalog import catalog
from inference.catalog.snapshot import CatalogSnapshot
from tests.support.builders import catalog_rows
from tests.support.readers import client_with

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def own_catalog(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make the process's catalog and keys look as if no watcher had run."""
    for each in (watcher, key_watcher):
        monkeypatch.setattr(each, "_confirmed", {})
    yield
    catalog.snapshot = CatalogSnapshot(models={})


@pytest.fixture
def api(organization: Organization) -> Client:
    return client_with(keys.mint(organization, Scope.INFERENCE).secret)


def test_an_active_model_has_exactly_the_contracts_fields(api: Client) -> None:
    entry = catalog_rows.published(tool_calling=True, structured_output=True)
    assert entry.published_at is not None

    answer = api.get("/v1/models/acme/demo-8b")

    assert answer.status_code == 200
    assert answer["content-type"] == "application/json"
    assert answer["x-request-id"].startswith("req_")
    assert answer.json() == {
        "id": "acme/demo-8b",
        "object": "model",
        "created": int(entry.published_at.timestamp()),
        "owned_by": "svc",
        "context_length": 32768,
        "max_request_bytes": 1_048_576,
        "capabilities": {
            "tool_calling": True,
            "structured_output": True,
            "json_schema_subset": "svc-json-schema-subset-v1",
        },
        "pricing": {
            "input_per_mtok": "0.15",
            "output_per_mtok": "0.60",
            "currency": "USD",
            "provisional": True,
            "reasoning_tokens_billed_as": "output",
        },
        "lifecycle": {"status": "active", "superseded_by": None, "shutdown_at": None},
    }


def test_a_model_without_structured_output_names_no_schema_subset(api: Client) -> None:
    catalog_rows.published()

    capabilities = api.get("/v1/models/acme/demo-8b").json()["capabilities"]

    assert capabilities == {
        "tool_calling": False,
        "structured_output": False,
        "json_schema_subset": None,
    }


def test_a_superseded_model_names_its_successor_and_its_last_day(api: Client) -> None:
    entry = catalog_rows.published()
    year = clock.now().year + 1
    lifecycle.supersede(
        entry, catalog_rows.published("acme/next"), datetime(year, 1, 31, 12, tzinfo=UTC)
    )

    answer = api.get("/v1/models/acme/demo-8b")

    assert answer.json()["lifecycle"] == {
        "status": "superseded",
        "superseded_by": "acme/next",
        "shutdown_at": f"{year}-01-31T12:00:00.000Z",
    }


def test_the_list_holds_every_published_model_that_serves_sorted_by_id(api: Client) -> None:
    for identifier in ("b/two", "a/one", "c"):
        catalog_rows.published(identifier)
    catalog_rows.ready("a/draft")
    catalog_rows.retired("a/gone", catalog_rows.published("d/superseding"))

    answer = api.get("/v1/models")

    assert answer.status_code == 200
    body = answer.json()
    assert set(body) == {"object", "data"}
    assert body["object"] == "list"
    assert [model["id"] for model in body["data"]] == ["a/one", "b/two", "c", "d/superseding"]
    assert body["data"][0] == api.get("/v1/models/a/one").json()


def test_an_empty_catalog_is_an_empty_list(api: Client) -> None:
    assert api.get("/v1/models").json() == {"object": "list", "data": []}


@pytest.mark.parametrize(
    "path", ["/v1/models/acme/demo-8b", "/v1/models/acme%2Fdemo-8b", "/v1/models/acme%2fdemo-8b"]
)
def test_a_slash_in_the_id_arrives_raw_or_encoded(path: str, api: Client) -> None:
    catalog_rows.published()

    answer = api.get(path)

    assert (answer.status_code, answer.json()["id"]) == (200, "acme/demo-8b")


@pytest.mark.parametrize(
    "identifier", ["acme/unknown", "acme/draft", "acme/demo-8b/", "ä ö", "%00", "a%0Ab", "%0A"]
)
def test_an_identifier_that_was_never_published_is_model_not_found(
    api: Client, identifier: str
) -> None:
    catalog_rows.published()
    catalog_rows.ready("acme/draft")

    answer = api.get(f"/v1/models/{identifier}")

    error = answer.json()["error"]
    assert answer.status_code == 404
    assert (error["type"], error["code"], error["param"]) == (
        "not_found_error",
        "model_not_found",
        "model",
    )


def test_a_model_past_its_shutdown_date_is_model_retired(api: Client) -> None:
    catalog_rows.retired("acme/gone", catalog_rows.published("acme/next"))

    answer = api.get("/v1/models/acme/gone")

    error = answer.json()["error"]
    assert answer.status_code == 404
    assert (error["type"], error["code"], error["param"]) == (
        "not_found_error",
        "model_retired",
        "model",
    )
    assert "acme/next" in error["message"]


def test_the_price_in_force_is_shown(api: Client) -> None:
    entry = catalog_rows.published()
    catalog_rows.price(
        entry, clock.now(), input_per_mtok="0.00000125", output_per_mtok="2", currency="EUR"
    )
    catalog_rows.price(
        entry, clock.now() + timedelta(days=1), input_per_mtok="9", output_per_mtok="9"
    )

    pricing = api.get("/v1/models/acme/demo-8b").json()["pricing"]

    assert (pricing["input_per_mtok"], pricing["output_per_mtok"], pricing["currency"]) == (
        "0.00000125",
        "2.00",
        "EUR",
    )


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/acme/demo-8b", "/v1/models/unknown"])
def test_reading_the_catalog_needs_a_credential(path: str) -> None:
    answer = Client().get(path)

    assert answer.status_code == 401
    assert answer["www-authenticate"] == "Bearer"
    error = answer.json()["error"]
    assert (error["type"], error["code"], error["param"]) == ("authentication_error", None, None)


@pytest.mark.parametrize(
    ("scope", "status"), [(Scope.INFERENCE, 200), (Scope.READ, 200), (Scope.SPEECH, 401)]
)
def test_inference_and_read_keys_may_read_the_catalog(
    organization: Organization, scope: Scope, status: int
) -> None:
    answer = client_with(keys.mint(organization, scope).secret).get("/v1/models")

    assert answer.status_code == status


def test_a_catalog_read_touches_no_table_while_the_watchers_run(api: Client) -> None:
    catalog_rows.published()
    api.get("/v1/models")
    watcher.poll()
    key_watcher.poll()
    api.get("/v1/models")

    with CaptureQueriesContext(connection) as queries:
        answers: list[Any] = [api.get("/v1/models"), api.get("/v1/models/acme/demo-8b")]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert len(queries) == 0
