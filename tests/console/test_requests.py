"""The requests: a list that pages backwards in time, and the page of one request."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from decimal import Decimal

import pytest
from django.test import Client

from accounts.keys import NewKey
from accounts.models import Organization
from tests.console.conftest import NOVEMBER, Insert, moment, text_of, words

LIST = f"/console/requests?{NOVEMBER}"


def listed(page: str) -> list[str]:
    return re.findall(r'href="/console/requests/(req_\w+)"', page)


def older(page: str) -> str | None:
    found = re.search(r'href="([^"]+)" rel="next"', page)
    return html.unescape(found[1]) if found else None


def test_pages_run_from_the_newest_to_the_oldest_without_a_gap(
    console: Client, insert: Insert
) -> None:
    # Several rows share each time, so that a page ends among them.
    written = [
        insert(
            (moment("2026-11-05T10:00:00") + timedelta(seconds=number // 7))
            .replace(tzinfo=None)
            .isoformat()
        ).request_id
        for number in range(120)
    ]

    seen: list[str] = []
    link: str | None = LIST.removeprefix("/console/requests")
    while link is not None:
        page = console.get(f"/console/requests{link}").content.decode()
        seen += listed(page)
        link = older(page)
        insert("2026-11-20T00:00:00")

    assert len(seen) == len(set(seen))
    assert set(seen) == set(written)


def test_the_newest_are_first_and_filters_are_kept(
    console: Client, insert: Insert, key: NewKey
) -> None:
    own = [
        insert(f"2026-11-{day:02d}T10:00:00", api_key_id=str(key.api_key.pk)).request_id
        for day in range(1, 29)
        for _ in range(2)
    ]
    insert("2026-11-28T11:00:00")

    page = console.get(f"{LIST}&api_key_id={key.api_key.pk}").content.decode()

    first = listed(page)
    assert len(first) == 50
    assert set(first[:2]) == set(own[-2:])
    link = older(page)
    assert link is not None
    assert f"api_key_id={key.api_key.pk}" in link
    rest = listed(console.get(f"/console/requests{link}").content.decode())
    assert set(first) | set(rest) == set(own)


def test_a_cursor_that_is_none_is_explained(console: Client) -> None:
    answer = console.get(f"{LIST}&cursor=nonsense")

    assert answer.status_code == 400
    assert "<code>invalid_cursor</code>" in answer.content.decode()


def test_a_request_shows_its_cost_as_a_sum(console: Client, insert: Insert, key: NewKey) -> None:
    row = insert(
        "2026-11-05T10:00:00.123",
        api_key_id=str(key.api_key.pk),
        backend_reported_input_tokens=1234,
        backend_reported_output_tokens=56,
        backend_reported_reasoning_tokens=7,
        generated_output_tokens=56,
        delivered_output_tokens=40,
        outcome="client_disconnected",
        http_status=499,
        error_code="client_disconnected",
        input_price_per_mtok=Decimal("0.15"),
        output_price_per_mtok=Decimal("12.34567891"),
    )

    page = console.get(f"/console/requests/{row.request_id}").content.decode()

    said = text_of(page, "sum")
    assert "Input 1,234 / 1,000,000 × 0.15 = 0.00018510000000" in said  # noqa: RUF001
    assert "Output 56 / 1,000,000 × 12.34567891 = 0.00069135801896" in said  # noqa: RUF001
    assert "0.00087645801896" in said
    everything = words(page)
    assert "of which reasoning 7" in everything
    assert "Output, delivered 40" in everything
    assert "499 client_disconnected" in everything
    assert "2026-11-05T10:00:00.123Z" in everything
    assert f"checkout {key.api_key.prefix}…" in everything
    assert "not in the sample" in everything


def test_the_independent_count_is_shown_where_there_is_one(console: Client, insert: Insert) -> None:
    row = insert(
        "2026-11-05T10:00:00",
        svc_counted_input_tokens=11,
        svc_counted_output_tokens=12,
        reconciliation="diverged",
        reconciliation_divergence="0.0800",
    )

    said = words(console.get(f"/console/requests/{row.request_id}").content.decode())

    assert "diverged, divergence 0.0800" in said
    assert "Input, counted independently 11" in said


def test_another_organizations_request_is_not_there(
    console: Client, insert: Insert, stranger: Organization
) -> None:
    foreign = insert("2026-11-05T10:00:00", organization_id=str(stranger.pk))

    found = console.get(f"/console/requests/{foreign.request_id}")
    nothing = console.get("/console/requests/req_" + "0" * 32)

    assert found.status_code == nothing.status_code == 404
    assert words(found.content.decode()) == words(nothing.content.decode())


@pytest.mark.parametrize("typed", ["{}", " {} "])
def test_a_request_is_found_by_its_id(console: Client, insert: Insert, typed: str) -> None:
    row = insert("2026-11-05T10:00:00")

    answer = console.get("/console/requests", {"request_id": typed.format(row.request_id)})

    assert answer["location"] == f"/console/requests/{row.request_id}"


@pytest.mark.parametrize("typed", ["../keys", "req_/x", "req_ä?x=1"])
def test_an_id_that_is_none_leads_nowhere(console: Client, typed: str) -> None:
    answer = console.get("/console/requests", {"request_id": typed}, follow=True)

    assert answer.status_code == 404
