"""The ledger in the admin: read-only, exact searches, cheap counts, costs shown as sums."""

from __future__ import annotations

import uuid
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from accounts.keys.keys import mint
from accounts.models import Organization, Scope
from core.clock import now
from tests.support.builders import traffic
from tests.support.ledger.commands import id_of
from tests.support.pages.console import page_at
from usage.receipts import Receipt

LIST = "/admin/usage/usagerow/"


def write(**facts: Any) -> Receipt:
    return traffic.write(now(), **facts).receipt


def shown(client: Client, query: str = "") -> str:
    return page_at(client, LIST + query)


def test_a_row_outlives_the_objects_that_it_names(operator: Client) -> None:
    gone = str(uuid.uuid4())
    row = write(organization_id=gone, api_key_id=gone)

    page = operator.get(f"{LIST}{row.request_id}/change/").content.decode()

    assert page.count(f"{gone} (no longer here)") == 2


def test_a_row_links_its_objects_and_shows_its_cost_as_a_sum(operator: Client) -> None:
    organization = Organization.objects.create(name="Northwind")
    api_key = mint(organization, Scope.INFERENCE, "checkout").api_key
    row = write(
        organization_id=str(organization.pk),
        api_key_id=str(api_key.pk),
        model_id=str(uuid.uuid4()),
        backend_reported_input_tokens=1234,
        backend_reported_output_tokens=56,
        input_price_per_mtok=Decimal("0.15"),
        output_price_per_mtok=Decimal("12.34567891"),
    )

    page = operator.get(f"{LIST}{row.request_id}/change/").content.decode()

    assert f'<a href="/admin/accounts/organization/{organization.pk}/change/">Northwind</a>' in page
    assert f'href="/admin/accounts/apikey/{api_key.pk}/change/"' in page
    assert f'<a href="/admin/inference/modelentry/{row.model_id}/change/">acme/demo-8b</a>' in page
    assert "input: 1,234 / 1,000,000 x 0.15 = 0.00018510000000" in page
    assert "output: 56 / 1,000,000 x 12.34567891 = 0.00069135801896" in page
    assert "<strong>0.00087645801896 USD</strong>" in page


def test_searches_are_exact_and_find_ids_names_and_prefixes(operator: Client) -> None:
    organization = Organization.objects.create(name="Northwind")
    api_key = mint(organization, Scope.INFERENCE).api_key
    other = write(organization_id=str(organization.pk))
    row = write(organization_id=str(organization.pk), api_key_id=str(api_key.pk))
    write()

    for term in (row.request_id, str(api_key.pk), api_key.prefix, f"{api_key.prefix}…"):
        page = shown(operator, f"?q={term}")
        assert row.request_id in page, term
        assert other.request_id not in page, term
    for term in ("Northwind", str(organization.pk)):
        page = shown(operator, f"?q={term}")
        assert row.request_id in page, term
        assert other.request_id in page, term
        assert "2 usage rows" in page
    assert "Nothing fits the search" in shown(operator, "?q=north")


def test_the_list_shows_the_past_week_by_default(operator: Client) -> None:
    old = write(request_id=id_of(now() - timedelta(days=40)))
    new = write()

    assert new.request_id in shown(operator)
    for query, is_shown in (
        ("", False),
        ("?admitted=any", True),
        ("?admitted=quarter", True),
        (f"?q={old.request_id}", True),
        ("?admitted=hour", False),
    ):
        assert (old.request_id in shown(operator, query)) is is_shown, query


@pytest.mark.parametrize(
    ("query", "listed"),
    [
        ("outcome__exact=backend_error", {"backend_error"}),
        ("outcome=backend_error", {"backend_error"}),
        ("outcome=failed", {"backend_error", "backend_timeout"}),
    ],
)
def test_filters_narrow_the_list(operator: Client, query: str, listed: set[str]) -> None:
    outcomes = ("backend_error", "backend_timeout", "success", "client_disconnected")
    written = {outcome: write(outcome=outcome).request_id for outcome in outcomes}

    page = shown(operator, f"?{query}")

    assert {outcome for outcome in outcomes if written[outcome] in page} == listed


def test_a_key_that_is_searched_stays_out_of_the_address(operator: Client) -> None:
    organization = Organization.objects.create(name="Northwind")
    new = mint(organization, Scope.INFERENCE)
    row = write(organization_id=str(organization.pk), api_key_id=str(new.api_key.pk))
    write()

    searched = operator.post(LIST, {"_search": "1", "q": new.secret, "admitted": "day"})
    listed = operator.get(searched["location"]).content.decode()
    typed = operator.get(f"{LIST}?q={new.secret}")

    assert searched["location"] == f"{LIST}?q={new.api_key.prefix}&admitted=day"
    assert row.request_id in listed
    assert "1 usage row" in listed
    assert new.secret not in listed
    assert typed["location"] == f"{LIST}?q={new.api_key.prefix}"


def test_a_row_tells_where_it_was_answered_and_what_took_how_long(operator: Client) -> None:
    row = write(
        model_server="gpu-1",
        attempts=2,
        queue_ms=40,
        time_to_first_token_ms=140,
        total_duration_ms=1140,
    )
    write(model_server="gpu-2")

    page = operator.get(f"{LIST}{row.request_id}/change/").content.decode()
    assert "waited for a slot: 40 ms, until the first token: 100 ms" in page
    listed = shown(operator, "?model_server=gpu-1")
    assert "gpu-1" in listed
    assert "gpu-2" not in listed
