"""The sums of a period, computed by the database.

Whole closed days come from the days, the whole hours around them from the roll-ups, the partial hours
at the period's edges from the rows. All reads see one snapshot of the database. Sums are kept by
stamped price and currency, so that a cost is the sum of a few exact products.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from django.db import connection

from core.clock import day_of, hour_of, iso_milliseconds, midnight
from core.money import cost_of_units
from usage.models import UsageDay, UsageRollup, UsageRow
from usage.models.statements import CHAT, ROLLUP_SUMS
from usage.queries import days
from usage.queries.periods import Bucket, GroupBy, Period, UsageQuery
from usage.queries.selection import conditions
from usage.queries.snapshot import database_snapshot, plan_with

Group = tuple[GroupBy, ...]
"""The dimensions of a breakdown, at most two."""

Key = tuple[str, ...]
"""``(model_identifier, model_id)``, ``(api_key_id,)`` or ``(bucket_start,)``, in sorting order; those of a
group of two dimensions one after the other."""

_HOUR = timedelta(hours=1)
_STAMP = ("price_currency", "input_price_per_mtok", "output_price_per_mtok")
_DIMENSIONS = {
    GroupBy.MODEL: ("model_identifier", "model_id"),
    GroupBy.API_KEY: ("api_key_id",),
    GroupBy.TIME: ("bucket_start",),
}
_POSTGRESQL_NULLS = {
    "model_identifier": "NULL::varchar",
    "model_id": "NULL::uuid",
    "api_key_id": "NULL::uuid",
    "bucket_start": "NULL::bigint",
}
_ALL_DIMENSIONS = [name for names in _DIMENSIONS.values() for name in names]
_ROLLUP_FIGURES = {name: name for name in ROLLUP_SUMS}
_ROW_FIGURES = {name: total.of_row for name, total in CHAT.totals.items()}
# How SQLite stores a timestamp: 2026-11-20 10:17:20.123000, in UTC.
_TEXT_BUCKETS = {Bucket.HOUR: ("%Y-%m-%d %H", 13), Bucket.DAY: ("%Y-%m-%d", 10)}


class HasCacheSums(Protocol):
    """Sums of some requests that include those of caches."""

    @property
    def cache(self) -> CacheSums: ...


class CacheSums(NamedTuple):
    """Tokens of prompts whose server reported how many of them it had cached (``CACHE_SUMS``)."""

    cached: int
    reported: int
    """Those of the whole prompts, cached or not."""

    @classmethod
    def of(cls, parts: Iterable[HasCacheSums]) -> CacheSums:
        """Add up those of ``parts``."""
        cached = reported = 0
        for part in parts:
            cached += part.cache[0]
            reported += part.cache[1]
        return cls(cached, reported)

    @property
    def share(self) -> float | None:
        """The cached part, from 0 to 1; None where no server reported any."""
        return self.cached / self.reported if self.reported else None


@dataclass(frozen=True, slots=True)
class PricedSum:
    """The sums at one stamped price.

    ``figures`` are token counts and the requests with an independent count, in the order of the
    contract's token figures (``usage.api.wire.TokenFigures``), and then ``CACHE_SUMS``. Prices are in
    units of 10^-8, as stored: tokens times that is the cost in units of 10^-14, an integer.
    """

    currency: str
    input_price: int
    output_price: int
    requests: int
    figures: tuple[int, ...]

    @property
    def cache(self) -> CacheSums:
        return CacheSums(*self.figures[-2:])


@dataclass(frozen=True, slots=True)
class Total:
    """The sums of all prices in one currency; ``figures`` as in ``PricedSum``.

    Costs are in units of 10^-14 and exact. Reported tokens are what is billed; reasoning is included in
    the output count.
    """

    currency: str
    requests: int
    figures: tuple[int, ...]
    input_units: int
    output_units: int

    @property
    def cache(self) -> CacheSums:
        return CacheSums(*self.figures[-2:])

    @property
    def units(self) -> int:
        """The cost of input and output together."""
        return self.input_units + self.output_units

    @property
    def cost(self) -> Decimal:
        """``units`` as money."""
        return cost_of_units(self.units)


def add_up(parts: Iterable[PricedSum]) -> list[Total]:
    """Add up ``parts`` in each currency, by currency; the only place that turns sums into costs."""
    found: defaultdict[str, list[PricedSum]] = defaultdict(list)
    for part in parts:
        found[part.currency].append(part)
    return [
        Total(
            currency,
            sum(part.requests for part in group),
            tuple(map(sum, zip(*(part.figures for part in group), strict=True))),
            sum(part.figures[0] * part.input_price for part in group),
            sum(part.figures[1] * part.output_price for part in group),
        )
        for currency, group in sorted(found.items())
    ]


Breakdown = dict[Key, list[PricedSum]]


@dataclass(frozen=True, slots=True)
class Cut:
    """A period cut at full hours and days, by the table that each part is read from.

    ``days`` are whole closed days, ``hours`` the whole hours around them, ``edges`` partial hours.
    """

    days: Period | None
    hours: tuple[Period, ...]
    edges: tuple[Period, ...]


@dataclass(frozen=True, slots=True)
class _Source:
    """Periods, and the table that has their sums; ``moment`` is its time column."""

    table: str
    moment: str
    figures: Mapping[str, str]
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


def breakdowns(organization_id: str, query: UsageQuery) -> dict[GroupBy, Breakdown]:
    """Return the sums of an organization for each dimension in ``query.group_by``.

    As ``grouped`` does. Raises ``django.db.Error``.
    """
    found = grouped(organization_id, query, [(group,) for group in query.group_by])
    return {group: breakdown for (group,), breakdown in found.items()}


def grouped(
    organization_id: str, query: UsageQuery, groups: Sequence[Group]
) -> dict[Group, Breakdown]:
    """Return the sums of an organization for each of ``groups``, whatever ``query.group_by`` says.

    Every row of the period is in each breakdown once, so each adds up to the total. Raises
    ``django.db.Error``.
    """
    found: dict[Group, Breakdown] = {group: defaultdict(list) for group in groups}
    chosen = conditions(organization_id, query.filters)
    with database_snapshot(), connection.cursor() as cursor:
        plan_with(jit="off", enable_sort="off")
        until = days.summed_until(organization_id)
        for together, by_hour in _passes(groups, query.bucket):
            for source in _sources(query.period, date.min if by_hour else until):
                cursor.execute(
                    _statement(source, together, chosen, query.bucket),
                    [*_moments(source), *chosen.values()],
                )
                for number, *columns in cursor.fetchall():
                    group = together[number]
                    key = _key(group, columns, query.bucket)
                    found[group][key].append(_priced_sum(columns[len(_ALL_DIMENSIONS) :]))
    return found


def _passes(groups: Sequence[Group], bucket: Bucket) -> Iterator[tuple[list[Group], bool]]:
    """Yield groups that are read together, and whether they need hours rather than days."""
    by_hour = [group for group in groups if bucket is Bucket.HOUR and GroupBy.TIME in group]
    others = [group for group in groups if group not in by_hour]
    if by_hour:
        yield by_hour, True
    if others:
        yield others, False


def _sources(period: Period, summed_until: date) -> Iterator[_Source]:
    """Yield one source per table. One statement for all would be slower: the planner has no statistics
    of a union, and sorts instead of hashing."""
    parts = cut(period, summed_until)
    if parts.days is not None:
        yield _Source(UsageDay._meta.db_table, "day", _ROLLUP_FIGURES, (parts.days,))
    if parts.hours:
        yield _Source(UsageRollup._meta.db_table, "hour", _ROLLUP_FIGURES, parts.hours)
    if parts.edges:
        yield _Source(UsageRow._meta.db_table, "occurred_at", _ROW_FIGURES, parts.edges)


def _key(group: Group, dimensions: Sequence[Any], bucket: Bucket) -> Key:
    """The entry of a result row in the breakdown of ``group``."""
    model_identifier, model_id, api_key_id, bucket_start, *_ = dimensions
    key: Key = ()
    for each in group:
        if each is GroupBy.MODEL:
            key += (model_identifier, _uuid_text(model_id))
        elif each is GroupBy.API_KEY:
            key += (_uuid_text(api_key_id),)
        else:
            key += (_moment_text(bucket_start, bucket),)
    return key


def _statement(
    source: _Source, groups: Sequence[Group], chosen: Iterable[str], bucket: Bucket
) -> str:
    """SQL of the sums of ``groups``, preceded by a group's number, ``_ALL_DIMENSIONS`` and ``_STAMP``.

    The rows are aggregated once for all breakdowns, which then read the small result.
    """
    by = [[name for each in group for name in _DIMENSIONS[each]] for group in groups]
    wanted = list(dict.fromkeys(name for names in by for name in names))
    shared = _select(source, wanted, chosen, bucket)
    stamp = ", ".join(_STAMP)
    sums = ", ".join(map(_sum, ROLLUP_SUMS))
    selects = []
    for number, names in enumerate(by):
        columns = ", ".join(
            _read(name) if name in names else _null(name) for name in _ALL_DIMENSIONS
        )
        if len(groups) == 1:
            return f"SELECT {number}, {columns}, {stamp}, {', '.join(ROLLUP_SUMS)} FROM ({shared}) AS figures"  # noqa: S608
        selects.append(
            f"SELECT {number}, {columns}, {stamp}, {sums} FROM figures "  # noqa: S608  # names are ours
            f"GROUP BY {', '.join(names)}, {stamp}"
        )
    return f"WITH figures AS ({shared}) {' UNION ALL '.join(selects)}"


def _read(name: str) -> str:
    """SQL to read a dimension. PostgreSQL's moments are epoch seconds: parsing texts is slower."""
    if name == "bucket_start" and connection.vendor == "postgresql":
        return "extract(epoch FROM bucket_start)::bigint"
    return name


def _null(name: str) -> str:
    """A typed null for a dimension that a breakdown lacks; parts of a union need the same types."""
    return _POSTGRESQL_NULLS[name] if connection.vendor == "postgresql" else "NULL"


def _select(source: _Source, wanted: Sequence[str], chosen: Iterable[str], bucket: Bucket) -> str:
    """SQL of the sums of ``source`` by the ``wanted`` dimensions and the stamped price.

    ``chosen``: the conditions of the selection. Its parameters follow those of the periods.
    """
    within = " OR ".join(
        [f"({source.moment} >= %s AND {source.moment} < %s)"] * len(source.periods)
    )
    keys = [
        f"{_bucket_start(source.moment, bucket)} AS {name}" if name == "bucket_start" else name
        for name in (*wanted, *_STAMP)
    ]
    summed = [f"{_sum(sql)} AS {name}" for name, sql in source.figures.items()]
    numbers = ", ".join(str(number) for number in range(1, len(keys) + 1))
    return (
        f"SELECT {', '.join([*keys, *summed])} FROM {source.table} "  # noqa: S608  # names are ours
        f"WHERE {' AND '.join([f'({within})', *chosen])} GROUP BY {numbers}"
    )


def _sum(sql: str) -> str:
    """A sum as an integer: PostgreSQL would return a numeric, which is slow to read."""
    return f"sum({sql})::bigint" if connection.vendor == "postgresql" else f"sum({sql})"


def _moments(source: _Source) -> list[Any]:
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


@lru_cache(maxsize=4096)
def _moment_text(bucket_start: int | str, bucket: Bucket) -> str:
    if isinstance(bucket_start, int):
        return iso_milliseconds(datetime.fromtimestamp(bucket_start, UTC))
    parsed = datetime.strptime(bucket_start, _TEXT_BUCKETS[bucket][0])  # noqa: DTZ007
    return iso_milliseconds(parsed.replace(tzinfo=UTC))


def _uuid_text(value: uuid.UUID | str) -> str:
    return str(uuid.UUID(value) if isinstance(value, str) else value)


def _priced_sum(columns: Sequence[Any]) -> PricedSum:
    currency, input_price, output_price, requests, *figures = columns
    return PricedSum(
        currency=currency,
        input_price=int(input_price),
        output_price=int(output_price),
        requests=int(requests),
        figures=tuple(map(int, figures)),
    )
