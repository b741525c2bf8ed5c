"""A walk through the ledger of chats in steps of bounded size, by organization and hour.

Rows, roll-ups and the sums of pruned rows have the same order, so a step is one range of each,
however thinly an organization's rows are spread.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection

from svc_project.lib.clock import hour_of
from usage.models import PrunedSum, UsageRollup, UsageRow
from usage.tables import CHAT, POSTGRESQL_HOUR, ROLLUP_SUMS, SUMMED, listed

STEP = 20_000
"""About how many rows, or roll-ups, a step has; never less than an hour of an organization."""

_HOUR = timedelta(hours=1)
_ROWS, _ROLLUPS, _PRUNED = (
    f'"{model._meta.db_table}"' for model in (UsageRow, UsageRollup, PrunedSum)
)


@dataclass(frozen=True, slots=True)
class Place:
    """An hour of an organization, whose id is as the database gives it."""

    organization_id: Any
    hour: datetime


@dataclass(frozen=True, slots=True)
class Step:
    """From ``begin`` up to, and without, ``end``; None is the ledger's begin or end.

    ``since`` leaves out the earlier hours of every organization.
    """

    begin: Place | None
    end: Place | None
    since: datetime | None

    def where(self, moment: str) -> tuple[str, list[Any]]:
        """The SQL condition, with its parameters, on a table whose column of time is ``moment``."""
        conditions, parameters = ["true"], []
        for sign, place in ((">=", self.begin), ("<", self.end)):
            if place is not None:
                conditions.append(f"(organization_id, {moment}) {sign} (%s, %s)")
                parameters += [place.organization_id, _adapt(place.hour)]
        if self.since is not None:
            conditions.append(f"{moment} >= %s")
            parameters.append(_adapt(self.since))
        return " AND ".join(conditions), parameters


def steps(since: datetime | None = None, begin: Place | None = None) -> Iterator[Step]:
    """Every step from ``begin`` on. Raises ``django.db.Error``."""
    while True:
        end = _end(begin, since)
        yield Step(begin, end, since)
        if end is None:
            return
        begin = end


def made(step: Step) -> tuple[str, list[Any]]:
    """SQL, with its parameters, of the sums that the roll-ups of ``step`` must have.

    From the rows, and from what pruned rows had added; ``CHAT.key``, then ``ROLLUP_SUMS``.
    """
    rows, row_parameters = step.where("occurred_at")
    pruned, pruned_parameters = step.where("hour")
    key = listed(CHAT.key)
    hour = _hour()
    of_rows = ", ".join(f"{hour} AS hour" if name == "hour" else f'"{name}"' for name in CHAT.key)
    figures = {
        "requests": "1",
        **{name: f'coalesce("{name}", 0)' for name in SUMMED},
        "svc_counted_requests": 'CASE WHEN "svc_counted_input_tokens" IS NULL THEN 0 ELSE 1 END',
    }
    summed = ", ".join(f'sum({figures[name]}) AS "{name}"' for name in ROLLUP_SUMS)
    numbers = ", ".join(str(number) for number in range(1, len(CHAT.key) + 1))
    return (
        f"SELECT {key}, {_totals()} FROM ("  # noqa: S608  # names are ours
        f"SELECT {of_rows}, {summed} FROM {_ROWS} WHERE {rows} GROUP BY {numbers} UNION ALL "
        f"SELECT {key}, {listed(ROLLUP_SUMS)} FROM {_PRUNED} WHERE {pruned}"
        f") AS of_rows GROUP BY {key}",
        [*row_parameters, *pruned_parameters],
    )


def stored(step: Step) -> tuple[str, list[Any]]:
    """SQL, with its parameters, of the sums that the roll-ups of ``step`` have, as ``made``."""
    where, parameters = step.where("hour")
    key = listed(CHAT.key)
    return f"SELECT {key}, {_totals()} FROM {_ROLLUPS} WHERE {where} GROUP BY {key}", parameters  # noqa: S608


def _totals() -> str:
    """Sums as plain integers: PostgreSQL would make them numerics."""
    cast = "::bigint" if connection.vendor == "postgresql" else ""
    return ", ".join(f'sum("{name}"){cast} AS "{name}"' for name in ROLLUP_SUMS)


def _hour() -> str:
    return (
        POSTGRESQL_HOUR
        if connection.vendor == "postgresql"
        else "substr(occurred_at, 1, 13) || ':00:00'"
    )


def _end(begin: Place | None, since: datetime | None) -> Place | None:
    where = Step(begin, None, since).where
    found = []
    with connection.cursor() as cursor:
        for table, moment in ((_ROWS, "occurred_at"), (_ROLLUPS, "hour"), (_PRUNED, "hour")):
            condition, parameters = where(moment)
            cursor.execute(
                f"SELECT organization_id, {moment} FROM {table} WHERE {condition} "  # noqa: S608
                f"ORDER BY organization_id, {moment} LIMIT 1 OFFSET {STEP}",
                parameters,
            )
            found += cursor.fetchall()
    if not found:
        return None
    organization_id, moment = min(found)
    end = Place(organization_id, hour_of(_aware(moment)))
    if begin == end:
        end = Place(organization_id, end.hour + _HOUR)
    return end


def _aware(moment: datetime) -> datetime:
    """SQLite gives its times in UTC without saying so."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _adapt(moment: datetime) -> Any:
    return connection.ops.adapt_datetimefield_value(moment)
