"""Fills the outcomes and times of sums that a release without these columns has written.

In such a sum the outcomes are fewer than the requests. Upkeep looks for closed days of which that is true,
computes them from the rows, and sums the days again (``usage.queries.days``). Nothing is locked but the
sums themselves.
"""

from __future__ import annotations

import time
import uuid
from datetime import date
from functools import reduce
from operator import add
from typing import Any, Final

from django.db import connection, transaction
from django.db.models import F, Max

from core.clock import midnight, next_month
from usage.models import PrunedMonth, UsageDay
from usage.models.health_sums import HEALTH_SUMS, OUTCOME_SUMS
from usage.models.statements import CHAT, ROLLUP_SUMS
from usage.verification import walk

_MOST_DAYS: Final = 1000
"""Days that are looked for at once."""
SECONDS: Final = 20.0
"""How long one call works at most."""

_tried: set[tuple[Any, date]] = set()
"""Days that this process has filled as far as their rows say."""


def fill() -> int:
    """Fill days with a gap, the newest first; return how many. Raises ``django.db.Error``."""
    until = time.monotonic() + SECONDS
    filled = 0
    for organization_id, day in _gaps():
        if (organization_id, day) in _tried:
            continue
        _fill(organization_id, day)
        _tried.add((organization_id, day))
        filled += 1
        if time.monotonic() > until:
            break
    return filled


def _gaps() -> list[tuple[uuid.UUID, date]]:
    """Days of which outcomes are missing and rows are there."""
    days = UsageDay.objects.exclude(requests=reduce(add, map(F, OUTCOME_SUMS.values())))
    if (last := PrunedMonth.objects.aggregate(last=Max("first"))["last"]) is not None:
        days = days.filter(day__gte=next_month(midnight(last)).date())
    found = days.order_by("-day").values_list("organization_id", "day").distinct()
    return list(found[:_MOST_DAYS])


def _fill(organization_id: uuid.UUID, day: date) -> None:
    """Compute the sums of one day's hours, and write those whose requests are the same."""
    made, parameters = walk.made(walk.one_day(organization_id, midnight(day)))
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(_UPDATE.format(made=made), parameters)
        return
    # Not every SQLite that Django supports has UPDATE FROM.
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(made, parameters)
        cursor.executemany(_UPDATE_ONE, [_values(each) for each in cursor.fetchall()])


def _values(made: tuple[Any, ...]) -> list[Any]:
    """The parameters of ``_UPDATE_ONE``."""
    sums = dict(zip((*CHAT.key, *ROLLUP_SUMS), made, strict=True))
    return [sums[name] for name in (*HEALTH_SUMS, *CHAT.key, "requests")]


_HAS_GAP: Final = f"shard = 0 AND kept.requests <> {' + '.join(OUTCOME_SUMS.values())}"
_UPDATE_ONE: Final = (
    f'UPDATE "{CHAT.sum_table}" AS kept SET '  # noqa: S608  # names are ours
    + ", ".join(f'"{name}" = %s' for name in HEALTH_SUMS)
    + f" WHERE {_HAS_GAP} AND "
    + " AND ".join(f'"{name}" = %s' for name in (*CHAT.key, "requests"))
)
_UPDATE: Final = (
    f'UPDATE "{CHAT.sum_table}" AS kept SET '  # noqa: S608
    + ", ".join(f'"{name}" = made."{name}"' for name in HEALTH_SUMS)
    + " FROM ({made}) AS made WHERE "
    + _HAS_GAP.replace("outcome_", "kept.outcome_")
    + "".join(f' AND kept."{name}" = made."{name}"' for name in (*CHAT.key, "requests"))
)
