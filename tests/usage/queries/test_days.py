"""Closed days are summed once: summaries are exact, whenever upkeep ran."""

from __future__ import annotations

import threading
import uuid
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connections, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import to_builtins

from core.clock import now
from tests.support.builders import traffic
from tests.support.builders.receipts import receipt
from usage.api.summary import summarize
from usage.ledger import independent_counts, rows
from usage.models import DayWatermark, Reconciliation, UsageDay
from usage.queries import days
from usage.queries.periods import Bucket, GroupBy, Period, UsageQuery, parse_period
from usage.queries.selection import Filters
from usage.queries.series import series

BEGIN = datetime(2025, 2, 26, tzinfo=UTC)
LENGTH = 5 * 24 * 3_600_000
KEYS = [str(uuid.UUID(int=number)) for number in range(2)]
moments = st.one_of(
    st.integers(0, LENGTH),
    st.integers(0, 5).map(lambda day: day * 24 * 3_600_000),
    st.integers(1, 5).map(lambda day: day * 24 * 3_600_000 - 1),
    st.integers(0, 120).map(lambda hour: hour * 3_600_000),
).map(lambda milliseconds: BEGIN + timedelta(milliseconds=milliseconds))
"""Five days; often at a midnight, right before one, or at a full hour."""
offsets = st.integers(-14 * 4, 14 * 4).map(lambda quarters: quarters * 15)
"""Time zones of the caller, in minutes east of UTC."""
facts = st.fixed_dictionaries(
    {
        "api_key_id": st.sampled_from(KEYS),
        "model_identifier": st.sampled_from(["acme/a", "acme/b"]),
        "backend_reported_input_tokens": st.integers(0, 2**31 - 1),
        "generated_output_tokens": st.integers(0, 9),
        "price_currency": st.sampled_from(["USD", "USD", "USD", "EUR"]),
    }
)
upkeep = st.just("upkeep")
histories = st.lists(st.one_of(st.tuples(moments, facts), upkeep), max_size=14)
"""Rows of any of the days, in any order, with upkeep in between: most of them are late."""


def ask(organization_id: str, period: Period, bucket: Bucket, **filters: Any) -> dict[str, Any]:
    query = UsageQuery(period, Filters(**filters), bucket, tuple(GroupBy))
    found: dict[str, Any] = to_builtins(summarize(organization_id, query))
    return found


def plain(written: list[traffic.Written]) -> dict[str, Any]:
    """The sums of rows, computed in memory."""
    return traffic.figures(written)


@pytest.mark.django_db
@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    history=histories,
    bounds=st.tuples(moments, moments).filter(lambda pair: pair[0] != pair[1]),
    offset=offsets,
    bucket=st.sampled_from(Bucket),
    model=st.none() | st.just("acme/a"),
    key=st.none() | st.sampled_from(KEYS),
)
def test_days_hours_and_rows_together_are_the_plain_sum_over_the_rows(
    history: list[Any],
    bounds: tuple[datetime, datetime],
    offset: int,
    bucket: Bucket,
    model: str | None,
    key: str | None,
) -> None:
    organization_id = str(uuid.uuid4())
    written = []
    for event in history:
        if event == "upkeep":
            days.sum_closed_days()
        else:
            moment, columns = event
            written.append(traffic.write(moment, organization_id=organization_id, **columns))
    zone = timedelta(minutes=offset)
    sign, minutes = ("-", -offset) if offset < 0 else ("+", offset)
    period = parse_period(
        {
            name: f"{(moment + zone).replace(tzinfo=None).isoformat()}{sign}{minutes // 60:02}:{minutes % 60:02}"
            for name, moment in (("start", min(bounds)), ("end", max(bounds)))
        }
    )

    summary = ask(organization_id, period, bucket, model=model, api_key_id=key)
    points = series(organization_id, UsageQuery(period, Filters(model, key), bucket, ()))

    inside = [
        each
        for each in written
        if min(bounds) <= each.occurred_at < max(bounds)
        and key in (None, each.receipt.api_key_id)
        and model in (None, each.receipt.model_identifier)
    ]
    expected = plain(inside)
    assert summary["requests"] == len(inside) == sum(point.requests for point in points)
    assert summary["tokens"] == expected["tokens"]
    assert summary["cost"] == expected["cost"]
    if summary["cost"] is not None:
        assert sum(point.cost for point in points) == Decimal(summary["cost"]["total"])
    for entries in summary["breakdowns"].values():
        assert sum(entry["requests"] for entry in entries) == len(inside)
    by_time = {
        entry["key"]["bucket_start"]: entry["tokens"] for entry in summary["breakdowns"]["time"]
    }
    for start, tokens in by_time.items():
        length = timedelta(days=1) if bucket is Bucket.DAY else timedelta(hours=1)
        begin = datetime.fromisoformat(start)
        of_bucket = [each for each in inside if begin <= each.occurred_at < begin + length]
        assert tokens == plain(of_bucket)["tokens"]
        stack = [point for point in points if point.bucket_start == begin]
        assert sum(each.input_tokens for each in stack) == tokens["backend_reported_input"]
        assert sum(each.output_tokens for each in stack) == tokens["backend_reported_output"]


def only_day() -> UsageDay:
    return UsageDay.objects.get()


@pytest.mark.django_db
def test_a_count_that_is_filled_in_late_is_read_at_once() -> None:
    organization_id = str(uuid.uuid4())
    written = traffic.write(BEGIN, organization_id=organization_id)
    days.sum_closed_days()

    found = independent_counts.IndependentCount(Reconciliation.MATCHED, 11, 12, "0")
    independent_counts.fill_in(written.receipt.request_id, found)

    period = Period(BEGIN, BEGIN + timedelta(days=1))
    tokens = ask(organization_id, period, Bucket.DAY)["tokens"]
    assert (tokens["svc_counted_input"], tokens["svc_counted_output"]) == (11, 12)


@pytest.mark.django_db
def test_upkeep_sums_closed_days_and_leaves_today_to_the_hours() -> None:
    organization_id = str(uuid.uuid4())
    moment = now()
    traffic.write(moment, organization_id=organization_id)
    traffic.write(moment - timedelta(days=2), organization_id=organization_id)

    days.sum_closed_days()
    again = days.sum_closed_days()

    assert only_day().day == (moment - timedelta(days=2)).date()
    assert again == 0
    watermark = DayWatermark.objects.get(pk=organization_id).until
    assert moment.date() - timedelta(days=1) <= watermark <= moment.date()
    period = Period(moment - timedelta(days=5), moment + timedelta(days=1))
    assert ask(organization_id, period, Bucket.DAY)["requests"] == 2


@pytest.mark.django_db
def test_invalidated_days_are_summed_again() -> None:
    organization_id = str(uuid.uuid4())
    traffic.write(BEGIN, organization_id=organization_id)
    days.sum_closed_days()
    UsageDay.objects.update(requests=7)

    days.invalidate(date(2025, 1, 1))
    days.sum_closed_days()

    assert only_day().requests == 1


@pytest.mark.django_db(transaction=True)
def test_a_late_row_that_is_being_written_while_days_are_summed_is_not_lost() -> None:
    organization_id = str(uuid.uuid4())
    written, go_on = threading.Event(), threading.Event()

    def write_late() -> None:
        try:
            with transaction.atomic():
                rows.insert([receipt(organization_id=organization_id)], BEGIN)
                written.set()
                go_on.wait(60)
        finally:
            connections.close_all()

    writer = threading.Thread(target=write_late)
    traffic.write(BEGIN + timedelta(hours=1), organization_id=organization_id)
    writer.start()
    assert written.wait(60)
    releasing = threading.Timer(0.3, go_on.set)
    releasing.start()
    try:
        days.sum_closed_days()
    finally:
        go_on.set()
        writer.join()
        releasing.join()

    period = Period(BEGIN, BEGIN + timedelta(days=1))
    assert ask(organization_id, period, Bucket.DAY)["requests"] == 2
    days.sum_closed_days()
    assert only_day().requests == 2
