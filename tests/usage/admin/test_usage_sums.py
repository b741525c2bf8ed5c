"""The operators' page of usage over all organizations, and its CSV."""

from __future__ import annotations

import csv
import re
import uuid
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html import unescape
from typing import Any
from urllib.parse import parse_qsl

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.keys.keys import mint
from accounts.models import Organization, Scope
from core.ids import NIL_UUID
from tests.support.builders.receipts import receipt
from tests.support.pages.admin_forms import logged_in, text_of
from tests.support.pages.admin_forms import operator as operator_with
from usage.ledger import rows
from usage.models import SpeechDay
from usage.queries import days

PAGE = "/admin/usage/usagerow/sums/"
QUERIES = 13


def write(at: datetime, **facts: Any) -> None:
    prices = {"input_price_per_mtok": Decimal("0.15"), "output_price_per_mtok": Decimal("0.60")}
    rows.insert([receipt(**{**prices, **facts})], at)


def ask(client: Client, **parameters: str) -> HttpResponse:
    answer = client.get(PAGE, parameters)
    assert isinstance(answer, HttpResponse)
    return answer


def lines(client: Client, **parameters: str) -> list[dict[str, str]]:
    answer = ask(client, format="csv", **parameters)
    assert answer.status_code == 200
    assert answer["content-type"].startswith("text/csv")
    return list(csv.DictReader(answer.content.decode().splitlines()))


NOON = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)
NOVEMBER = {"first": "2026-11-01", "last": "2026-11-30"}


def test_sums_by_organization_are_exact_and_dearest_first(operator: Client) -> None:
    small = Organization.objects.create(name="small")
    large = Organization.objects.create(name="large")
    for organization, tokens in ((small, 7), (large, 1_000_001), (large, 2)):
        write(
            NOON,
            organization_id=str(organization.pk),
            backend_reported_input_tokens=tokens,
            backend_reported_output_tokens=0,
        )

    found = lines(operator, by="organization", **NOVEMBER)

    named = ["organization_id", "organization", "requests", "input_tokens", "output_tokens"]
    columns = [*named, "cost", "currency", "failed", "cost_before"]
    speech = [f"speech_{name}" for name in ("requests", "characters", "audio_ms")]
    assert [list(line) for line in found] == [[*columns, *speech]] * 2
    assert [list(line.values())[:7] for line in found] == [
        [str(large.pk), "large", "2", "1000003", "0", "0.15000045000000", "USD"],
        [str(small.pk), "small", "1", "7", "0", "0.00000105000000", "USD"],
    ]


def test_days_are_whole_utc_days_and_the_last_is_included(operator: Client) -> None:
    for at in (
        datetime(2026, 10, 31, 23, 59, 59, tzinfo=UTC),
        datetime(2026, 11, 1, 0, 0, tzinfo=UTC),
        datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC),
        datetime(2026, 12, 1, 0, 0, tzinfo=UTC),
    ):
        write(at)

    found = lines(operator, by="day", **NOVEMBER)

    assert {line["day"]: line["requests"] for line in found} == {
        "2026-11-01": "1",
        "2026-11-30": "1",
    }


def test_days_that_were_summed_do_not_count_twice(operator: Client) -> None:
    write(NOON - timedelta(days=10))
    days.sum_closed_days()
    write(NOON - timedelta(days=10))

    assert [line["requests"] for line in lines(operator, by="model", **NOVEMBER)] == ["2"]


def test_a_price_change_and_a_second_currency_stay_apart(operator: Client) -> None:
    cheap = {"backend_reported_input_tokens": 1_000_000, "backend_reported_output_tokens": 0}
    write(NOON, **cheap)
    write(NOON, **cheap, input_price_per_mtok=Decimal("0.25"))
    write(NOON, **cheap, input_price_per_mtok=Decimal(3), price_currency="EUR")

    found = lines(operator, by="model", **NOVEMBER)

    assert [(line["cost"], line["currency"], line["requests"]) for line in found] == [
        ("3.00000000000000", "EUR", "1"),
        ("0.40000000000000", "USD", "2"),
    ]


@pytest.mark.parametrize("sign", ["=", "\uff1d"])
def test_keys_are_named_and_a_use_without_a_key_is_said(operator: Client, sign: str) -> None:
    organization = Organization.objects.create(name=f"{sign}Northwind")
    key = mint(organization, Scope.INFERENCE, "checkout").api_key
    for key_id in (str(key.pk), str(NIL_UUID)):
        write(NOON, organization_id=str(organization.pk), api_key_id=key_id)
    gone = str(uuid.uuid4())
    write(NOON, organization_id=gone)

    page = ask(operator, by="key", **NOVEMBER).content.decode()
    found = lines(operator, by="key", **NOVEMBER)

    assert f'href="/admin/accounts/apikey/{key.pk}/change/">{key.prefix}… checkout</a>' in page
    assert {line["api_key"] for line in found} == {f"{key.prefix}… checkout", "without a key"}
    # A spreadsheet must not read a name as a formula.
    organizations = {line["organization"] for line in found}
    assert organizations == {f"'{sign}Northwind", f"{gone} (no longer here)"}


def test_failures_speech_and_the_change_against_the_month_before_are_shown(
    operator: Client,
) -> None:
    grown, lost, speaker = (
        Organization.objects.create(name=name) for name in ("grown", "lost", "speaker")
    )
    dollar = {"backend_reported_input_tokens": 1_000_000, "input_price_per_mtok": Decimal(1)}
    free = {"backend_reported_output_tokens": 0}
    october = datetime(2026, 10, 31, 23, tzinfo=UTC)
    for at, organization, outcome in (
        (october, grown, "success"),
        (october, lost, "success"),
        (datetime(2026, 9, 30, 23, tzinfo=UTC), grown, "success"),
        (NOON, grown, "success"),
        (NOON, grown, "success"),
        (NOON, grown, "backend_timeout"),
        (NOON, grown, "client_disconnected"),
    ):
        write(at, organization_id=str(organization.pk), outcome=outcome, **dollar, **free)
    SpeechDay.objects.create(
        organization_id=speaker.pk, day=NOON.date(), requests=3, characters=1200, audio_ms=5
    )

    shown = text_of(ask(operator, by="organization", **NOVEMBER))
    found = {line["organization"]: line for line in lines(operator, **NOVEMBER)}

    assert "against 1 Oct 2026 to 31 Oct 2026" in shown
    assert "grown 4.00 USD +300 % 4 1 " in shown
    assert "lost 0.00 USD −100 % 0 – " in shown  # noqa: RUF001  # a dash in a cell
    assert "speaker 0.00 USD – 0 – 0 0 3 1,200 " in shown  # noqa: RUF001  # a dash in a cell
    assert "Total 4.00 USD +100 % 4 1 4.00 M 0 3 1,200" in shown
    assert found["grown"]["cost_before"] == "1.00000000000000"
    assert (found["grown"]["failed"], found["speaker"]["speech_characters"]) == ("1", "1200")
    assert "3 speech requests with 1,200 characters" in text_of(
        ask(operator, by="model", **NOVEMBER)
    )
    ten_days = ask(operator, first="2026-11-11", last="2026-11-20")
    assert "against 1 Nov 2026 to 10 Nov 2026" in text_of(ten_days)


def test_the_days_are_a_chart_whose_bars_lead_to_them(operator: Client) -> None:
    organization = Organization.objects.create(name="Northwind")
    write(NOON, organization_id=str(organization.pk))

    page = ask(operator, by="key", **NOVEMBER).content.decode()

    bar = re.search(r'<a class="bar[^"]*" href="([^"]+)" aria-label="([^"]+)"', page)
    assert bar is not None
    assert bar[2].startswith("20 Nov 2026: ")
    assert "Northwind" in bar[2]
    assert lines(operator, **dict(parse_qsl(unescape(bar[1]).lstrip("?"))))[0]["requests"] == "1"


def test_one_organization_can_be_chosen(operator: Client) -> None:
    mine, other = (Organization.objects.create(name=name) for name in ("mine", "other"))
    for organization in (mine, other):
        write(NOON, organization_id=str(organization.pk))

    found = lines(operator, by="organization", organization=str(mine.pk), **NOVEMBER)

    assert [line["organization"] for line in found] == ["mine"]
    for chosen, name in ((str(mine.pk), "mine-by-model"), ("", "by-model")):
        answer = ask(operator, format="csv", by="model", organization=chosen, **NOVEMBER)
        file = f"usage-{name}-2026-11-01-2026-11-30.csv"
        assert answer["content-disposition"] == f'attachment; filename="{file}"'


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"first": "2026-11-30", "last": "2026-11-01"}, "This day is before the first one."),
        ({"first": "2025-01-01", "last": "2026-11-01"}, "A period has at most 366 days."),
        ({"organization": "x"}, "is not a valid UUID."),
    ],
)
def test_a_wrong_choice_is_explained_at_its_field(
    operator: Client, parameters: dict[str, str], message: str
) -> None:
    answer = ask(operator, **parameters)

    assert answer.status_code == 400
    assert message in answer.content.decode()


@pytest.mark.parametrize(("right", "status"), [("speechrow", 403), ("usagerow", 200)])
def test_the_right_to_view_the_ledger_is_required(db: None, right: str, status: int) -> None:
    assert ask(logged_in(operator_with(f"usage.view_{right}"))).status_code == status


def test_the_page_asks_a_fixed_number_of_queries(operator: Client) -> None:
    for number in range(12):
        organization = Organization.objects.create(name=f"organization {number}")
        key = mint(organization, Scope.INFERENCE, "x").api_key
        write(NOON, organization_id=str(organization.pk), api_key_id=str(key.pk))

    with CaptureQueriesContext(connection) as asked:
        ask(operator, by="key", **NOVEMBER)

    assert len(asked) == QUERIES, [query["sql"][:80] for query in asked]
