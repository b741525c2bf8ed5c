"""The figures of a period, summed by the database.

Whole hours come from the roll-ups, the parts of hours at the period's edges from the rows, and all
requested breakdowns from one pass over both. Sums stay apart by stamped price and currency, so
that a cost is made of few exact products.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db import connection, models, transaction

from svc_project.lib.clock import hour_of, iso_milliseconds
from svc_project.lib.money import price_of_units
from usage.models import UsageRollup, UsageRow
from usage.periods import Bucket, Filters, GroupBy, Period, UsageQuery
from usage.tables import ROLLUP_SUMS, SUMMED

Key = tuple[str, ...]
"""``(model_identifier, model_id)``, ``(api_key_id,)`` or ``(bucket_start,)``, in sorting order."""

_HOUR = timedelta(hours=1)
_STAMP = ("price_currency", "input_price_per_mtok", "output_price_per_mtok")
_DIMENSIONS = {
    GroupBy.MODEL: ("model_identifier", "model_id"),
    GroupBy.API_KEY: ("api_key_id",),
    GroupBy.TIME: ("bucket_start",),
}
_ALL_DIMENSIONS = [name for names in _DIMENSIONS.values() for name in names]
_ROLLUP_FIGURES = {name: name for name in ROLLUP_SUMS}
_ROW_FIGURES = {
    "requests": "1",
    **{name: f"coalesce({name}, 0)" for name in SUMMED},
    "svc_counted_requests": "CASE WHEN svc_counted_input_tokens IS NULL THEN 0 ELSE 1 END",
}
# How SQLite keeps a timestamp: 2026-11-20 10:17:20.123000, in UTC.
_TEXT_BUCKETS = {Bucket.HOUR: ("%Y-%m-%d %H", 13), Bucket.DAY: ("%Y-%m-%d", 10)}


@dataclass(frozen=True, slots=True)
class PricedSum:
    """What was metered at one stamped price.

    ``figures`` are tokens, and at last the requests with an independent count, in the order of
    the contract's token figures (``usage.wire.TokenFigures``).
    """

    currency: str
    input_price: Decimal
    output_price: Decimal
    requests: int
    figures: tuple[int, ...]


Breakdown = dict[Key, list[PricedSum]]


@dataclass(frozen=True, slots=True)
class Cut:
    """A period cut at full hours; ``whole`` hours and the ``edges`` that are parts of one."""

    whole: Period | None
    edges: tuple[Period, ...]


def cut(period: Period) -> Cut:
    """Where roll-ups can answer for ``period`` and where rows must."""
    first, last = hour_of(period.start), hour_of(period.end)
    edges = []
    if first < period.start:
        if first == last:
            return Cut(None, (period,))
        first += _HOUR
        edges.append(Period(period.start, first))
    if last < period.end:
        edges.append(Period(last, period.end))
    return Cut(Period(first, last) if first < last else None, tuple(edges))


def breakdowns(organization_id: str, query: UsageQuery) -> dict[GroupBy, Breakdown]:
    """The sums of an organization for each requested breakdown, from one pass over the ledger.

    Every row of the period is in each of the breakdowns once, so each adds up to the total. Raises
    ``django.db.Error``.
    """
    found: dict[GroupBy, Breakdown] = {group: defaultdict(list) for group in query.group_by}
    grouped = _grouped(query)
    with _quick_to_start(), connection.cursor() as cursor:
        for source, parameters in _sources(organization_id, query):
            cursor.execute(f"WITH figures AS ({source}){grouped}", parameters)
            for columns in cursor.fetchall():
                group, key = _place(columns[: len(_ALL_DIMENSIONS)], query.bucket)
                found[group][key].append(_priced_sum(columns[len(_ALL_DIMENSIONS) :]))
    return found


@contextmanager
def _quick_to_start() -> Iterator[None]:
    """Keep PostgreSQL from compiling the statement, and from sorting where it can hash.

    Compiling takes longer than running it, and a sort of roll-ups goes through the disk.
    """
    if connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(
                "SELECT set_config('jit', 'off', true), set_config('enable_sort', 'off', true)"
            )
            yield
    else:
        yield


def _sources(organization_id: str, query: UsageQuery) -> Iterator[tuple[str, list[Any]]]:
    """SQL, with its parameters, of the roll-ups and then of the rows that the query is about.

    Not one statement for both: the planner has no statistics of a union, and sorts where it could
    hash.
    """
    parts = cut(query.period)
    if parts.whole is not None:
        yield (
            _select(UsageRollup, "hour", _ROLLUP_FIGURES, [parts.whole], query),
            _parameters(organization_id, [parts.whole], query.filters),
        )
    if parts.edges:
        yield (
            _select(UsageRow, "occurred_at", _ROW_FIGURES, parts.edges, query),
            _parameters(organization_id, parts.edges, query.filters),
        )


def _place(dimensions: Sequence[Any], bucket: Bucket) -> tuple[GroupBy, Key]:
    """Which breakdown and which entry of it a row of the answer belongs to."""
    model_identifier, model_id, api_key_id, bucket_start = dimensions
    if model_identifier is not None:
        return GroupBy.MODEL, (model_identifier, _uuid_text(model_id))
    if api_key_id is not None:
        return GroupBy.API_KEY, (_uuid_text(api_key_id),)
    return GroupBy.TIME, (_moment_text(bucket_start, bucket),)


def _select(
    model: type[models.Model],
    moment: str,
    figures: Mapping[str, str],
    periods: Sequence[Period],
    query: UsageQuery,
) -> str:
    """The figures, with what they are grouped by.

    Unless the breakdown by hour keeps most roll-ups apart anyhow, they are added up here for all
    breakdowns together: the sets then have little left to add, and PostgreSQL can go parallel.
    """
    within = " OR ".join([f"({moment} >= %s AND {moment} < %s)"] * len(periods))
    conditions = ["organization_id = %s", f"({within})"]
    if query.filters.model is not None:
        conditions.append("model_identifier = %s")
    if query.filters.api_key_id is not None:
        conditions.append("api_key_id = %s")
    columns = [name for group in query.group_by for name in _DIMENSIONS[group]] + list(_STAMP)
    keys = [
        f"{_bucket_start(moment, query.bucket)} AS {name}" if name == "bucket_start" else name
        for name in columns
    ]
    condensed = GroupBy.TIME not in query.group_by or query.bucket is not Bucket.HOUR
    summed = [f"{f'sum({sql})' if condensed else sql} AS {name}" for name, sql in figures.items()]
    numbers = ", ".join(str(number) for number in range(1, len(keys) + 1))
    return (
        f"SELECT {', '.join([*keys, *summed])} "  # noqa: S608  # names are ours
        f"FROM {model._meta.db_table} WHERE {' AND '.join(conditions)}"
        + (f" GROUP BY {numbers}" if condensed else "")
    )


def _parameters(organization_id: str, periods: Sequence[Period], filters: Filters) -> list[Any]:
    found = [_uuid_parameter(organization_id)]
    for period in periods:
        found += map(connection.ops.adapt_datetimefield_value, (period.start, period.end))
    if filters.model is not None:
        found.append(filters.model)
    if filters.api_key_id is not None:
        found.append(_uuid_parameter(filters.api_key_id))
    return found


def _grouped(query: UsageQuery) -> str:
    """The rest of the statement after ``WITH figures AS (...)``."""
    by_hour = GroupBy.TIME in query.group_by and query.bucket is Bucket.HOUR
    sums = ", ".join(f"sum({name})" for name in ROLLUP_SUMS)
    stamp = ", ".join(_STAMP)
    if connection.vendor == "postgresql":
        # A dimension that a set does not group by is null, as written out below.
        sets = ", ".join(f"({', '.join(_DIMENSIONS[group])})" for group in query.group_by)
        wanted = [name for group in query.group_by for name in _DIMENSIONS[group]]
        columns = ", ".join(name if name in wanted else "NULL" for name in _ALL_DIMENSIONS)
        source, shared = "figures", ""
        if not by_hour:
            # What all breakdowns share is added once, and they read the little that is left. By
            # the hour there is nothing to share: roll-ups are of an hour.
            kept = ", ".join((*wanted, *_STAMP))
            added = ", ".join(f"sum({name})::bigint AS {name}" for name in ROLLUP_SUMS)
            source = "shared"
            shared = f", shared AS (SELECT {kept}, {added} FROM figures GROUP BY {kept})"  # noqa: S608
        return (
            f"{shared} SELECT {columns}, {stamp}, {sums} FROM {source} "  # noqa: S608
            f"GROUP BY {stamp}, GROUPING SETS ({sets})"
        )
    selects = []
    for group in query.group_by:
        grouped = _DIMENSIONS[group]
        columns = ", ".join(name if name in grouped else "NULL" for name in _ALL_DIMENSIONS)
        selects.append(
            f"SELECT {columns}, {stamp}, {sums} FROM figures "  # noqa: S608
            f"GROUP BY {', '.join(grouped)}, {stamp}"
        )
    return f" {' UNION ALL '.join(selects)}"


def _bucket_start(moment: str, bucket: Bucket) -> str:
    if connection.vendor == "postgresql":
        return f"date_trunc('{bucket}', {moment}, 'UTC')"
    return f"substr({moment}, 1, {_TEXT_BUCKETS[bucket][1]})"


def _moment_text(bucket_start: datetime | str, bucket: Bucket) -> str:
    if isinstance(bucket_start, str):
        parsed = datetime.strptime(bucket_start, _TEXT_BUCKETS[bucket][0])  # noqa: DTZ007
        bucket_start = parsed.replace(tzinfo=UTC)
    return iso_milliseconds(bucket_start)


def _uuid_parameter(text: str) -> Any:
    return models.UUIDField().get_db_prep_value(text, connection)


def _uuid_text(value: uuid.UUID | str) -> str:
    return str(uuid.UUID(value) if isinstance(value, str) else value)


def _priced_sum(columns: Sequence[Any]) -> PricedSum:
    currency, input_price, output_price, requests, *figures = columns
    return PricedSum(
        currency=currency,
        input_price=price_of_units(input_price),
        output_price=price_of_units(output_price),
        requests=int(requests),
        figures=tuple(map(int, figures)),
    )
