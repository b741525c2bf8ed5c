"""GET /v1/usage against sums computed without the product (tests/support/builders/traffic.py)."""

from __future__ import annotations

import uuid
from datetime import datetime
from decimal import Decimal

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from accounts.keys import keys
from accounts.models import Organization, Scope
from tests.support.builders import traffic
from tests.support.builders.summary_ledger import ALL, NOVEMBER, Ledger, figures_of, utc
from tests.support.builders.traffic import DEMO, EURO, NIL
from tests.support.readers import signed_in

pytestmark = pytest.mark.django_db


PERIODS = {
    "a month": ("2026-11-01", "2026-12-01", utc(2026, 11, 1), utc(2026, 12, 1)),
    "parts of hours at both ends": (
        "2026-11-10T12:15:00.000Z",
        "2026-11-20T18:44:59.999Z",
        utc(2026, 11, 10, 12, 15),
        utc(2026, 11, 20, 18, 44, 59, 999_000),
    ),
    "inside one hour": (
        "2026-11-10T12:15:00Z",
        "2026-11-10T12:45:00Z",
        utc(2026, 11, 10, 12, 15),
        utc(2026, 11, 10, 12, 45),
    ),
    "a month as India sees it": (
        "2026-11-01T00:00:00+05:30",
        "2026-12-01T00:00:00+05:30",
        utc(2026, 10, 31, 18, 30),
        utc(2026, 11, 30, 18, 30),
    ),
    "a month as California sees it": (
        "2026-11-01T00:00:00-0700",
        "2026-12-01T00:00:00.000-08:00",
        utc(2026, 11, 1, 7),
        utc(2026, 12, 1, 8),
    ),
    "naive, which is UTC": (
        "2026-11-10T05:30:00",
        "2026-11-12 01:02",
        utc(2026, 11, 10, 5, 30),
        utc(2026, 11, 12, 1, 2),
    ),
    "93 days": ("2026-09-15", "2026-12-17", utc(2026, 9, 15), utc(2026, 12, 17)),
}


@pytest.mark.parametrize("bucket", ["hour", "day"])
@pytest.mark.parametrize(("start", "end", "first", "last"), PERIODS.values(), ids=PERIODS)
def test_every_sum_of_a_period_equals_that_of_its_rows(
    ledger: Ledger,
    reader: Client,
    bucket: str,
    start: str,
    end: str,
    first: datetime,
    last: datetime,
) -> None:
    query = {"start": start, "end": end, "bucket": bucket, "group_by": ALL}

    answer = reader.get("/v1/usage", query)

    assert figures_of(answer) == ledger.expected(first, last, bucket)


@pytest.mark.parametrize("period", ["a month", "parts of hours at both ends"])
@pytest.mark.parametrize(
    ("model", "key"),
    [
        *((model, None) for model in (DEMO, EURO, "acme/none")),
        *((None, key) for key in ("first", "departed", "nil", "unknown")),
        (DEMO, "first"),
    ],
)
def test_filters_leave_the_rows_that_fit_all_of_them(
    ledger: Ledger, reader: Client, model: str | None, key: str | None, period: str
) -> None:
    ids = {"first": str(ledger.first.pk), "departed": ledger.departed, "nil": NIL}
    key_id = key and ids.get(key, str(uuid.uuid4()))
    start, end, first, last = PERIODS[period]
    filters = {"model": model, "api_key_id": key_id and key_id.upper()}
    given = {name: value for name, value in filters.items() if value}

    answer = reader.get("/v1/usage", {"start": start, "end": end, "group_by": ALL, **given})

    expected = ledger.expected(
        first,
        last,
        chosen=lambda each: (
            model in (None, each.receipt.model_identifier)
            and key_id in (None, each.receipt.api_key_id)
        ),
    )
    assert answer.json()["filters"] == {"model": model, "api_key_id": key_id}
    assert figures_of(answer) == expected
    assert bool(expected["requests"]) == (model != "acme/none" and key != "unknown")


def test_currencies_that_mix_have_no_cost_but_an_entry_with_one_has(
    ledger: Ledger, reader: Client
) -> None:
    body = reader.get("/v1/usage", {**NOVEMBER, "group_by": ALL}).json()

    assert body["cost"] is None
    assert body["mixed_currency"] is True
    assert {entry["cost"]["currency"] for entry in body["breakdowns"]["model"]} == {"USD", "EUR"}
    assert not any("mixed_currency" in entry for entry in body["breakdowns"]["model"])
    mixed = [entry for entry in body["breakdowns"]["api_key"] if entry["cost"] is None]
    assert mixed
    assert all(entry["mixed_currency"] is True for entry in mixed)


def test_a_price_change_leaves_the_rows_before_it_at_the_older_price(
    organization: Organization, reader: Client
) -> None:
    for hour, price in ((1, "1"), (2, "10")):
        traffic.write(
            utc(2026, 11, 5, hour),
            organization_id=str(organization.pk),
            backend_reported_input_tokens=1_000_000,
            backend_reported_output_tokens=0,
            input_price_per_mtok=Decimal(price),
        )

    body = reader.get("/v1/usage", NOVEMBER).json()

    assert body["cost"]["input"] == "11.00000000000000"
    assert len(body["breakdowns"]["model"]) == 1


def test_sums_are_exact_where_floating_point_and_short_decimals_are_not(
    organization: Organization, reader: Client
) -> None:
    for number in range(3):
        traffic.write(
            utc(2026, 11, 5, number),
            organization_id=str(organization.pk),
            backend_reported_input_tokens=2**31 - 1,
            backend_reported_output_tokens=2**31 - 1,
            input_price_per_mtok=Decimal("9999999999.99999999"),
            output_price_per_mtok=Decimal("0.00000001"),
        )

    body = reader.get("/v1/usage", NOVEMBER).json()

    assert body["cost"]["input"] == "64424509409999.99993557549059"
    assert body["cost"]["output"] == "0.00006442450941"
    assert body["cost"]["total"] == "64424509410000.00000000000000"


def test_an_empty_period_costs_zero_in_the_default_currency(
    reader: Client, settings: Settings
) -> None:
    settings.SVC_DEFAULT_CURRENCY = "EUR"

    body = reader.get("/v1/usage", {**NOVEMBER, "group_by": ALL}).json()

    zero = "0.00000000000000"
    assert body["requests"] == 0
    assert set(body["tokens"].values()) == {0}
    assert body["cost"] == {
        "input": zero,
        "output": zero,
        "total": zero,
        "currency": "EUR",
        "provisional": True,
    }
    assert body["breakdowns"] == {"model": [], "api_key": [], "time": []}


def test_the_answer_has_exactly_the_contracts_fields_in_its_order(
    organization: Organization, reader: Client
) -> None:
    traffic.write(utc(2026, 11, 5), organization_id=str(organization.pk))

    answer = reader.get("/v1/usage", NOVEMBER)

    assert answer["content-type"] == "application/json"
    assert answer["x-request-id"].startswith("req_")
    body = answer.json()
    assert list(body) == [
        *("organization_id", "period", "filters", "requests", "tokens", "cost", "breakdowns"),
        *("throttled", "pricing", "cost_units"),
    ]
    assert body["organization_id"] == str(organization.pk)
    assert body["period"] == {
        "start": "2026-11-01T00:00:00.000Z",
        "end": "2026-12-01T00:00:00.000Z",
        "bucket": "day",
    }
    assert body["filters"] == {"model": None, "api_key_id": None}
    assert list(body["tokens"]) == [
        *("backend_reported_input", "backend_reported_output", "backend_reported_reasoning"),
        *("generated_output", "delivered_output", "svc_counted_input", "svc_counted_output"),
        "svc_counted_requests",
    ]
    assert list(body["cost"]) == ["input", "output", "total", "currency", "provisional"]
    assert list(body["breakdowns"]) == ["model"]
    assert list(body["breakdowns"]["model"][0]) == ["key", "requests", "tokens", "cost"]
    assert list(body["throttled"]) == ["source", "total", "by_limit_scope"]
    assert body["pricing"] == {
        "provisional": True,
        "billing_enabled": False,
        "reasoning_tokens_billed_as": "output",
        "reasoning_tokens_included_in_output": True,
    }
    assert body["cost_units"] == {
        "decimals": 14,
        "basis": "price_per_million_tokens_stamped_on_row",
    }


def test_billing_enabled_is_what_the_operator_set(reader: Client, settings: Settings) -> None:
    settings.SVC_BILLING_ENABLED = True

    assert reader.get("/v1/usage").json()["pricing"]["billing_enabled"] is True


def test_a_key_of_another_organization_has_no_label_here(
    organization: Organization, reader: Client
) -> None:
    other = Organization.objects.create(name="Other")
    foreign = keys.mint(other, Scope.INFERENCE, "theirs").api_key
    traffic.write(
        utc(2026, 11, 5), organization_id=str(organization.pk), api_key_id=str(foreign.pk)
    )

    body = reader.get("/v1/usage", {**NOVEMBER, "group_by": "api_key"}).json()

    assert [entry["key"] for entry in body["breakdowns"]["api_key"]] == [
        {"api_key_id": str(foreign.pk), "api_key_label": None, "api_key_prefix": None}
    ]


def test_a_revoked_key_keeps_its_label(organization: Organization, reader: Client) -> None:
    mine = keys.mint(organization, Scope.INFERENCE, "mine").api_key
    traffic.write(utc(2026, 11, 5), organization_id=str(organization.pk), api_key_id=str(mine.pk))
    keys.revoke(mine)

    body = reader.get("/v1/usage", {**NOVEMBER, "group_by": "api_key"}).json()

    assert body["breakdowns"]["api_key"][0]["key"]["api_key_label"] == "mine"


def test_a_console_session_reads_its_organizations_usage(
    ledger: Ledger, organization: Organization
) -> None:
    body = signed_in(organization).get("/v1/usage", {**NOVEMBER, "group_by": ALL}).json()

    assert body["organization_id"] == str(organization.pk)
    assert body["requests"] > 0


def test_another_organizations_ids_show_nothing_of_it(ledger: Ledger) -> None:
    stranger = Organization.objects.create(name="Stranger")
    client = Client(headers={"authorization": f"Bearer {keys.mint(stranger, Scope.READ).secret}"})

    for query in ({}, {"api_key_id": str(ledger.first.pk)}, {"model": DEMO}):
        body = client.get("/v1/usage", {**NOVEMBER, "group_by": ALL, **query}).json()

        assert body["organization_id"] == str(stranger.pk)
        assert body["requests"] == 0
        assert body["breakdowns"] == {"model": [], "api_key": [], "time": []}


@pytest.mark.parametrize("period", ["a month", "parts of hours at both ends", "inside one hour"])
def test_the_number_of_queries_does_not_grow_with_the_ledger(
    organization: Organization, reader: Client, period: str
) -> None:
    start, end, _, _ = PERIODS[period]
    query = {"start": start, "end": end, "group_by": ALL, "bucket": "hour"}
    traffic.write(utc(2026, 11, 10, 12, 20), organization_id=str(organization.pk))
    reader.get("/v1/usage", query)
    with CaptureQueriesContext(connection) as few:
        reader.get("/v1/usage", query)
    ids = [str(keys.mint(organization, Scope.INFERENCE).api_key.pk) for _ in range(5)]
    traffic.mixed(str(organization.pk), ids)
    with CaptureQueriesContext(connection) as many:
        reader.get("/v1/usage", query)

    assert len(few) == len(many)
    sums = [each for each in many if "usage_usager" in each["sql"]]
    # Hours and edge rows are each read once for the time breakdown and once for the others.
    assert len(sums) == {"a month": 2, "inside one hour": 2}.get(period, 4)
