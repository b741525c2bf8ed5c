"""The exported rows: JSON, CSV and an independent computation agree."""

from __future__ import annotations

import csv
import io
import re
import time
import uuid
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from core.clock import now
from tests.support.builders.export_rows import (
    ALL,
    COLUMNS,
    KEYS,
    MODELS,
    NOVEMBER,
    START,
    WHOLE,
    expected,
    expected_csv,
    make,
    save,
    some,
)
from tests.support.live import ROOT
from usage.api import export
from usage.api.export import EXPORT_COLUMNS, complete_page, csv_blocks, page
from usage.models import UsageRow
from usage.queries.cursors import Cursor
from usage.queries.periods import Period
from usage.queries.selection import Filters

OURS = uuid.UUID(int=0xA)
THEIRS = uuid.UUID(int=0xB)


def csv_rows(period: Period = WHOLE, filters: Filters = ALL) -> list[dict[str, str]]:
    text = b"".join(csv_blocks(str(OURS), period, filters)).decode()
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def walk(limit: int, period: Period = WHOLE, filters: Filters = ALL) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    after: Cursor | None = None
    while True:
        found = page(str(OURS), period, filters, limit, after)
        rows += found.rows
        if found.next_cursor is None:
            assert len(found.rows) <= limit
            return rows
        assert len(found.rows) == limit
        after = found.next_cursor


def ids(rows: list[dict[str, Any]]) -> list[Any]:
    return [row["request_id"] for row in rows]


def test_the_columns_are_the_contracts() -> None:
    assert [column.name for column in EXPORT_COLUMNS] == COLUMNS


def test_the_documentations_table_is_the_definition() -> None:
    text = (ROOT / "docs/api/usage-export.md").read_text()
    table = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", text.partition("## The row")[2], re.MULTILINE)

    assert table == [(column.name, column.shape) for column in EXPORT_COLUMNS]


@pytest.mark.django_db
def test_json_and_csv_equal_an_independent_computation() -> None:
    rows = some(OURS, 400)

    assert walk(10_000) == [expected(row) for row in rows]
    assert csv_rows() == [expected_csv(row) for row in rows]
    assert [list(row) for row in walk(10_000)] == [COLUMNS] * 400


class TestCosts(TestCase):
    """Properties of a single row with any counts."""

    @settings(max_examples=60, deadline=None)
    @given(
        tokens=st.tuples(*[st.integers(0, 10**13)] * 2),
        prices=st.tuples(*[st.decimals(0, Decimal("9999999999.99999999"), places=8)] * 2),
    )
    def test_costs_are_tokens_times_price_to_the_last_decimal(
        self, tokens: tuple[int, int], prices: tuple[Decimal, Decimal]
    ) -> None:
        row = make(
            OURS,
            START,
            request_id="req_cost",
            backend_reported_input_tokens=tokens[0],
            backend_reported_output_tokens=tokens[1],
            backend_reported_reasoning_tokens=0,
            input_price_per_mtok=prices[0],
            output_price_per_mtok=prices[1],
        )
        UsageRow.objects.filter(request_id="req_cost").delete()
        row.save(force_insert=True)

        (said,) = walk(1)
        (written,) = csv_rows()

        for name in ("input", "output"):
            tokens_said = Fraction(said[f"backend_reported_{name}_tokens"])
            price_said = Fraction(said[f"{name}_price_per_mtok"])
            assert Fraction(said[f"{name}_cost"]) == tokens_said / 10**6 * price_said
        assert Fraction(said["total_cost"]) == (
            Fraction(said["input_cost"]) + Fraction(said["output_cost"])
        )
        for name in ("input_cost", "output_cost", "total_cost"):
            assert re.fullmatch(r"\d+\.\d{14}", said[name])
        assert said == expected(row)
        assert written == expected_csv(row)


@pytest.mark.django_db
@pytest.mark.parametrize("limit", [1, 7, 10_000])
def test_pages_give_every_row_once_and_in_order(limit: int) -> None:
    rows = some(OURS, 61)

    assert ids(walk(limit)) == [row.request_id for row in rows]


@pytest.mark.django_db
def test_a_page_that_ends_with_the_last_row_has_no_cursor() -> None:
    some(OURS, 8)

    assert page(str(OURS), WHOLE, ALL, 8, None).next_cursor is None
    assert page(str(OURS), WHOLE, ALL, 7, None).next_cursor is not None


@pytest.mark.django_db
def test_another_organizations_rows_are_never_exported() -> None:
    ours = some(OURS, 20)
    theirs = some(THEIRS, 20)
    foreign = Cursor(theirs[9].occurred_at, theirs[9].request_id)

    found = page(str(OURS), WHOLE, ALL, 10_000, foreign)

    position = (foreign.occurred_at, foreign.request_id)
    assert ids(found.rows) == [
        row.request_id for row in ours if (row.occurred_at, row.request_id) > position
    ]
    assert {row["organization_id"] for row in csv_rows()} == {str(OURS)}
    theirs_key = Filters(api_key_id=str(theirs[0].api_key_id), model="acme/only-theirs")
    assert page(str(OURS), WHOLE, theirs_key, 10, None).rows == []


@pytest.mark.django_db
def test_the_end_is_exclusive_and_the_start_inclusive() -> None:
    millisecond = timedelta(milliseconds=1)
    moments = [NOVEMBER.start - millisecond, NOVEMBER.start]
    moments += [NOVEMBER.end - millisecond, NOVEMBER.end]
    rows = save([make(OURS, moment) for moment in moments])

    assert ids(walk(1, NOVEMBER)) == [row.request_id for row in rows[1:3]]
    assert ids(csv_rows(NOVEMBER)) == [row.request_id for row in rows[1:3]]


@pytest.mark.django_db
def test_a_cursor_before_the_period_begins_at_its_start_and_one_after_it_finds_nothing() -> None:
    rows = save([make(OURS, NOVEMBER.start + timedelta(days=day)) for day in (-2, -1, 0, 1)])
    before = Cursor(rows[0].occurred_at, rows[0].request_id)
    after = Cursor(NOVEMBER.end, "req_0")

    assert ids(page(str(OURS), NOVEMBER, ALL, 9, before).rows) == [
        row.request_id for row in rows[2:]
    ]
    assert page(str(OURS), NOVEMBER, ALL, 9, after).rows == []


@pytest.mark.django_db
@pytest.mark.parametrize("model", [None, MODELS[0], "acme/unknown"])
@pytest.mark.parametrize("key", [None, KEYS[0], KEYS[2], uuid.UUID(int=1)])
def test_filters_restrict_pages_and_csv_alike(model: str | None, key: uuid.UUID | None) -> None:
    rows = some(OURS, 80)
    filters = Filters(model, str(key) if key is not None else None)

    wanted = [
        row.request_id
        for row in rows
        if model in (None, row.model_identifier) and key in (None, row.api_key_id)
    ]

    assert ids(walk(7, filters=filters)) == wanted
    assert ids(csv_rows(filters=filters)) == wanted


@pytest.mark.django_db
def test_rows_that_arrive_during_a_walk_are_appended_and_nothing_is_missed_or_doubled() -> None:
    rows = some(OURS, 50)
    last = rows[-1].occurred_at
    seen: list[Any] = []
    arrived: list[UsageRow] = []
    after: Cursor | None = None
    while True:
        found = page(str(OURS), WHOLE, ALL, 7, after)
        seen += ids(found.rows)
        if found.next_cursor is None:
            break
        after = found.next_cursor
        if len(arrived) < 20:
            moment = last + timedelta(milliseconds=len(arrived) // 3)
            arrived += save([make(OURS, moment, request_id=f"req_{'f' * 30}{len(arrived):02d}")])

    assert seen == [row.request_id for row in (*rows, *arrived)]


@pytest.mark.django_db
def test_text_that_csv_must_quote_is_read_back_unchanged() -> None:
    hostile = ['a,"b"\r\n=1+1', '"', "a\nb", "=HYPERLINK(1)", "\\.", "żółć 模型", " a "]
    rows = save(
        [
            make(OURS, START, model_identifier=text, system_fingerprint=text, total_duration_ms=n)
            for n, text in enumerate(hostile)
        ]
    )

    assert csv_rows() == [expected_csv(row) for row in rows]
    assert walk(10) == [expected(row) for row in rows]


@pytest.mark.django_db
def test_an_empty_period_is_only_a_header() -> None:
    assert b"".join(csv_blocks(str(OURS), WHOLE, ALL)) == ",".join(COLUMNS).encode() + b"\n"
    assert page(str(OURS), WHOLE, ALL, 1, None) == export.ExportPage(tuple(COLUMNS), [], None)


@pytest.mark.sqlite
@pytest.mark.django_db
def test_a_cursor_waits_until_no_earlier_row_can_appear(monkeypatch: pytest.MonkeyPatch) -> None:
    stamped = now()
    period = Period(stamped - timedelta(days=1), stamped + timedelta(days=1))
    second, third = save(
        [make(OURS, stamped, request_id=f"req_{number}") for number in (2, 3)],
    )
    waits: list[float] = []
    sleep = time.sleep

    def another_writer_commits(seconds: float) -> None:
        if not waits:
            save([make(OURS, stamped - timedelta(milliseconds=5), request_id="req_1")])
        waits.append(seconds)
        sleep(seconds)

    monkeypatch.setattr("usage.api.export.time.sleep", another_writer_commits)

    first_page = complete_page(str(OURS), period, ALL, 1, None)
    rest = page(str(OURS), period, ALL, 10, first_page.next_cursor)

    assert ids(first_page.rows + rest.rows) == ["req_1", second.request_id, third.request_id]
    assert waits


@pytest.mark.django_db
@pytest.mark.parametrize("age", [timedelta(seconds=3), timedelta(days=-2)])
def test_nothing_waits_for_old_rows_nor_for_rows_of_the_future(
    age: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("usage.api.export.time.sleep", lambda seconds: pytest.fail("it waited"))
    period = Period(now() - timedelta(days=9), now() + timedelta(days=9))
    save([make(OURS, now() - age, total_duration_ms=number) for number in range(3)])

    assert complete_page(str(OURS), period, ALL, 1, None).next_cursor is not None


@pytest.mark.django_db
def test_the_last_page_shows_the_youngest_rows_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("usage.api.export.time.sleep", lambda seconds: pytest.fail("it waited"))
    moment = datetime.now(UTC)
    save([make(OURS, now())])

    found = complete_page(
        str(OURS), Period(moment - timedelta(days=1), moment + timedelta(days=1)), ALL, 1, None
    )

    assert len(found.rows) == 1
    assert found.next_cursor is None
