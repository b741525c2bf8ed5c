"""The usage page: the API's numbers, filters that are kept, links to the same rows, and totals as CSV."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import shlex
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from accounts.keys.keys import NewKey, mint
from accounts.models import Organization, Scope
from core.ids import NIL_UUID
from tests.support.pages.console import NOVEMBER, Insert, moment, page_at, text_of, words
from usage.models import ThrottleCount
from usage.templatetags.formats import tokens_text

PAGE = f"/console/northwind/usage?{NOVEMBER}"


@pytest.fixture
def traffic(insert: Insert, key: NewKey) -> None:
    """Two models, one key and none, reasoning, a disconnect."""
    insert(
        "2026-11-03T10:20:00",
        api_key_id=str(key.api_key.pk),
        backend_reported_input_tokens=1_000_000,
        backend_reported_output_tokens=200,
        backend_reported_reasoning_tokens=50,
        generated_output_tokens=200,
        delivered_output_tokens=120,
        outcome="client_disconnected",
    )
    insert(
        "2026-11-03T23:59:59.999",
        model_identifier="acme/mini",
        backend_reported_input_tokens=500,
        backend_reported_output_tokens=100,
        input_price_per_mtok=Decimal("0.04"),
        output_price_per_mtok=Decimal("0.12"),
    )
    insert("2026-10-31T23:59:59.999", backend_reported_output_tokens=7)


def api(console: Client, query: str = NOVEMBER) -> dict[str, Any]:
    found: dict[str, Any] = console.get(f"/v1/usage?{query}").json()
    return found


def test_failures_and_times_over_time_are_those_of_all_requests(
    console: Client, insert: Insert
) -> None:
    for hour in range(3):
        insert(f"2026-11-05T0{hour}:30:00", total_duration_ms=900)
        insert(f"2026-11-06T0{hour}:30:00", outcome="backend_timeout", http_status=503)
    insert("2026-11-06T04:00:00", outcome="client_disconnected", http_status=499)

    page = page_at(console, PAGE)

    assert "42.9 % of 7" in words(page)
    said = text_of(page, "endings")
    assert "5 Nov 2026 3 0" in said
    assert "6 Nov 2026 4 3" in said
    assert 'data-tip="6 Nov 2026: 3 of 4 failed (75.0 %)"' in page
    assert 'data-tip="5 Nov 2026: duration, p95 9' in page


@pytest.mark.usefixtures("traffic")
@pytest.mark.parametrize("filtered", ["", "&model=acme/mini", f"&api_key_id={NIL_UUID}"])
def test_the_cards_show_the_numbers_of_the_api(console: Client, filtered: str) -> None:
    page = page_at(console, PAGE + filtered)

    summary = api(console, NOVEMBER + filtered)
    tokens = summary["tokens"]
    assert text_of(page, "requests") == f"{summary['requests']:,}"
    assert text_of(page, "input-tokens") == tokens_text(tokens["backend_reported_input"])
    assert text_of(page, "output-tokens") == tokens_text(tokens["backend_reported_output"])
    reasoning = tokens["backend_reported_reasoning"]
    assert (f"of which reasoning {reasoning}" in words(page)) == bool(reasoning)
    assert f'<span class="whole">{summary["cost"]["total"]} USD</span>' in page
    assert "provisional" in page


def test_the_id_of_a_foreign_key_reveals_nothing(
    console: Client, insert: Insert, stranger: Organization
) -> None:
    foreign = mint(stranger, Scope.INFERENCE, "their secret project").api_key
    rows_before = page_at(console, PAGE)
    assert text_of(rows_before, "requests") == "0"
    # A row can name a key that has left the organization since.
    insert("2026-11-05T10:00:00", api_key_id=str(foreign.pk))

    page = page_at(console, f"{PAGE}&api_key_id={foreign.pk}")

    assert "not a key of this organization" in words(page)
    assert "their secret project" not in page
    assert foreign.prefix not in page


@pytest.mark.parametrize("page", ["usage", "requests"])
def test_pages_show_nothing_of_other_organizations(
    console: Client, stranger: Organization, insert: Insert, page: str
) -> None:
    insert("2026-11-05T10:00:00", organization_id=str(stranger.pk), model_identifier="their/model")

    assert "their/model" not in page_at(console, f"/console/{page}?{NOVEMBER}")


@pytest.mark.usefixtures("traffic")
def test_filters_are_kept_by_every_link(console: Client, key: NewKey) -> None:
    page = page_at(console, f"{PAGE}&model=acme/demo-8b&api_key_id={key.api_key.pk}&bucket=hour")

    kept = [f"api_key_id={key.api_key.pk}", "model=acme%2Fdemo-8b", "bucket=hour"]
    presets = [link for link in links(page) if link.startswith("?")]
    assert len(presets) >= 4 + 3
    for link in presets:
        assert all(part in link for part in kept), link
    tab = next(link for link in links(page) if link.startswith("/console/northwind/requests?"))
    assert all(part in tab for part in (*kept, "start=2026-11-01", "end=2026-12-01"))
    assert "<option selected>acme/demo-8b</option>" in page
    assert f'<option value="{key.api_key.pk}" selected>' in page
    assert '<input id="start" name="start" type="date" value="2026-11-01">' in page


def links(page: str) -> Iterator[str]:
    return (html.unescape(link) for link in re.findall(r'href="([^"]*)"', page))


@pytest.mark.usefixtures("traffic")
def test_the_downloads_are_the_rows_that_the_page_counts(console: Client) -> None:
    page = page_at(console, f"{PAGE}&model=acme/mini")
    addresses = [link for link in links(page) if link.startswith("/v1/usage/export")]

    (address,) = addresses
    assert console.get(address)["content-type"].startswith("text/csv")
    same = console.get(address.replace("format=csv", "format=json")).json()
    assert [row["model_identifier"] for row in same["rows"]] == ["acme/mini"]


@pytest.mark.usefixtures("traffic")
def test_the_curl_command_requests_the_rows_of_the_page(console: Client) -> None:
    page = page_at(console, f"{PAGE}&model=acme/mini")

    command = shlex.split(text_of(page, "curl").replace("\\ ", ""))
    assert command[0] == "curl"
    path = command[1].removeprefix("http://testserver")
    answer = console.get(path).json()
    assert answer["filters"]["model"] == "acme/mini"
    assert answer["requests"] == 1
    assert set(answer["breakdowns"]) == {"model", "api_key"}


def test_missing_counts_are_shown_as_not_measured_and_never_zero(
    console: Client, settings: Settings
) -> None:
    settings.SVC_THROTTLE_COUNTERS = False

    said = text_of(page_at(console, "/console/northwind/usage"), "throttled")

    assert "Not measured" in said
    assert "0" not in said


@pytest.mark.usefixtures("traffic")
def test_limits_that_refused_nothing_take_no_card(console: Client) -> None:
    assert 'id="throttled"' not in page_at(console, PAGE)


def test_counted_refusals_are_shown_by_limit(console: Client, organization: Organization) -> None:
    ThrottleCount.objects.create(
        organization_id=organization.pk,
        hour=moment("2026-11-05T10:00:00"),
        api_key_id=NIL_UUID,
        model_identifier="acme/demo-8b",
        limit_scope="tokens",
        count=41,
    )

    said = text_of(page_at(console, PAGE), "throttled")

    assert "41 requests refused" in said
    assert "acme/demo-8b: 41 over the limit on tokens" in said


def test_mixed_currencies_are_shown_and_not_added(console: Client, insert: Insert) -> None:
    for currency, tokens in (("USD", 1_000_000), ("EUR", 2_000_000)):
        insert(
            "2026-11-05T10:00:00",
            backend_reported_input_tokens=tokens,
            backend_reported_output_tokens=0,
            input_price_per_mtok=Decimal(3),
            price_currency=currency,
        )

    page = page_at(console, PAGE)

    assert text_of(page, "cost") == "6.00 EUR 3.00 USD"
    assert "there is no single total" in page
    assert "cannot be stacked" in page
    assert "<rect class" not in page.partition('id="endings"')[0]
    assert "<rect class" in page_at(console, f"{PAGE}&metric=tokens")


def test_an_empty_period_says_so(console: Client) -> None:
    page = page_at(console, PAGE)

    assert "No requests in this period" in page
    assert text_of(page, "cost").startswith("0.00 USD")


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("start=2026-11-02&end=2026-11-01", "period_inverted"),
        ("start=2026-01-01&end=2026-12-01", "period_too_long"),
        ("start=yesterday", "invalid_query"),
        ("api_key_id=svc_live_abc", "invalid_query"),
        ("bucket=minute", "invalid_query"),
    ],
)
@pytest.mark.parametrize("page", ["usage", "requests"])
def test_invalid_filters_are_explained_and_kept(
    console: Client, page: str, query: str, code: str
) -> None:
    shown = page_at(console, f"/console/{page}?{query}&model=acme/mini", 400)

    assert f"<code>{code}</code>" in shown
    assert json.loads(console.get(f"/v1/usage?{query}").content)["error"]["code"] == code
    assert "<option selected>acme/mini</option>" in shown


@pytest.mark.parametrize(
    ("start", "within", "end"),
    [
        ("0001-01-01", "0001-02-03", "0001-03-01"),
        ("9999-12-01", "9999-12-31T23:59", "9999-12-31T23:59:59.999Z"),
    ],
)
def test_the_ends_of_the_calendar_are_periods_too(
    console: Client, insert: Insert, start: str, within: str, end: str
) -> None:
    insert(within)

    page = page_at(console, f"/console/northwind/usage?start={start}&end={end}&metric=tokens")

    assert text_of(page, "requests") == "1"
    assert f"start={start}" in next(link for link in links(page) if "/usage/export" in link)


def test_text_of_a_caller_is_escaped(console: Client, insert: Insert) -> None:
    insert("2026-11-05T10:00:00", model_identifier="<script>alert(1)</script>")

    for address in (
        PAGE,
        f"/console/northwind/requests?{NOVEMBER}",
        f"{PAGE}&model=<script>alert(2)",
    ):
        page = page_at(console, address)
        assert "<script>alert" not in page


def totals(console: Client, query: str) -> list[dict[str, str]]:
    answer = console.get(f"/console/northwind/usage/totals.csv?{NOVEMBER}&{query}")
    assert answer.status_code == 200
    assert answer["content-type"] == "text/csv; charset=utf-8"
    name = f"usage-northwind-{query.replace('=', '-')}-2026-11-01-2026-12-01.csv"
    assert answer["content-disposition"] == f'attachment; filename="{name}"'
    return list(csv.DictReader(io.StringIO(answer.content.decode())))


@pytest.mark.parametrize(("by", "lines"), [("day", 2), ("model", 2), ("key", 2)])
def test_lines_add_up_to_the_summary(
    console: Client,
    organization: Organization,
    stranger: Organization,
    insert: Insert,
    by: str,
    lines: int,
) -> None:
    key = str(mint(organization, Scope.INFERENCE, "checkout").api_key.pk)
    for day, model in (("03", "acme/a"), ("03", "acme/b"), ("04", "acme/a")):
        insert(f"2026-11-{day}T10:20:00", model_identifier=model, backend_reported_input_tokens=777)
    insert("2026-11-04T11:00:00", api_key_id=key, model_identifier="acme/b")
    insert("2026-11-04T11:00:00", organization_id=str(stranger.pk))

    found = totals(console, f"by={by}")

    summary = console.get(f"/v1/usage?{NOVEMBER}").json()
    assert len(found) == lines
    assert sum(int(each["requests"]) for each in found) == summary["requests"] == 4
    assert sum(Decimal(each["cost"]) for each in found) == Decimal(summary["cost"]["total"])
    tokens = summary["tokens"]
    assert sum(int(each["output_tokens"]) for each in found) == tokens["backend_reported_output"]


@pytest.mark.parametrize("label", ["=HYPERLINK(1)", "\uff1dHYPERLINK(1)"])
def test_a_label_is_never_a_formula(
    console: Client, organization: Organization, insert: Insert, label: str
) -> None:
    key = mint(organization, Scope.INFERENCE, label).api_key
    insert("2026-11-04T11:00:00", api_key_id=str(key.pk))

    (line,) = totals(console, "by=key")

    assert line["api_key_label"] == f"'{label}"


def test_currencies_are_not_added(console: Client, insert: Insert) -> None:
    for currency in ("USD", "EUR"):
        insert("2026-11-04T11:00:00", price_currency=currency)

    assert [line["currency"] for line in totals(console, "by=model")] == ["EUR", "USD"]
