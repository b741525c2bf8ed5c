"""``manage.py verify_ledger`` accepts a correct ledger and reports every difference."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core.management import CommandError
from django.db.models import F

from core.ids import request_id
from tests.support.builders import traffic
from tests.support.ledger.commands import disable_constraints, enable_constraints, reported, run
from usage.models import UsageRollup, UsageRow
from usage.models.statements import VERIFIED_SUMS
from usage.verification import rollups as verification

pytestmark = pytest.mark.django_db

ORGANIZATION = str(uuid.UUID(int=1))
HOUR = datetime(2026, 11, 5, 10, tzinfo=UTC)
FIGURES = {
    "organization_id": ORGANIZATION,
    "backend_reported_input_tokens": 100,
    "backend_reported_output_tokens": 60,
    "backend_reported_reasoning_tokens": 20,
    "generated_output_tokens": 60,
    "delivered_output_tokens": 50,
}


@pytest.fixture(autouse=True)
def mixed_ledger() -> None:
    """Write mixed traffic of two organizations, and three rows with known values."""
    for number in (1, 2):
        traffic.mixed(str(uuid.UUID(int=number)), [str(uuid.uuid4())], seed=number)
    for minutes in (0, 20, 59):
        traffic.write(HOUR + timedelta(minutes=minutes), **FIGURES)


def known_rows() -> Any:
    """The three rows with known values."""
    return UsageRow.objects.filter(organization_id=ORGANIZATION, backend_reported_input_tokens=100)


def known_rollup() -> Any:
    (row, *_) = known_rows()
    found = UsageRollup.objects.filter(
        organization_id=ORGANIZATION,
        hour=HOUR,
        api_key_id=row.api_key_id,
        input_price_per_mtok=row.input_price_per_mtok,
        output_price_per_mtok=row.output_price_per_mtok,
    )
    assert found.count() == 1
    return found


@pytest.fixture
def unconstrained() -> Iterator[None]:
    disable_constraints(UsageRow._meta.db_table, UsageRollup._meta.db_table)
    yield
    enable_constraints()


def test_an_unchanged_ledger_has_no_difference() -> None:
    rows, rollups = UsageRow.objects.count(), UsageRollup.objects.count()

    (line,) = run("verify_ledger").splitlines()

    assert line.startswith(f"rows: {rows}, roll-ups: {rollups}, speech rows: 0, ")
    assert line.endswith(" USD")
    assert " EUR, " in line


def test_an_empty_ledger_is_right() -> None:
    UsageRow.objects.all().delete()
    UsageRollup.objects.all().delete()

    nothing = "rows: 0, roll-ups: 0, speech rows: 0, speech days: 0, cost: nothing\n"
    assert run("verify_ledger") == nothing


def test_a_changed_sum_is_found_and_named() -> None:
    for figure in VERIFIED_SUMS:
        known_rollup().update(**{figure: F(figure) + 1})

        lines = reported()

        assert any(f": {figure} is " in line for line in lines), figure
        assert all(ORGANIZATION in line and "2026-11-05T10:00:00.000Z" in line for line in lines)
        known_rollup().update(**{figure: F(figure) - 1})


def test_changed_tokens_of_a_rollup_change_its_cost_too() -> None:
    known_rollup().update(backend_reported_input_tokens=F("backend_reported_input_tokens") + 1)

    assert [line for line in reported() if ": costs " in line]


def _insert_by_hand() -> None:
    row = known_rows()[0]
    row.pk, row.occurred_at = request_id(), HOUR.replace(year=2020)
    row.save(force_insert=True)


TAMPERINGS: dict[str, tuple[Callable[[], Any], str]] = {
    "a roll-up is gone": (lambda: known_rollup().delete(), "no roll-up for 3 row(s)"),
    "all rows of a roll-up are gone": (lambda: known_rows().delete(), "no rows for this roll-up"),
    "a row is gone": (
        lambda: UsageRow.objects.filter(pk=known_rows()[0].pk).delete(),
        "requests is 3, the rows say 2",
    ),
    "a row was inserted by hand": (_insert_by_hand, "no roll-up for 1 row(s)"),
    "a row's tokens changed": (
        lambda: known_rows().filter(occurred_at=HOUR).update(backend_reported_input_tokens=1),
        "backend_reported_input_tokens is 300, the rows say 201",
    ),
    "a row's price changed": (
        lambda: known_rows().filter(occurred_at=HOUR).update(input_price_per_mtok=Decimal("0.14")),
        "no roll-up for 1 row(s)",
    ),
    "a row moved to another organization": (
        lambda: known_rows().filter(occurred_at=HOUR).update(organization_id=uuid.uuid4()),
        "requests is 3, the rows say 2",
    ),
    "a roll-up is off the hour": (
        lambda: known_rollup().update(hour=HOUR + timedelta(minutes=1)),
        "no rows for this roll-up",
    ),
}


@pytest.mark.parametrize(("tamper", "words"), TAMPERINGS.values(), ids=TAMPERINGS)
def test_tampering_is_found(tamper: Callable[[], Any], words: str) -> None:
    tamper()

    assert [line for line in reported() if line.endswith(words)]


BROKEN_ROWS: dict[str, tuple[dict[str, Any], str]] = {
    "reasoning": (
        {"backend_reported_reasoning_tokens": 61},
        "reasoning tokens exceed output tokens",
    ),
    "delivered": ({"delivered_output_tokens": 61}, "delivered tokens exceed generated tokens"),
    "outcome": ({"outcome": "vanished"}, "the outcome 'vanished' is not known"),
    "shape": ({"shape": "round"}, "the shape 'round' is not known"),
    "reconciliation": ({"reconciliation": "so-so"}, "the reconciliation 'so-so' is not known"),
    "counts": (
        {"svc_counted_input_tokens": 1, "svc_counted_output_tokens": None},
        "only one of the two independent counts is there",
    ),
    "negative": ({"generated_output_tokens": 50, "delivered_output_tokens": -1}, "negative"),
}


@pytest.mark.usefixtures("unconstrained")
@pytest.mark.parametrize(("columns", "words"), BROKEN_ROWS.values(), ids=BROKEN_ROWS)
def test_an_invalid_row_is_found(columns: dict[str, Any], words: str) -> None:
    row = known_rows()[0]
    known_rows().filter(pk=row.pk).update(**columns)

    assert [line for line in reported() if line.startswith(row.pk) and line.endswith(words)]


def test_a_cost_that_is_computed_wrongly_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def with_floats(tokens: int, price: Decimal) -> Decimal:
        return round(Decimal(tokens / 1_000_000 * float(price)), 14)

    monkeypatch.setattr(verification, "token_cost", with_floats)

    assert [line for line in reported() if " recomputed " in line]


def test_since_excludes_earlier_hours() -> None:
    known_rollup().delete()

    assert len(reported("--since", "2026-11-05T15:59:00+05:00")) == 1
    run("verify_ledger", "--since", "2026-11-05T11:00:00Z")


@pytest.mark.parametrize("since", ["yesterday", "2026-13-01", ""])
def test_a_since_that_is_no_timestamp_is_refused(since: str) -> None:
    with pytest.raises(CommandError, match=r"--since: must be a timestamp such as"):
        run("verify_ledger", "--since", since)
