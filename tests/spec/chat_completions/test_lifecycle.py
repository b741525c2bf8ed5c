"""A model's lifecycle as its callers see it, and the price stamped on each request."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from email.utils import parsedate_to_datetime

import pytest

from core.clock import now
from core.money import token_cost
from inference.catalog import lifecycle
from inference.models import ModelEntry
from tests.support.builders import catalog_rows
from tests.support.clients.raw_client import RawClient
from tests.support.live import Gateway
from tests.support.live_catalog import publish, soon, wait_until_served


def status_and_code(gateway: Gateway, entry: ModelEntry) -> tuple[int, str | None]:
    answer = gateway.chat("say: ok", entry.identifier)
    error = answer.json().get("error", {})
    return answer.status_code, error.get("code")


def test_a_model_lives_from_draft_to_retired(gateway: Gateway) -> None:
    entry, successor = publish(gateway), publish(gateway)
    assert status_and_code(gateway, entry) == (200, None)

    lifecycle.supersede(entry, successor, now() + timedelta(days=1))
    wait_until_served(
        gateway, lambda models: models[entry.identifier]["lifecycle"]["status"] == "superseded"
    )
    assert status_and_code(gateway, entry) == (200, None)

    lifecycle.move_shutdown(entry, soon())
    wait_until_served(gateway, lambda models: entry.identifier not in models)
    assert status_and_code(gateway, entry) == (404, "model_retired")
    assert status_and_code(gateway, successor) == (200, None)


def test_a_running_request_is_not_affected_by_retirement_or_a_new_price(
    gateway: Gateway,
) -> None:
    entry, successor = publish(gateway), publish(gateway)
    with RawClient(gateway) as client:
        client.chat("[[sim tokens=30 pace=30]]", entry.identifier, stream=True)
        client.read_until(2, b"data: ")

        catalog_rows.price(entry, now(), input_per_mtok="7", output_per_mtok="8", currency="EUR")
        lifecycle.supersede(entry, successor, soon())
        wait_until_served(gateway, lambda models: entry.identifier not in models)
        client.read_until(1, b"data: [DONE]\n\n")

    row = gateway.row(client.request_id)
    assert row.outcome == "success"
    assert (row.input_price_per_mtok, row.output_price_per_mtok, row.price_currency) == (
        Decimal("0.15"),
        Decimal("0.60"),
        "USD",
    )


def test_a_price_change_applies_to_later_rows_and_no_earlier_one(gateway: Gateway) -> None:
    entry = publish(gateway)
    before = gateway.chat("say: ok", entry.identifier).headers["x-request-id"]

    catalog_rows.price(entry, now(), input_per_mtok="1.00000001", output_per_mtok="0")
    wait_until_served(
        gateway, lambda models: models[entry.identifier]["pricing"]["output_per_mtok"] == "0.00"
    )
    after = gateway.chat("say: ok", entry.identifier).headers["x-request-id"]

    first, second = gateway.row(before), gateway.row(after)
    assert (first.input_price_per_mtok, first.output_price_per_mtok) == (
        Decimal("0.15"),
        Decimal("0.60"),
    )
    assert (second.input_price_per_mtok, second.output_price_per_mtok) == (
        Decimal("1.00000001"),
        Decimal(0),
    )
    assert first.cost_provisional
    assert second.cost_provisional
    assert token_cost(second.backend_reported_input_tokens, second.input_price_per_mtok) == (
        Decimal(second.backend_reported_input_tokens) * Decimal("0.00000100000001")
    )


def test_the_row_names_the_entry_and_the_weights_it_was_pinned_to(gateway: Gateway) -> None:
    entry = publish(gateway)

    row = gateway.row(gateway.chat("say: ok", entry.identifier).headers["x-request-id"])

    assert row.model_identifier == entry.identifier
    assert row.model_id == entry.pk
    assert row.model_version_id == entry.weights_id
    assert row.organization_id == gateway.organization.pk
    assert row.api_key_id == gateway.api_key.pk


@pytest.mark.parametrize("stream", [False, True])
def test_answers_of_a_superseded_model_say_so_in_headers(gateway: Gateway, stream: bool) -> None:
    """RFC 9745, RFC 8594 and RFC 5829; additive to the contract."""
    entry, successor = publish(gateway), publish(gateway)
    before = gateway.chat("say: hello", entry.identifier, stream=stream)
    assert {"deprecation", "sunset", "link"}.isdisjoint(before.headers)
    shutdown = (now() + timedelta(days=1)).replace(microsecond=0)
    lifecycle.supersede(entry, successor, shutdown)
    wait_until_served(
        gateway, lambda models: models[entry.identifier]["lifecycle"]["status"] == "superseded"
    )

    headers = gateway.chat("say: hello", entry.identifier, stream=stream).headers

    entry.refresh_from_db()
    assert entry.superseded_at is not None
    assert headers["deprecation"] == f"@{int(entry.superseded_at.timestamp())}"
    assert parsedate_to_datetime(headers["sunset"]) == shutdown
    found = re.fullmatch(r'<(\S+)>; rel="successor-version"', headers["link"])
    assert found is not None
    address = gateway.get(found[1].removeprefix("/v1"))
    assert address.json()["id"] == successor.identifier
