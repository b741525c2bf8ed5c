"""The sums of a period, computed by the database.

Whole closed days come from the days, the whole hours around them from the roll-ups, the partial hours
at the period's edges from the rows. All reads see one snapshot of the database. Sums are kept by
stamped price and currency, so that a cost is the sum of a few exact products.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple, Protocol

from django.db import connection

from core.money import cost_of_units
from usage.models.statements import SUMMARY_SUMS
from usage.queries import days
from usage.queries.periods import Bucket, GroupBy, UsageQuery
from usage.queries.selection import conditions
from usage.queries.snapshot import database_snapshot, plan_with
from usage.queries.sources import Source, moment_text, moments, select, sources, sum_of

Group = tuple[GroupBy, ...]
"""The dimensions of a breakdown, at most two."""

Key = tuple[str, ...]
"""``(model_identifier, model_id)``, ``(api_key_id,)`` or ``(bucket_start,)``, in sorting order; those of a
group of two dimensions one after the other."""

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

    @property
    def text(self) -> str:
        """``750 of 2,000 tokens``."""
        return f"{self.cached:,} of {self.reported:,} tokens"


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
            for source in sources(query.period, date.min if by_hour else until):
                cursor.execute(
                    _statement(source, together, chosen, query.bucket),
                    [*moments(source), *chosen.values()],
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
            key += (moment_text(bucket_start, bucket),)
    return key


def _statement(
    source: Source, groups: Sequence[Group], chosen: Iterable[str], bucket: Bucket
) -> str:
    """SQL of the sums of ``groups``, preceded by a group's number, ``_ALL_DIMENSIONS`` and ``_STAMP``.

    The rows are aggregated once for all breakdowns, which then read the small result.
    """
    by = [[name for each in group for name in _DIMENSIONS[each]] for group in groups]
    wanted = list(dict.fromkeys(name for names in by for name in names))
    shared = select(source, (*wanted, *_STAMP), SUMMARY_SUMS, chosen, bucket)
    stamp = ", ".join(_STAMP)
    sums = ", ".join(map(sum_of, SUMMARY_SUMS))
    selects = []
    for number, names in enumerate(by):
        columns = ", ".join(
            _read(name) if name in names else _null(name) for name in _ALL_DIMENSIONS
        )
        if len(groups) == 1:
            return f"SELECT {number}, {columns}, {stamp}, {', '.join(SUMMARY_SUMS)} FROM ({shared}) AS figures"  # noqa: S608
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
