"""GET /v1/models and GET /v1/models/{model} as a client sees them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.http import HttpRequest
from django.test import AsyncClient, Client
from django.test.utils import CaptureQueriesContext

from accounts.changes import watcher
from accounts.models import Scope
from inference import lifecycle
from inference.catalog import catalog
from inference.pricing import add_price
from inference.snapshot import CatalogSnapshot
from svc_project.lib import clock
from svc_project.lib.clock import iso_milliseconds
from svc_project.lib.errors import InvalidCredential
from tests.inference import making

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def own_catalog(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The process's catalog, unloaded, as if no watcher had run in this process."""
    monkeypatch.setattr(watcher, "last_poll", float("-inf"))
    yield
    catalog.snapshot = CatalogSnapshot(models={})


@pytest.fixture
def known_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes the place of the key ring, which has its own tests: any key is known."""

    def require(request: HttpRequest, scopes: frozenset[Scope], session: bool = True) -> object:
        assert scopes == {Scope.INFERENCE, Scope.READ}
        assert session
        if "authorization" not in request.headers:
            raise InvalidCredential
        return object()

    monkeypatch.setattr("inference.views.require", require)


@pytest.fixture
def api(known_caller: None) -> Client:
    return Client(headers={"authorization": "Bearer svc_live_any"})


def test_an_active_model_has_exactly_the_contracts_fields(api: Client) -> None:
    entry = making.published(tool_calling=True, structured_output=True)
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
    making.published()

    capabilities = api.get("/v1/models/acme/demo-8b").json()["capabilities"]

    assert capabilities == {
        "tool_calling": False,
        "structured_output": False,
        "json_schema_subset": None,
    }


def test_a_superseded_model_names_its_successor_and_its_last_day(api: Client) -> None:
    entry = making.published()
    year = clock.now().year + 1
    lifecycle.supersede(entry, making.published("acme/next"), datetime(year, 1, 31, 12, tzinfo=UTC))

    answer = api.get("/v1/models/acme/demo-8b")

    assert answer.json()["lifecycle"] == {
        "status": "superseded",
        "superseded_by": "acme/next",
        "shutdown_at": f"{year}-01-31T12:00:00.000Z",
    }


def test_the_list_holds_every_published_model_that_serves_sorted_by_id(api: Client) -> None:
    for identifier in ("b/two", "a/one", "c"):
        making.published(identifier)
    making.ready("a/draft")
    making.retired("a/gone", making.published("d/superseding"))

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
async def test_a_slash_in_the_id_arrives_raw_or_encoded(path: str, known_caller: None) -> None:
    from asgiref.sync import sync_to_async

    await sync_to_async(making.published)()

    answer = await AsyncClient().get(path, headers={"authorization": "Bearer svc_live_any"})

    assert (answer.status_code, answer.json()["id"]) == (200, "acme/demo-8b")


@pytest.mark.parametrize(
    "identifier", ["acme/unknown", "acme/draft", "acme/demo-8b/", "ä ö", "%00"]
)
def test_an_identifier_that_was_never_published_is_model_not_found(
    api: Client, identifier: str
) -> None:
    making.published()
    making.ready("acme/draft")

    answer = api.get(f"/v1/models/{identifier}")

    error = answer.json()["error"]
    assert answer.status_code == 404
    assert (error["type"], error["code"], error["param"]) == (
        "not_found_error",
        "model_not_found",
        "model",
    )


def test_a_model_past_its_shutdown_date_is_model_retired(api: Client) -> None:
    making.retired("acme/gone", making.published("acme/next"))

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
    entry = making.published()
    add_price(entry, "0.00000125", "2", "EUR")
    add_price(entry, "9", "9", "USD", clock.now() + timedelta(days=1))

    pricing = api.get("/v1/models/acme/demo-8b").json()["pricing"]

    assert (pricing["input_per_mtok"], pricing["output_per_mtok"], pricing["currency"]) == (
        "0.00000125",
        "2.00",
        "EUR",
    )


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/acme/demo-8b", "/v1/models/unknown"])
def test_reading_the_catalog_needs_a_credential(known_caller: None, path: str) -> None:
    answer = Client().get(path)

    assert answer.status_code == 401
    assert answer["www-authenticate"] == "Bearer"
    assert answer.json()["error"]["code"] is None


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete", "options"])
@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/acme/demo-8b"])
def test_the_catalog_is_read_only(api: Client, method: str, path: str) -> None:
    answer = getattr(api, method)(path)

    assert answer.status_code == 405
    assert answer["allow"] == "GET, HEAD"
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_a_catalog_read_touches_no_table_while_the_watcher_runs(api: Client) -> None:
    making.published()
    watcher.poll()

    with CaptureQueriesContext(connection) as queries:
        answers: list[Any] = [api.get("/v1/models"), api.get("/v1/models/acme/demo-8b")]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert len(queries) == 0


def test_timestamps_of_the_catalog_are_utc_with_milliseconds() -> None:
    assert iso_milliseconds(datetime(2027, 1, 31, tzinfo=UTC)) == "2027-01-31T00:00:00.000Z"
