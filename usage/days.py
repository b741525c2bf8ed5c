"""Closed days of chats, summed once: ``UsageDay``, made from the hourly roll-ups by upkeep.

Before an organization's watermark a whole day is read from here, from it on from the hours; so a
reader is exact at once, however late this runs. A roll-up that changes after its hour has passed (a
slow clock, a late count, a hand) lowers the watermark in its own transaction (a trigger, migration
``0007``), and the days from there are summed again.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.db import connection, transaction

from svc_project.lib.clock import now
from usage.models import DayWatermark, UsageDay, UsageRollup
from usage.tables import CHAT, ROLLUP_SUMS, listed

CLOSED_FOR = timedelta(hours=3)
"""How long ago a day must have ended before it is summed.

A change counts as late, and is seen by the trigger, from two hours after the hour's beginning on; so a
writer would have to keep its transaction open for two hours to change a day unseen.
"""

_DAY = timedelta(days=1)
_HOURS, _DAYS = UsageRollup._meta.db_table, UsageDay._meta.db_table
_WATERMARKS = DayWatermark._meta.db_table
_REST_OF_KEY = [name for name in CHAT.key if name not in ("organization_id", "hour")]
# Every organization, by steps through the roll-ups' key: a DISTINCT would read all of them.
_ORGANIZATIONS = f"""
WITH RECURSIVE owner(id) AS (
    SELECT * FROM (SELECT organization_id FROM {_HOURS} ORDER BY organization_id LIMIT 1) AS first
    UNION ALL
    SELECT (SELECT organization_id FROM {_HOURS} WHERE organization_id > owner.id
            ORDER BY organization_id LIMIT 1)
    FROM owner WHERE owner.id IS NOT NULL
)
SELECT id FROM owner LEFT JOIN {_WATERMARKS} AS kept ON kept.organization_id = owner.id
WHERE id IS NOT NULL AND (kept.until IS NULL OR kept.until < %s)
"""  # noqa: S608  # names are ours


def midnight(day: date) -> datetime:
    """The first moment of a UTC day."""
    return datetime.combine(day, time.min, UTC)


def summed_until(organization_id: str) -> date:
    """The day before which every whole day of the organization can be read from ``UsageDay``."""
    kept = DayWatermark.objects.filter(pk=organization_id).values_list("until", flat=True).first()
    return kept or date.min


def keep_up() -> int:
    """Sum the days that have closed; returns of how many organizations there were some.

    A short transaction for each organization. Whoever comes second finds nothing to do. Raises
    ``django.db.Error``; what was summed until then is.
    """
    closed = (_database_now() - CLOSED_FOR).date()
    with connection.cursor() as cursor:
        cursor.execute(_ORGANIZATIONS, [connection.ops.adapt_datefield_value(closed)])
        due = [organization_id for (organization_id,) in cursor.fetchall()]
    for organization_id in due:
        _sum(organization_id, closed)
    return len(due)


def forget(since: date) -> None:
    """Have every organization's days from ``since`` on summed again. Raises ``django.db.Error``."""
    DayWatermark.objects.filter(until__gt=since).update(until=since)


def _sum(organization_id: Any, closed: date) -> None:
    """Sum the days of one organization from its watermark up to ``closed``, and raise it."""
    adapt_day, adapt = connection.ops.adapt_datefield_value, _moment
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {_WATERMARKS} (organization_id, until) VALUES (%s, %s) "  # noqa: S608
            "ON CONFLICT (organization_id) DO NOTHING",
            [organization_id, adapt_day(date.min)],
        )
        # Late writers wait here, so that what they change is summed, or lowers the new watermark.
        lock = " FOR UPDATE" if connection.vendor == "postgresql" else ""
        cursor.execute(
            f"SELECT until FROM {_WATERMARKS} WHERE organization_id = %s{lock}",  # noqa: S608
            [organization_id],
        )
        until = cursor.fetchone()[0]
        if until >= closed:
            return
        cursor.execute(
            f"DELETE FROM {_DAYS} WHERE organization_id = %s AND day >= %s",  # noqa: S608
            [organization_id, adapt_day(until)],
        )
        cursor.execute(
            _SUMMED_UP[connection.vendor],
            [organization_id, adapt(until), adapt(closed)],
        )
        cursor.execute(
            f"UPDATE {_WATERMARKS} SET until = %s WHERE organization_id = %s",  # noqa: S608
            [adapt_day(closed), organization_id],
        )


def _summed_up(day: str) -> str:
    rest = listed(_REST_OF_KEY)
    totals = ", ".join(f"sum({name})" for name in ROLLUP_SUMS)
    return (
        f"INSERT INTO {_DAYS} (organization_id, day, {rest}, {listed(ROLLUP_SUMS)}) "  # noqa: S608
        f"SELECT organization_id, {day}, {rest}, {totals} FROM {_HOURS} "
        "WHERE organization_id = %s AND hour >= %s AND hour < %s "
        f"GROUP BY organization_id, {day}, {rest}"
    )


_SUMMED_UP = {
    "postgresql": _summed_up("(hour AT TIME ZONE 'UTC')::date"),
    "sqlite": _summed_up("substr(hour, 1, 10)"),
}


def _moment(day: date) -> Any:
    return connection.ops.adapt_datetimefield_value(midnight(day))


def _database_now() -> datetime:
    """The clock that the trigger goes by."""
    if connection.vendor != "postgresql":
        return now()
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        moment: datetime = cursor.fetchone()[0]
    return moment
