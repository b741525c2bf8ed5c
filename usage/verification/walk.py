"""A walk through the ledger of chats in steps of bounded size, by organization and hour.

Rows, roll-ups and the sums of pruned rows have the same order. A walk through everything takes one
range of each in a step, however thinly an organization's rows are spread. A walk from a moment on
skips the earlier rows without reading them: the indexes are ordered by organization and time, so the
next organization is one look into them, and so are its rows since the moment.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any, Final, Protocol

from django.db import connection, models

from core.clock import hour_of
from core.ids import NIL_UUID
from usage.models import PrunedSum, UsageRollup, UsageRow
from usage.models.statements import CHAT, POSTGRESQL_HOUR, ROLLUP_SUMS, column_list

STEP = 20_000
"""About how many rows, or roll-ups, a step has; at least an hour of an organization."""

_MOST_ORGANIZATIONS: Final = 500
_HOUR: Final = timedelta(hours=1)
_ROWS, _ROLLUPS, _PRUNED = (
    f'"{model._meta.db_table}"' for model in (UsageRow, UsageRollup, PrunedSum)
)
TABLES: Final = ((_ROWS, "occurred_at"), (_ROLLUPS, "hour"), (_PRUNED, "hour"))
"""The tables that are walked through, each with its time column."""


@dataclass(frozen=True, slots=True)
class WalkPosition:
    """An hour of an organization, whose id is as the database returns it."""

    organization_id: Any
    hour: datetime


class Step(Protocol):
    """A part of the ledger. ``end``: where the next step begins; None after the last."""

    @property
    def end(self) -> WalkPosition | None: ...

    def where(self, moment: str) -> tuple[str, list[Any]]:
        """The SQL condition, with its parameters, on a table whose time column is ``moment``."""


@dataclass(frozen=True, slots=True)
class _Range:
    """From ``begin`` to ``end`` (exclusive); None is the beginning or end of the ledger."""

    begin: WalkPosition | None
    end: WalkPosition | None

    def where(self, moment: str) -> tuple[str, list[Any]]:
        conditions, parameters = ["true"], []
        for sign, position in ((">=", self.begin), ("<", self.end)):
            if position is not None:
                conditions.append(f"(organization_id, {moment}) {sign} (%s, %s)")
                parameters += [position.organization_id, adapt(position.hour)]
        return " AND ".join(conditions), parameters


@dataclass(frozen=True, slots=True)
class _Recent:
    """The hours of ``organizations`` from ``first`` on, to ``last`` (exclusive) if it is given."""

    organizations: Sequence[Any]
    first: datetime
    last: datetime | None
    end: WalkPosition | None

    def where(self, moment: str) -> tuple[str, list[Any]]:
        places = ", ".join(["%s"] * len(self.organizations))
        condition = f"organization_id IN ({places}) AND {moment} >= %s"
        parameters = [*self.organizations, adapt(self.first)]
        if self.last is not None:
            condition += f" AND {moment} < %s"
            parameters.append(adapt(self.last))
        return condition, parameters


def steps(since: datetime | None = None, begin: WalkPosition | None = None) -> Iterator[Step]:
    """Yield every step from ``begin`` on, without the hours before ``since``. Raises
    ``django.db.Error``."""
    if since is not None:
        yield from _recent_steps(since, begin)
        return
    while True:
        end = _end(begin)
        yield _Range(begin, end)
        if end is None:
            return
        begin = end


def _recent_steps(since: datetime, begin: WalkPosition | None) -> Iterator[Step]:
    """Yield steps of many small organizations, or of some hours of a large one."""
    group: list[Any] = []
    first, size = since, 0
    rest = organizations(TABLES, since, STEP, begin and begin.organization_id)
    # How much of the organization at which an earlier run was stopped is left is not known.
    known = [] if begin is None else [(begin.organization_id, STEP + 1)]
    for organization_id, rows in chain(known, rest):
        if group and (size + rows > STEP or len(group) == _MOST_ORGANIZATIONS):
            yield _Recent(group, first, None, WalkPosition(organization_id, since))
            group, first, size = [], since, 0
        group.append(organization_id)
        size += rows
        if rows > STEP:
            first = since if begin is None else max(since, begin.hour)
            begin = None
            while (last := cut(TABLES, organization_id, first, STEP)) is not None:
                yield _Recent(group, first, last, WalkPosition(organization_id, last))
                first = last
    if group:
        yield _Recent(group, first, None, None)


def one_day(organization_id: uuid.UUID, begin: datetime) -> Step:
    """The hours of one organization on the day from ``begin`` on."""
    own = models.UUIDField().get_db_prep_value(organization_id, connection)
    return _Recent([own], begin, begin + timedelta(days=1), None)


def made(step: Step) -> tuple[str, list[Any]]:
    """SQL, with its parameters, of the sums that the roll-ups of ``step`` must have.

    Computed from the rows and the sums of pruned rows; ``CHAT.key``, then ``ROLLUP_SUMS``.
    """
    rows, row_parameters = step.where("occurred_at")
    pruned, pruned_parameters = step.where("hour")
    key = column_list(CHAT.key)
    hour = _hour()
    of_rows = ", ".join(f"{hour} AS hour" if name == "hour" else f'"{name}"' for name in CHAT.key)
    summed = ", ".join(f'sum({total.of_row}) AS "{name}"' for name, total in CHAT.totals.items())
    numbers = ", ".join(str(number) for number in range(1, len(CHAT.key) + 1))
    return (
        f"SELECT {key}, {_totals()} FROM ("  # noqa: S608  # names are ours
        f"SELECT {of_rows}, {summed} FROM {_ROWS} WHERE {rows} GROUP BY {numbers} UNION ALL "
        f"SELECT {key}, {column_list(ROLLUP_SUMS)} FROM {_PRUNED} WHERE {pruned}"
        f") AS of_rows GROUP BY {key}",
        [*row_parameters, *pruned_parameters],
    )


def stored(step: Step) -> tuple[str, list[Any]]:
    """SQL, with its parameters, of the stored roll-ups of ``step``, in the columns of ``made``."""
    where, parameters = step.where("hour")
    key = column_list(CHAT.key)
    return f"SELECT {key}, {_totals()} FROM {_ROLLUPS} WHERE {where} GROUP BY {key}", parameters  # noqa: S608


def _totals() -> str:
    """Sums as integers: PostgreSQL would return numerics."""
    cast = "::bigint" if connection.vendor == "postgresql" else ""
    return ", ".join(f'sum("{name}"){cast} AS "{name}"' for name in ROLLUP_SUMS)


def _hour() -> str:
    return (
        POSTGRESQL_HOUR
        if connection.vendor == "postgresql"
        else "substr(occurred_at, 1, 13) || ':00:00'"
    )


def _end(begin: WalkPosition | None) -> WalkPosition | None:
    where = _Range(begin, None).where
    found = []
    with connection.cursor() as cursor:
        for table, moment in TABLES:
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
    end = WalkPosition(organization_id, hour_of(aware(moment)))
    if begin == end:
        end = WalkPosition(organization_id, end.hour + _HOUR)
    return end


_MOST_AT_ONCE: Final = 64

Tables = Sequence[tuple[str, str]]
"""Names of tables, each with that of its time column."""


def organizations(
    tables: Tables, since: datetime, enough: int, after: Any = None
) -> Iterator[tuple[Any, int]]:
    """Yield each organization beyond ``after`` that has rows since then in one of ``tables``.

    With the largest number of its rows in one table, counted up to ``enough`` + 1. Raises
    ``django.db.Error``.
    """
    at_once = 1
    while True:
        found: dict[Any, int] = {}
        for table, moment in tables:
            for organization_id, rows in _next(table, moment, since, enough, after, at_once):
                found[organization_id] = max(rows, found.get(organization_id, 0))
        if not found:
            return
        # What one of the tables has beyond these was not read.
        complete = sorted(found)[:at_once]
        yield from ((each, found[each]) for each in complete if found[each])
        after = complete[-1]
        at_once = min(2 * at_once, _MOST_AT_ONCE)


def _next(
    table: str, moment: str, since: datetime, enough: int, after: Any, at_most: int
) -> list[tuple[Any, int]]:
    """The next organizations of ``table`` beyond ``after``, each with its rows since then."""
    # A condition on the first one, too, lets the database enter the index there.
    beyond = "organization_id >= %s" if after is None else "organization_id > %s"
    first = models.UUIDField().get_db_prep_value(NIL_UUID, connection) if after is None else after
    step = f"SELECT organization_id FROM {table} WHERE {{}} ORDER BY organization_id LIMIT 1"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH RECURSIVE organization(id) AS (SELECT ({step.format(beyond)}) UNION ALL "  # noqa: S608
            f"SELECT ({step.format('organization_id > organization.id')}) "
            "FROM organization WHERE id IS NOT NULL) "
            f"SELECT id, (SELECT count(*) FROM (SELECT 1 FROM {table} "
            f"WHERE organization_id = organization.id AND {moment} >= %s LIMIT {enough + 1}"
            ") AS since) "
            f"FROM organization WHERE id IS NOT NULL LIMIT {at_most}",
            [first, adapt(since)],
        )
        return [(organization_id, rows) for organization_id, rows in cursor.fetchall()]


def cut(tables: Tables, organization_id: Any, first: datetime, rows: int) -> datetime | None:
    """The hour before which an organization has about ``rows`` rows from ``first`` on.

    None when it has no more than those. Raises ``django.db.Error``.
    """
    found = []
    with connection.cursor() as cursor:
        for table, moment in tables:
            cursor.execute(
                f"SELECT {moment} FROM {table} WHERE organization_id = %s AND {moment} >= %s "  # noqa: S608
                f"ORDER BY {moment} LIMIT 1 OFFSET {rows}",
                [organization_id, adapt(first)],
            )
            found += [aware(each) for (each,) in cursor.fetchall()]
    if not found:
        return None
    return max(hour_of(min(found)), hour_of(first) + _HOUR)


def aware(moment: datetime) -> datetime:
    """Add UTC, which SQLite leaves out of its times."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def adapt(moment: datetime) -> Any:
    """``moment`` as a parameter of a statement."""
    return connection.ops.adapt_datetimefield_value(moment)
