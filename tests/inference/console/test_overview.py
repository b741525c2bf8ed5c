"""The overview: this month's figures, health, limits, ending models, and the first steps."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal

import pytest
from django.test import Client

from accounts.keys.keys import NewKey
from accounts.models import Organization
from core import clock
from inference.catalog import lifecycle
from tests.support.builders import catalog_rows
from tests.support.builders.receipts import speech_receipt
from tests.support.pages.console import Insert, ago, moment, page_at, text_of, words
from tests.usage.console.test_requests import listed
from usage.ledger import rows
from usage.queries import month
from usage.queries.health import BusiestMinute, sample
from usage.queries.periods import Period
from usage.queries.selection import Filters

MILLION = {
    "backend_reported_input_tokens": 1_000_000,
    "backend_reported_output_tokens": 0,
    "input_price_per_mtok": Decimal(1),
}
"""A request that costs one dollar."""


def test_the_month_is_compared_with_the_same_time_of_last_month(
    organization: Organization, insert: Insert
) -> None:
    now = clock.now().replace(year=2026, month=11, day=11, hour=12, minute=30, second=0)
    for at in (
        *("2026-10-05T10:00:00", "2026-10-11T11:59:00"),  # within the same days
        "2026-10-11T12:01:00",  # in the hour that is not over
        *(f"2026-11-{day:02d}T10:00:00" for day in range(4, 12)),
    ):
        insert(at, **MILLION)

    found = month.month_so_far(str(organization.pk), now, "USD")

    (spending,) = found.spendings
    assert (found.requests_today, found.requests, found.requests_before) == (1, 8, 2)
    assert [spending.today, spending.month, spending.before] == [*map(Decimal, (1, 8, 2))]
    # Seven whole days at a dollar a day, then 19 more days and 11.5 hours.
    assert spending.forecast == pytest.approx(8 + 19 + Decimal("11.5") / 24)


def test_there_is_no_forecast_before_a_whole_day(
    organization: Organization, insert: Insert
) -> None:
    now = clock.now().replace(year=2026, month=11, day=11, hour=12)
    insert("2026-11-11T10:00:00", **MILLION)

    (spending,) = month.month_so_far(str(organization.pk), now, "USD").spendings

    assert spending.forecast is None
    assert spending.month == 1


def test_the_page_shows_the_requests_of_today(console: Client, insert: Insert) -> None:
    insert(ago(), **MILLION)

    page = page_at(console, "/console/")

    assert text_of(page, "today-requests") == "1 request"
    assert text_of(page, "today-cost") == "1.00 USD"
    assert text_of(page, "month-cost") == "1.00 USD"


def test_failures_are_counted_and_lead_to_their_requests(console: Client, insert: Insert) -> None:
    for number in range(9):
        insert(ago(minutes=number + 1), time_to_first_token_ms=100 + number, total_duration_ms=900)
    failed = insert(ago(minutes=1), outcome="backend_timeout", http_status=503)

    page = page_at(console, "/console/")

    said = text_of(page, "health")
    assert "1 of 10 (10.0 %)" in said
    # Of the step from 100 to 160 ms, in which all are.
    assert "First token, median 126 ms" in said
    assert "First token, p95 156 ms" in said
    assert re.search(r"[12] of \d+ failed|1 of 1 failed", page)
    link = re.search(r'href="(/console/northwind/requests\?outcome=failed[^"]*)"', page)
    assert link is not None
    assert listed(page_at(console, link[1].replace("&amp;", "&"))) == [failed.request_id]


def test_the_busiest_minute_is_that_of_one_clock_minute_key_and_model(
    organization: Organization, insert: Insert, key: NewKey
) -> None:
    own = {"api_key_id": str(key.api_key.pk), "model_identifier": "acme/own"}
    few = {"backend_reported_input_tokens": 10, "backend_reported_output_tokens": 1}
    for at, facts in (
        ("2026-11-05T10:00:00.000", {}),
        ("2026-11-05T10:00:59.999", own),
        ("2026-11-05T10:01:00.000", own),
        ("2026-11-05T10:01:30.000", own | {"backend_reported_output_tokens": 90}),
        ("2026-11-05T10:01:59.000", {}),
    ):
        insert(at, **{**few, **facts})
    day = Period(moment("2026-11-05T00:00:00"), moment("2026-11-06T00:00:00"))

    found = sample(str(organization.pk), day)

    assert found.busiest_minute() == BusiestMinute(3, 122)
    assert found.busiest_minute(api_key_id=key.api_key.pk) == BusiestMinute(2, 111)
    assert found.busiest_minute(model="acme/own") == BusiestMinute(2, 111)
    assert found.busiest_minute(model="acme/other") == BusiestMinute(0, 0)
    of_key = sample(str(organization.pk), day, Filters(api_key_id=str(key.api_key.pk)))
    assert of_key.busiest_minute() == BusiestMinute(2, 111)


def test_limits_stand_beside_the_busiest_minute(
    console: Client, organization: Organization, insert: Insert, key: NewKey
) -> None:
    organization.requests_per_minute = 4
    organization.tokens_per_minute = 1_000_000
    organization.save()
    key.api_key.requests_per_minute = 2
    key.api_key.save()
    minute = (clock.now() - timedelta(hours=2)).replace(second=1, microsecond=0, tzinfo=None)
    for _ in range(3):
        insert(minute.isoformat())
    insert(minute.isoformat(), api_key_id=str(key.api_key.pk))

    said = text_of(page_at(console, "/console/"), "limits")

    assert "Requests a minute 4 of 4" in said
    assert re.search("Tokens a minute [1-9][0-9,]* of 1,000,000", said)
    assert "Key checkout, requests a minute 1 of 2" in said
    assert "Key checkout, tokens" not in said
    # A refused request may have had another cause, such as a wrong body, which is not counted here.
    assert "No request was over a limit." in said


@pytest.mark.parametrize(
    ("quota", "said"),
    [
        (100_000, "Speech today 12,345 of 100,000 characters"),
        (12_345, "Speech today 12,345 of 12,345 characters"),
        (None, ""),
    ],
)
def test_todays_characters_stand_against_the_quota(
    console: Client,
    organization: Organization,
    stranger: Organization,
    quota: int | None,
    said: str,
) -> None:
    organization.speech_characters_per_day = quota
    organization.save()
    today = clock.now().date()
    for owner, characters, days, outcome in (
        (organization, 12_000, 0, "success"),
        (organization, 345, 0, "client_disconnected"),
        (organization, 7_777, 1, "success"),
        (stranger, 50_000, 0, "success"),
    ):
        day = str(today - timedelta(days=days))
        facts = {"day": day, "characters": characters, "outcome": outcome}
        rows.insert([speech_receipt(organization_id=str(owner.pk), **facts)])

    shown = text_of(page_at(console, "/console/"), "limits")

    assert said in shown
    assert ("Speech today" in shown) is bool(said)


def test_an_ending_model_names_its_successor_and_the_keys_that_still_call_it(
    console: Client, insert: Insert, key: NewKey, stranger: Organization
) -> None:
    entry, successor = catalog_rows.published("acme/old"), catalog_rows.published("acme/new")
    lifecycle.supersede(entry, successor, clock.now() + timedelta(days=27, hours=1))
    assert "acme/old" not in words(page_at(console, "/console/")).replace("acme/old-", "")
    insert(ago(hours=3), model_identifier="acme/old", api_key_id=str(key.api_key.pk))
    insert(ago(days=9), model_identifier="acme/old")
    insert(ago(hours=3), model_identifier="acme/old", organization_id=str(stranger.pk))

    said = words(page_at(console, "/console/"))

    assert "acme/old ends on" in said
    assert "27 days left" in said
    assert "Move to acme/new" in said
    assert f"checkout {key.api_key.prefix}… , 1 request, last after" in said
    assert "without a key" not in said


def test_the_first_steps_are_shown_until_there_was_a_request(
    console: Client, insert: Insert
) -> None:
    catalog_rows.published("acme/demo-8b")
    steps = text_of(page_at(console, "/console/"), "first-steps")
    assert "Create an API key" in steps
    assert "curl http://testserver/v1/chat/completions" in steps
    assert '"model": "acme/demo-8b"' in steps

    insert(ago(minutes=1))

    page = page_at(console, "/console/")
    assert 'id="first-steps"' not in page
    assert "/v1/chat/completions" not in page


def test_without_a_model_the_steps_say_so(console: Client, db: None) -> None:
    assert "No model is served yet" in words(page_at(console, "/console/"))


def test_the_overview_shows_nothing_of_other_organizations(
    console: Client, stranger: Organization, insert: Insert
) -> None:
    insert(ago(minutes=1), organization_id=str(stranger.pk), model_identifier="their/model")

    page = page_at(console, "/console/")

    assert "their/model" not in page
    assert text_of(page, "today-requests") == "0 requests"
    assert 'id="first-steps"' in page
