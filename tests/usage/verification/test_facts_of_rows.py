"""``verify_ledger`` finds request ids of several rows, and stamped prices that no model ever had."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from core.ids import request_id
from tests.support.builders import traffic
from tests.support.builders.catalog_rows import draft, price
from tests.support.ledger.commands import differences
from usage.models import PrunedSum, UsageRollup, UsageRow
from usage.models.statements import ROLLUP_KEY, ROLLUP_SUMS

pytestmark = pytest.mark.django_db

HOUR = datetime(2026, 11, 5, 10, tzinfo=UTC)
NOON = HOUR + timedelta(hours=2)
LATER = HOUR + timedelta(minutes=30)
FIRST = {"input_price_per_mtok": Decimal("0.15"), "output_price_per_mtok": Decimal("0.60")}
SECOND = {"input_price_per_mtok": Decimal("0.20"), "output_price_per_mtok": Decimal("0.80")}
HALVED = {name: value / 2 for name, value in FIRST.items()}


@pytest.fixture
def model_id() -> str:
    """A model with a price from ten o'clock and another one from noon."""
    model = draft("acme/priced")
    price(model, HOUR, input_per_mtok="0.15", output_per_mtok="0.60", currency="USD")
    price(model, NOON, input_per_mtok="0.20", output_per_mtok="0.80", currency="USD")
    return str(model.pk)


def test_the_models_own_prices_are_right(model_id: str) -> None:
    traffic.write(LATER, model_id=model_id, **FIRST)
    traffic.write(NOON + timedelta(days=1), model_id=model_id, **FIRST)
    traffic.write(NOON, model_id=model_id, **SECOND)

    assert differences() == []


@pytest.mark.parametrize(
    "changed", [HALVED, {"price_currency": "EUR"}], ids=["halved", "another currency"]
)
def test_a_price_that_was_changed_in_row_and_sum_is_found(
    model_id: str, changed: Mapping[str, Any]
) -> None:
    traffic.write(LATER, model_id=model_id, **FIRST)
    UsageRow.objects.update(**changed)
    UsageRollup.objects.update(**changed)

    (line,) = differences()

    assert line.endswith(": the model never had this price")
    assert "2026-11-05T10:00:00.000Z" in line
    assert model_id in line
    assert differences(NOON) == []


def test_a_price_before_it_took_effect_is_found(model_id: str) -> None:
    """The hour is that of the row's settlement, which is never before its admission."""
    traffic.write(LATER, model_id=model_id, **SECOND)

    (line,) = differences()

    assert line.endswith(": this price took effect later, at 2026-11-05T12:00:00.000Z")


@pytest.mark.parametrize(("before", "is_found"), [(100, False), (1000, False), (1001, True)])
def test_a_price_that_begins_at_a_full_hour_allows_for_the_clock_of_a_host(
    before: int, is_found: bool, model_id: str
) -> None:
    """A host's clock may be a second ahead of the database's, which stamps the row.

    ``before``: milliseconds between the settlement of a request and the moment from which its price
    is in force.
    """
    traffic.write(HOUR, model_id=model_id, **FIRST)
    traffic.write(NOON - timedelta(milliseconds=before), model_id=model_id, **SECOND)

    assert ["took effect later" in line for line in differences()] == [True] * is_found


def test_a_changed_price_of_pruned_rows_is_found(model_id: str) -> None:
    traffic.write(LATER, model_id=model_id, **FIRST)
    rollup = UsageRollup.objects.get()
    UsageRow.objects.all().delete()
    PrunedSum.objects.create(
        **{name: getattr(rollup, name) for name in (*ROLLUP_KEY, *ROLLUP_SUMS)} | HALVED
    )
    UsageRollup.objects.update(**HALVED)

    assert [line for line in differences() if line.endswith(": the model never had this price")]


@pytest.mark.postgresql
def test_a_request_id_of_two_organizations_is_found() -> None:
    """The primary key holds the organization as well, so the table accepts such a row."""
    twice = request_id()
    for number in (1, 2):
        traffic.write(HOUR, request_id=twice, organization_id=str(uuid.UUID(int=number)))
    traffic.write(HOUR)

    assert differences() == [f"{twice}: 2 rows have this request id"]
    assert differences(HOUR) == [f"{twice}: 2 rows have this request id"]
