"""Where the sums of a period are read: days, hours and rows, and the SQL that adds them up.

Whole closed days come from the days, the whole hours around them from the roll-ups, the partial hours
at the period's edges from the rows.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any

from django.db import connection

from core.clock import day_of, hour_of, iso_milliseconds, midnight
from usage.models import UsageDay, UsageRollup, UsageRow
from usage.models.statements import CHAT, ROLLUP_SUMS
from usage.queries.periods import Bucket, Period

_HOUR = timedelta(hours=1)
_ROLLUP_FIGURES = {name: name for name in ROLLUP_SUMS}
_ROW_FIGURES = {name: total.of_row for name, total in CHAT.totals.items()}
# How SQLite stores a timestamp: 2026-11-20 10:17:20.123000, in UTC.
_TEXT_BUCKETS = {Bucket.HOUR: ("%Y-%m-%d %H", 13), Bucket.DAY: ("%Y-%m-%d", 10)}


@dataclass(frozen=True, slots=True)
class Cut:
    """A period cut at full hours and days, by the table that each part is read from.

    ``days`` are whole closed days, ``hours`` the whole hours around them, ``edges`` partial hours.
    """

    days: Period | None
    hours: tuple[Period, ...]
    edges: tuple[Period, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """Periods, and the table that has their sums; ``moment`` is its time column."""

    table: str
    moment: str
    figures: Mapping[str, str]
    """SQL of what is added up, by the name of the sum."""
    periods: tuple[Period, ...]


def cut(period: Period, summed_until: date = date.min) -> Cut:
    """Cut ``period`` into parts for days, roll-ups and rows; days before ``summed_until`` are summed."""
    first, last = hour_of(period.start), hour_of(period.end)
    edges = []
    if first < period.start:
        if first == last:
            return Cut(None, (), (period,))
        first += _HOUR
        edges.append(Period(period.start, first))
    if last < period.end:
        edges.append(Period(last, period.end))
    end = min(day_of(last), midnight(summed_until))
    # The last representable day has no midnight after it.
    begin = _midnight_from(first) if first < end else end
    if begin >= end:
        return Cut(None, (Period(first, last),) if first < last else (), tuple(edges))
    around = (Period(first, begin), Period(end, last))
    hours = tuple(each for each in around if each.start < each.end)
    return Cut(Period(begin, end), hours, tuple(edges))


def _midnight_from(hour: datetime) -> datetime:
    """The first midnight at or after ``hour``."""
    day = day_of(hour)
    return day if day == hour else day + timedelta(days=1)


def sources(period: Period, summed_until: date) -> Iterator[Source]:
    """Yield one source per table. One statement for all would be slower: the planner has no statistics
    of a union, and sorts instead of hashing."""
    parts = cut(period, summed_until)
    if parts.days is not None:
        yield Source(UsageDay._meta.db_table, "day", _ROLLUP_FIGURES, (parts.days,))
    if parts.hours:
        yield Source(UsageRollup._meta.db_table, "hour", _ROLLUP_FIGURES, parts.hours)
    if parts.edges:
        yield Source(UsageRow._meta.db_table, "occurred_at", _ROW_FIGURES, parts.edges)


def select(
    source: Source,
    dimensions: Sequence[str],
    figures: Sequence[str],
    chosen: Iterable[str],
    bucket: Bucket,
) -> str:
    """SQL of the sums ``figures`` of ``source`` by ``dimensions``: columns, and ``bucket_start``.

    ``chosen``: the conditions of the selection. Its parameters follow those of the periods.
    """
    within = " OR ".join(
        [f"({source.moment} >= %s AND {source.moment} < %s)"] * len(source.periods)
    )
    keys = [
        f"{_bucket_start(source.moment, bucket)} AS {name}" if name == "bucket_start" else name
        for name in dimensions
    ]
    summed = [f"{sum_of(source.figures[name])} AS {name}" for name in figures]
    numbers = ", ".join(str(number) for number in range(1, len(keys) + 1))
    return (
        f"SELECT {', '.join([*keys, *summed])} FROM {source.table} "  # noqa: S608  # names are ours
        f"WHERE {' AND '.join([f'({within})', *chosen])} GROUP BY {numbers}"
    )


def sum_of(sql: str) -> str:
    """A sum as an integer: PostgreSQL would return a numeric, which is slow to read."""
    return f"sum({sql})::bigint" if connection.vendor == "postgresql" else f"sum({sql})"


def moments(source: Source) -> list[Any]:
    """The parameters of the periods of ``source``."""
    return [
        connection.ops.adapt_datefield_value(moment.date())
        if source.moment == "day"
        else connection.ops.adapt_datetimefield_value(moment)
        for period in source.periods
        for moment in (period.start, period.end)
    ]


def _bucket_start(moment: str, bucket: Bucket) -> str:
    if connection.vendor == "postgresql":
        if moment == "day":
            return "day::timestamp AT TIME ZONE 'UTC'"
        return moment if moment == bucket else f"date_trunc('{bucket}', {moment}, 'UTC')"
    return f"substr({moment}, 1, {_TEXT_BUCKETS[bucket][1]})"


def read(name: str) -> str:
    """Return SQL that reads a dimension of ``select``.

    PostgreSQL gives moments as epoch seconds and ids as texts: both are read faster than their own types.
    """
    if connection.vendor == "postgresql":
        if name == "bucket_start":
            return "extract(epoch FROM bucket_start)::bigint"
        if name.endswith("_id"):
            return f"{name}::text"
    return name


@lru_cache(maxsize=4096)
def uuid_text(value: str) -> str:
    """An id as ``read`` returns it, with hyphens."""
    return str(uuid.UUID(value))


def moment_of(bucket_start: int | str, bucket: Bucket) -> datetime:
    """The beginning of a bucket as ``read`` returns it."""
    if isinstance(bucket_start, int):
        return datetime.fromtimestamp(bucket_start, UTC)
    return datetime.strptime(bucket_start, _TEXT_BUCKETS[bucket][0]).replace(tzinfo=UTC)


@lru_cache(maxsize=4096)
def moment_text(bucket_start: int | str, bucket: Bucket) -> str:
    return iso_milliseconds(moment_of(bucket_start, bucket))
