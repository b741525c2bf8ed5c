"""Finding the rows of all organizations since a moment without reading the earlier ones.

The indexes are ordered by organization and time, so the next organization is one look into them,
and so are its rows since the moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.db import connection, models

from svc_project.lib.clock import hour_of
from svc_project.lib.ids import NIL_UUID

_MOST_AT_ONCE: Final = 64
_HOUR: Final = timedelta(hours=1)

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
