"""The requests: a list that pages backwards in time, and the page of one request."""

from __future__ import annotations

import html
import json
import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from accounts.keys.keys import NewKey, mint
from accounts.models import Organization, Scope
from tests.support.builders.receipts import speech_receipt
from tests.support.pages.console import NOVEMBER, Insert, moment, page_at, text_of, words
from usage.ledger import rows
from usage.queries import latest

PAGE = "/console/northwind/requests"
LIST = f"{PAGE}?{NOVEMBER}"


def listed(page: str) -> list[str]:
    return re.findall(r'href="/console/northwind/requests/(req_\w+)"', page)


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
    link: str | None = LIST.removeprefix("/console/northwind/requests")
    while link is not None:
        page = page_at(console, f"{PAGE}{link}")
        seen += listed(page)
        link = older(page)
        insert("2026-11-20T00:00:00")

    assert len(seen) == len(set(seen))
    assert set(seen) == set(written)


def test_an_invalid_cursor_is_explained(console: Client) -> None:
    assert "<code>invalid_cursor</code>" in page_at(console, f"{LIST}&cursor=nonsense", 400)


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
        model_server="gpu-1",
        attempts=2,
        queue_ms=40,
        total_duration_ms=300,
    )

    page = page_at(console, f"{PAGE}/{row.request_id}")

    said = text_of(page, "sum")
    assert "Input 1,234 / 1,000,000 × 0.15 = 0.00018510000000" in said  # noqa: RUF001
    assert "Output 56 / 1,000,000 × 12.34567891 = 0.00069135801896" in said  # noqa: RUF001
    assert "0.00087645801896" in said
    everything = words(page)
    assert "Of which reasoning 7" in everything
    assert "Delivered output 40" in everything
    assert "counted independently" not in everything
    assert "499 client_disconnected" in everything
    assert f"checkout {key.api_key.prefix}…" in everything
    assert "Model server gpu-1, 2 attempts" in everything
    assert "waited for a slot: 40 ms until the end: 260 ms" in everything


def test_a_request_without_any_token_shows_no_zeros(console: Client, insert: Insert) -> None:
    nothing = dict.fromkeys(
        (
            *("backend_reported_input_tokens", "backend_reported_output_tokens"),
            *("backend_reported_reasoning_tokens", "generated_output_tokens"),
            "delivered_output_tokens",
        ),
        0,
    )
    row = insert("2026-11-05T10:00:00", outcome="backend_unavailable", **nothing)

    page = page_at(console, f"/console/requests/{row.request_id}")

    assert "reported no tokens, so nothing is charged" in words(page)
    assert 'id="sum"' not in page
    assert 'id="counts"' not in page


def test_a_failed_request_has_a_text_for_support(console: Client, insert: Insert) -> None:
    row = insert("2026-11-05T10:00:00", outcome="backend_timeout", http_status=504)

    text = text_of(page_at(console, f"{PAGE}/{row.request_id}"), "support")

    assert text.startswith(f"Request: {row.request_id} Time: 2026-11-05T10:00:00")
    assert text.endswith(f"Model: {row.model_identifier} Status: 504 backend_timeout")


def test_the_independent_count_is_shown_where_there_is_one(console: Client, insert: Insert) -> None:
    row = insert(
        "2026-11-05T10:00:00",
        svc_counted_input_tokens=11,
        svc_counted_output_tokens=12,
        reconciliation="diverged",
        reconciliation_divergence="0.0800",
    )

    said = words(page_at(console, f"{PAGE}/{row.request_id}"))

    assert "Input, counted independently 11" in said
    assert '"reconciliation_divergence": "0.0800"' in said


def test_the_row_as_json_is_that_of_the_export(console: Client, insert: Insert) -> None:
    written = insert("2026-11-05T10:00:00.123", price_currency="EUR")
    insert("2026-11-05T10:00:00.123")

    page = console.get(f"/console/northwind/requests/{written.request_id}").content.decode()

    shown = json.loads(text_of(page, "row"))
    (same,) = (
        row
        for row in console.get(f"/v1/usage/export?{NOVEMBER}").json()["rows"]
        if row["request_id"] == written.request_id
    )
    assert shown == same
    assert shown["occurred_at"] == "2026-11-05T10:00:00.123Z"


def test_token_counts_lead_to_what_they_mean(console: Client, insert: Insert) -> None:
    row = insert("2026-11-05T10:00:00")

    page = console.get(f"/console/northwind/requests/{row.request_id}").content.decode()

    found = re.search(r'href="(/docs/guides/usage)#([^"]*)"', page)
    assert found is not None
    assert f'id="{found[2]}"' in console.get(found[1]).content.decode()


@pytest.mark.parametrize(
    ("came_from", "led_to"),
    [
        (
            "http://testserver/console/northwind/requests?outcome=failed&cursor=a%22b",
            "?outcome=failed&cursor=a%22b",
        ),
        ("http://testserver/console/northwind/usage?model=x", ""),
        ("http://elsewhere.example/console/northwind/requests?outcome=failed", ""),
        ("http://[broken", ""),
    ],
)
def test_a_request_leads_back_to_the_list_that_it_was_chosen_from(
    console: Client, insert: Insert, came_from: str, led_to: str
) -> None:
    row = insert("2026-11-05T10:00:00")

    page = console.get(f"{PAGE}/{row.request_id}", headers={"referer": came_from})

    address = html.escape(f"{PAGE}{led_to}")
    assert f'<p class="hint"><a href="{address}">Requests</a></p>' in page.content.decode()


def test_another_organizations_request_is_not_found(
    console: Client, insert: Insert, stranger: Organization
) -> None:
    foreign = insert("2026-11-05T10:00:00", organization_id=str(stranger.pk))

    found = console.get(f"{PAGE}/{foreign.request_id}")
    nothing = console.get("/console/northwind/requests/req_" + "0" * 32)

    assert found.status_code == nothing.status_code == 404
    assert words(found.content.decode()) == words(nothing.content.decode())


FACTS: list[tuple[str, dict[str, Any]]] = [
    ("outcome=failed", {"outcome": "backend_timeout", "http_status": 503}),
    ("http_status=502", {"outcome": "backend_error", "http_status": 502}),
    ("streamed=true", {"streamed": True}),
    ("min_duration=1500", {"total_duration_ms": 1500}),
    ("model=acme/mini", {"model_identifier": "acme/mini"}),
    (
        "min_cost=0.02",
        {"backend_reported_input_tokens": 100_000, "input_price_per_mtok": Decimal("0.2")},
    ),
    (
        "min_cost=1",  # a cost beyond 64 bits
        {
            "backend_reported_input_tokens": 2**40,
            "input_price_per_mtok": Decimal("9999999999.99999999"),
        },
    ),
]


@pytest.mark.parametrize(("filtered", "facts"), FACTS, ids=[each for each, _ in FACTS])
def test_a_filter_shows_the_requests_that_fit_it(
    console: Client, insert: Insert, filtered: str, facts: dict[str, Any]
) -> None:
    few = {"backend_reported_output_tokens": 0, "total_duration_ms": 10}
    for _ in range(3):
        insert("2026-11-05T10:00:00", **few)
    fitting = insert("2026-11-04T10:00:00", **{**few, **facts})

    page = page_at(console, f"{LIST}&{filtered}")

    assert listed(page) == [fitting.request_id]


@pytest.mark.parametrize(
    ("query", "is_open"),
    [
        ("", False),
        ("&outcome=failed", False),
        ("&http_status=502", True),
        ("&min_cost=much", True),
        ("&surface=speech&voice=ava", False),
        ("&surface=speech&min_characters=9", True),
    ],
)
def test_rare_filters_are_folded_while_none_is_set(
    console: Client, query: str, is_open: bool
) -> None:
    page = console.get(f"{LIST}{query}").content.decode()

    folded = re.search(r'<details class="more"( open)?>(.*?)</details>', page, re.DOTALL)
    assert folded is not None
    assert bool(folded[1]) is is_open
    assert 'name="http_status"' in folded[2]
    assert 'name="outcome"' not in folded[2]


def test_the_list_leads_to_its_sums_over_time(console: Client) -> None:
    query = "&surface=speech&voice=ava&http_status=502&outcome=failed"
    page = console.get(f"{LIST}{query}").content.decode()

    [link] = re.findall(r'href="(/console/[^"]*usage\?[^"]*)">usage over time', page)
    sums = console.get(link.replace("&amp;", "&"))
    assert sums.status_code == 200
    assert sums.wsgi_request.GET.dict() | {"start": "", "end": ""} == {
        "start": "",
        "end": "",
        "surface": "speech",
        "voice": "ava",
    }


def test_a_wrong_filter_is_explained_at_its_field(console: Client) -> None:
    page = page_at(console, f"{LIST}&min_cost=much&outcome=failed", 400)

    assert "Enter a number." in page
    assert '<option value="failed" selected>' in page


def test_a_rare_row_is_found_by_searching_on(
    console: Client, insert: Insert, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page searches a bounded number of rows, and leads on to the older ones."""
    monkeypatch.setattr(latest, "MOST_SEARCHED", 10)
    rare = insert("2026-11-01T10:00:00", outcome="backend_error", http_status=500)
    for minute in range(25):
        insert(f"2026-11-05T10:{minute // 2:02d}:00")

    link: str | None = f"?{NOVEMBER}&outcome=failed"
    seen: list[str] = []
    pages = 0
    while link is not None:
        page = page_at(console, f"{PAGE}{link}")
        seen += listed(page)
        link = older(page)
        pages += 1
        assert ("Searched back to" in page) == (link is not None)

    assert seen == [rare.request_id]
    assert pages == 3


def spoken(organization: Organization, at: str, **facts: Any) -> str:
    one = speech_receipt(**{"organization_id": str(organization.pk), "day": at[:10], **facts})
    rows.insert([one], moment(at))
    return one.request_id


def test_speech_requests_are_listed_filtered_and_shown(
    console: Client, organization: Organization, stranger: Organization, insert: Insert
) -> None:
    insert("2026-11-05T10:00:00")
    spoken(stranger, "2026-11-05T10:00:00")
    good = spoken(organization, "2026-11-05T10:00:00", voice="ava", characters=123)
    bad = spoken(
        organization,
        "2026-11-05T11:00:00",
        voice="emma",
        outcome="backend_timeout",
        http_status=504,
        error_type="server_error",
    )

    everything = page_at(console, f"{LIST}&surface=speech")
    failed = page_at(console, f"{LIST}&surface=speech&outcome=failed")
    by_voice = page_at(console, f"{LIST}&surface=speech&voice=ava")

    assert listed(everything) == [bad, good]
    assert listed(failed) == [bad]
    assert listed(by_voice) == [good]
    said = words(page_at(console, f"{PAGE}/{good}"))
    assert "Characters 123" in said
    assert "Voice ava" in said
    said = words(page_at(console, f"{PAGE}/{bad}"))
    assert "did not begin, continue or end its answer in time" in said


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("{row.request_id}", "requests/{row.request_id}"),
        (" {row.request_id} ", "requests/{row.request_id}"),
        ("{key.secret}", "keys/{key.api_key.pk}"),
        ("{key.api_key.prefix}", "keys/{key.api_key.pk}"),
        ("{key.api_key.prefix}…", "keys/{key.api_key.pk}"),
        ("../keys", None),
        ("req_/x", None),
        ("req_ä?x=1", None),
    ],
)
def test_a_request_is_found_by_its_id_and_a_key_by_its_secret_or_prefix(
    console: Client, insert: Insert, key: NewKey, typed: str, found: str | None
) -> None:
    """No address has the secret."""
    row = insert("2026-11-05T10:00:00")

    for send in (console.get, console.post):
        form = {"request_id": typed.format(row=row, key=key)}
        answer = send(PAGE, form, follow=found is None)
        if found is None:
            assert answer.status_code == 404
        else:
            assert answer["location"] == "/console/northwind/" + found.format(row=row, key=key)


@pytest.mark.parametrize("typed", ["{secret}", "{prefix}\0", "sk_\0", "svc_live_\0x"])
def test_what_is_no_key_of_the_organization_is_not_found(
    console: Client, stranger: Organization, typed: str
) -> None:
    """PostgreSQL refuses NUL in a text."""
    foreign = mint(stranger, Scope.INFERENCE)
    sent = typed.format(secret=foreign.secret, prefix=foreign.api_key.prefix)

    answer = console.post(PAGE, {"request_id": sent}, follow=True)

    assert answer.redirect_chain == [("/console/northwind/keys", 302)]
    assert "Northwind has no key that begins so." in words(answer.content.decode())
    assert foreign.secret not in answer.content.decode()
