"""How an organization's chats ended and how long they took, over time, from the sums.

Exact for any number of requests: outcomes and buckets of times are summed with the rows
(``usage.models.health_sums``). A percentile is interpolated within its bucket.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from typing import Final

from django.db import connection

from usage.models import Outcome
from usage.models.health_sums import (
    BOUNDS,
    DURATION_SUMS,
    FIRST_TOKEN_SUMS,
    HEALTH_SUMS,
    OUTCOME_SUMS,
)
from usage.queries import days
from usage.queries.health import UNFAILED, Latency
from usage.queries.periods import Bucket, Period
from usage.queries.selection import Filters, conditions
from usage.queries.snapshot import database_snapshot
from usage.queries.sources import moment_of, moments, read, select, sources

FIGURES: Final = ("requests", *HEALTH_SUMS)
_AT: Final = {name: number for number, name in enumerate(FIGURES)}
_OUTCOMES: Final = [_AT[name] for name in OUTCOME_SUMS.values()]
_FAILED: Final = [_AT[name] for outcome, name in OUTCOME_SUMS.items() if outcome not in UNFAILED]
_DURATIONS: Final = [_AT[name] for name in DURATION_SUMS]
_FIRST_TOKENS: Final = [_AT[name] for name in FIRST_TOKEN_SUMS]


@dataclass(frozen=True)
class Endings:
    """How some requests ended: the sums of ``FIGURES``."""

    sums: tuple[int, ...] = (0,) * len(FIGURES)

    @cached_property
    def requests(self) -> int:
        """Those whose outcome is summed."""
        return sum(self.sums[at] for at in _OUTCOMES)

    @property
    def unknown(self) -> int:
        """Those that an earlier release summed, until upkeep has added their outcomes."""
        return max(0, self.sums[0] - self.requests)

    @cached_property
    def failed(self) -> int:
        return sum(self.sums[at] for at in _FAILED)

    @property
    def failed_percent(self) -> float:
        return 100 * self.failed / self.requests if self.requests else 0.0

    @property
    def disconnected(self) -> int:
        return self.sums[_AT[OUTCOME_SUMS[Outcome.CLIENT_DISCONNECTED]]]

    @cached_property
    def first_token(self) -> Latency | None:
        return _latency([self.sums[at] for at in _FIRST_TOKENS])

    @cached_property
    def duration(self) -> Latency | None:
        return _latency([self.sums[at] for at in _DURATIONS])


def add_up(parts: Iterable[Endings]) -> Endings:
    """The endings of all ``parts``."""
    return Endings(
        tuple(map(sum, zip(Endings().sums, *(each.sums for each in parts), strict=True)))
    )


def endings(
    organization_id: str, period: Period, filters: Filters, bucket: Bucket
) -> Mapping[datetime, Endings]:
    """Return the endings of ``period`` by the beginnings of its buckets; empty ones are left out.

    Read from days, hours and rows as the summary is. Raises ``django.db.Error``.
    """
    chosen = conditions(organization_id, filters)
    found: dict[datetime, Endings] = {}
    with database_snapshot(), connection.cursor() as cursor:
        until = date.min if bucket is Bucket.HOUR else days.summed_until(organization_id)
        for source in sources(period, until):
            cursor.execute(
                f"SELECT {read('bucket_start')}, {', '.join(FIGURES)} "  # noqa: S608  # names are ours
                f"FROM ({select(source, ('bucket_start',), FIGURES, chosen, bucket)}) AS figures",
                [*moments(source), *chosen.values()],
            )
            for start, *sums in cursor.fetchall():
                moment, part = moment_of(start, bucket), Endings(tuple(sums))
                found[moment] = add_up((found[moment], part)) if moment in found else part
    return dict(sorted(found.items()))


def whole(organization_id: str, period: Period, filters: Filters | None = None) -> Endings:
    """Return the endings of all of ``period``. Raises ``django.db.Error``."""
    return add_up(endings(organization_id, period, filters or Filters(), Bucket.DAY).values())


def _latency(counts: Sequence[int]) -> Latency | None:
    """The percentiles of the requests in buckets of times; None without any."""
    if not any(counts):
        return None
    return Latency(_percentile(counts, 50), _percentile(counts, 95))


def _percentile(counts: Sequence[int], percent: int) -> int:
    """The time in milliseconds below which ``percent`` of the requests are.

    Within a bucket times are taken to be spread evenly on the bucket's logarithmic scale; of the last one,
    which has no end, it is the beginning.
    """
    rank = sum(counts) * percent / 100
    number = 0
    while rank > counts[number]:
        rank -= counts[number]
        number += 1
    if number == len(BOUNDS):
        return BOUNDS[-1]
    share = rank / counts[number]
    if number == 0:
        return round(BOUNDS[0] * share)
    low, high = BOUNDS[number - 1], BOUNDS[number]
    return round(low * math.pow(high / low, share))
