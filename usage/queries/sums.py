"""The sums of a period, computed by the database.

Whole closed days come from the days, the whole hours around them from the roll-ups, the partial hours
at the period's edges from the rows. All reads see one snapshot of the database. Sums are kept by
stamped price and currency, so that a cost is the sum of a few exact products.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from decimal import Decimal
from functools import partial
from operator import add, itemgetter
from typing import Any, NamedTuple, Protocol

import msgspec
from django.db import connection

from core.money import cost_of_units
from usage.models.statements import SUMMARY_SUMS
from usage.queries import days
from usage.queries.periods import Bucket, GroupBy, UsageQuery
from usage.queries.selection import conditions
from usage.queries.snapshot import database_snapshot, plan_with
from usage.queries.sources import (
    Source,
    moment_text,
    moments,
    read,
    select,
    sources,
    sum_of,
    uuid_text,
)

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
    "model_id": "NULL::text",
    "api_key_id": "NULL::text",
    "bucket_start": "NULL::bigint",
}
_ALL_DIMENSIONS = [name for names in _DIMENSIONS.values() for name in names]
_KEY_COLUMNS = 1 + len(_ALL_DIMENSIONS) + 1
"""Columns of a result before the prices: a group's number, ``_ALL_DIMENSIONS``, and the currency."""
_CURRENCY = itemgetter(_KEY_COLUMNS - 1)


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
            each = part.cache
            cached += each[0]
            reported += each[1]
        return cls(cached, reported)

    @property
    def share(self) -> float | None:
        """The cached part, from 0 to 1; None where no server reported any."""
        return self.cached / self.reported if self.reported else None

    @property
    def text(self) -> str:
        """``750 of 2,000 tokens``."""
        return f"{self.cached:,} of {self.reported:,} tokens"


class Total(msgspec.Struct, frozen=True):
    """The sums of all prices in one currency.

    ``figures`` begin with the input and output tokens and end with ``CACHE_SUMS``; where all are read, they
    are the contract's token figures (``usage.api.wire.TokenFigures``), and then ``CACHE_SUMS``. Costs are
    in units of 10^-14 and exact. Reported tokens are what is billed; reasoning is included in the output
    count.
    """

    currency: str
    requests: int
    figures: tuple[int, ...]
    input_units: int
    output_units: int

    @property
    def cache(self) -> CacheSums:
        return CacheSums(*self.figures[-2:])

    def __add__(self, other: Total) -> Total:
        return Total(
            self.currency,
            self.requests + other.requests,
            tuple(map(add, self.figures, other.figures)),
            self.input_units + other.input_units,
            self.output_units + other.output_units,
        )

    @property
    def units(self) -> int:
        """The cost of input and output together."""
        return self.input_units + self.output_units

    @property
    def cost(self) -> Decimal:
        """``units`` as money."""
        return cost_of_units(self.units)


def total_of(
    currency: str, input_price: int, output_price: int, requests: int, *figures: int
) -> Total:
    """The total at one stamped price.

    Prices are in units of 10^-8, as stored: tokens times that is the cost in units of 10^-14, an integer.
    """
    return Total(currency, requests, figures, figures[0] * input_price, figures[1] * output_price)


def add_up(parts: Iterable[Total]) -> list[Total]:
    """Add up ``parts`` in each currency, by currency."""
    found: dict[str, Total] = {}
    for part in parts:
        known = found.get(part.currency)
        found[part.currency] = part if known is None else known + part
    return [found[currency] for currency in sorted(found)]


Breakdown = dict[Key, list[Total]]
"""The totals of each key in each currency, by currency."""


def breakdowns(organization_id: str, query: UsageQuery) -> dict[GroupBy, Breakdown]:
    """Return the sums of an organization for each dimension in ``query.group_by``.

    As ``grouped`` does. Raises ``django.db.Error``.
    """
    found = grouped(organization_id, query, [(group,) for group in query.group_by])
    return {group: breakdown for (group,), breakdown in found.items()}


def grouped(
    organization_id: str,
    query: UsageQuery,
    groups: Sequence[Group],
    figures: Sequence[str] = SUMMARY_SUMS,
) -> dict[Group, Breakdown]:
    """Return the sums of an organization for each of ``groups``, whatever ``query.group_by`` says.

    Every row of the period is in each breakdown once, so each adds up to the total. ``figures``: the
    requests, and then the ``figures`` of each ``Total``. Raises ``django.db.Error``.
    """
    found: dict[Group, Breakdown] = {group: defaultdict(list) for group in groups}
    chosen = conditions(organization_id, query.filters)
    with database_snapshot(), connection.cursor() as cursor:
        plan_with(jit="off", enable_sort="off")
        until = days.summed_until(organization_id)
        for together, by_hour in _passes(groups, query.bucket):
            totals: dict[tuple[Any, ...], Total] = {}
            for source in sources(query.period, date.min if by_hour else until):
                cursor.execute(
                    _statement(source, together, figures, chosen, query.bucket),
                    [*moments(source), *chosen.values()],
                )
                for row in cursor.fetchall():
                    key, part = row[:_KEY_COLUMNS], _part(*row[_KEY_COLUMNS - 1 :])
                    known = totals.get(key)
                    totals[key] = part if known is None else known + part
            texts = [_key_texts(group, query.bucket) for group in together]
            for key in sorted(totals, key=_CURRENCY):
                entry = tuple([text(key[place]) for place, text in texts[key[0]]])
                found[together[key[0]]][entry].append(totals[key])
    return found


def _passes(groups: Sequence[Group], bucket: Bucket) -> Iterator[tuple[list[Group], bool]]:
    """Yield groups that are read together, and whether they need hours rather than days."""
    by_hour = [group for group in groups if bucket is Bucket.HOUR and GroupBy.TIME in group]
    others = [group for group in groups if group not in by_hour]
    if by_hour:
        yield by_hour, True
    if others:
        yield others, False


def _key_texts(group: Group, bucket: Bucket) -> list[tuple[int, Callable[[Any], str]]]:
    """Return, for each part of a key of ``group``, its index in a row and the function that renders it."""
    texts: dict[str, Callable[[Any], str]] = {
        "model_identifier": str,
        "bucket_start": partial(moment_text, bucket=bucket),
    }
    names = [name for each in group for name in _DIMENSIONS[each]]
    return [(1 + _ALL_DIMENSIONS.index(name), texts.get(name, uuid_text)) for name in names]


def _statement(
    source: Source,
    groups: Sequence[Group],
    figures: Sequence[str],
    chosen: Iterable[str],
    bucket: Bucket,
) -> str:
    """SQL of the arguments of ``_part`` for ``groups``, preceded by a group's number and ``_ALL_DIMENSIONS``.

    The rows are aggregated once for all breakdowns, which then read the small result.
    """
    by = [[name for each in group for name in _DIMENSIONS[each]] for group in groups]
    wanted = list(dict.fromkeys(name for names in by for name in names))
    shared = select(source, (*wanted, *_STAMP), figures, chosen, bucket)
    costs, stamp = _costs_and_stamp()
    sums = ", ".join(map(sum_of, figures))
    selects = []
    for number, names in enumerate(by):
        columns = ", ".join(
            read(name) if name in names else _null(name) for name in _ALL_DIMENSIONS
        )
        selects.append(
            f"SELECT {number}, {columns}, price_currency, {costs}, {sums} FROM figures "  # noqa: S608  # names are ours
            f"GROUP BY {', '.join(names)}, {stamp}"
        )
    return f"WITH figures AS ({shared}) {' UNION ALL '.join(selects)}"


def _null(name: str) -> str:
    """A typed null for a dimension that a breakdown lacks; parts of a union need the same types."""
    return _POSTGRESQL_NULLS[name] if connection.vendor == "postgresql" else "NULL"


def _costs_and_stamp() -> tuple[str, str]:
    """SQL of the cost of input and output, or of their prices, and of what parts are grouped by."""
    if connection.vendor == "postgresql":
        return "{}, {}".format(
            *(
                f"sum(backend_reported_{kind}_tokens::numeric * {kind}_price_per_mtok)::text"
                for kind in ("input", "output")
            )
        ), "price_currency"
    # Its integers have 64 bits, which a sum of costs may exceed: Python multiplies.
    return "input_price_per_mtok, output_price_per_mtok", ", ".join(_STAMP)


def _part(
    currency: str, first: str | int, second: str | int, requests: int, *figures: int
) -> Total:
    """One part of an entry: ``first`` and ``second`` are costs as text, or prices."""
    if isinstance(first, int) and isinstance(second, int):
        return total_of(currency, first, second, requests, *figures)
    return Total(currency, requests, figures, int(first), int(second))
