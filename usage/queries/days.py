"""Closed days of chats: upkeep sums the hourly roll-ups of each into ``UsageDay`` once.

Whole days before an organization's watermark are read from ``UsageDay``, later ones from the hours;
so a reader is exact, however late upkeep runs. A roll-up that changes after its hour has passed (a
slow clock, a late count, a manual change) lowers the watermark in its own transaction (a trigger,
migration ``0007``), and the days from there are summed again.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

from django.db import connection, transaction

from core.clock import midnight, now
from usage.models import DayWatermark, UsageDay, UsageRollup
from usage.models.statements import CHAT, ROLLUP_SUMS, column_list
from usage.queries.selection import OWNERS

CLOSED_FOR = timedelta(hours=3)
"""How long ago a day must have ended before it is summed.

The trigger treats a change as late from two hours after the beginning of the hour; so only a writer
whose transaction stays open for two hours could change a day unnoticed.
"""

_DAY = timedelta(days=1)
_HOURS, _DAYS = UsageRollup._meta.db_table, UsageDay._meta.db_table
_WATERMARKS = DayWatermark._meta.db_table
_REST_OF_KEY = [name for name in CHAT.key if name not in ("organization_id", "hour")]
_ORGANIZATIONS = f"""{OWNERS}
SELECT id FROM owner LEFT JOIN {_WATERMARKS} AS kept ON kept.organization_id = owner.id
WHERE id IS NOT NULL AND (kept.until IS NULL OR kept.until < %s)
"""  # noqa: S608  # names are ours


def summed_until(organization_id: str) -> date:
    """The watermark: whole days of the organization before it can be read from ``UsageDay``."""
    # In SQL, because each page of usage asks, and the ORM takes longer to build a statement than to run it.
    adapted = DayWatermark._meta.pk.get_db_prep_value(organization_id, connection)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT until FROM {_WATERMARKS} WHERE organization_id = %s",  # noqa: S608
            [adapted],
        )
        kept = cursor.fetchone()
    return date.min if kept is None else kept[0]


def sum_closed_days() -> int:
    """Sum the days that have closed; return how many organizations had some.

    Uses a short transaction for each organization; a concurrent call finds nothing to do. Raises
    ``django.db.Error``; days summed until then stay.
    """
    closed = (database_now() - CLOSED_FOR).date()
    with connection.cursor() as cursor:
        cursor.execute(_ORGANIZATIONS, [connection.ops.adapt_datefield_value(closed)])
        due = [organization_id for (organization_id,) in cursor.fetchall()]
    for organization_id in due:
        _sum(organization_id, closed)
    return len(due)


def invalidate(since: date) -> None:
    """Lower every watermark to ``since``, so that later days are summed again. Raises
    ``django.db.Error``."""
    DayWatermark.objects.filter(until__gt=since).update(until=since)


def _sum(organization_id: Any, closed: date) -> None:
    """Sum the days of one organization from its watermark up to ``closed``, and raise the watermark."""
    adapt_day, adapt = connection.ops.adapt_datefield_value, _moment
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {_WATERMARKS} (organization_id, until) VALUES (%s, %s) "  # noqa: S608
            "ON CONFLICT (organization_id) DO NOTHING",
            [organization_id, adapt_day(date.min)],
        )
        # Late writers wait for this lock: their change is summed, or lowers the new watermark.
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


def _insert_days(day: str) -> str:
    rest = column_list(_REST_OF_KEY)
    totals = ", ".join(f"sum({name})" for name in ROLLUP_SUMS)
    return (
        f"INSERT INTO {_DAYS} (organization_id, day, {rest}, {column_list(ROLLUP_SUMS)}) "  # noqa: S608
        f"SELECT organization_id, {day}, {rest}, {totals} FROM {_HOURS} "
        "WHERE organization_id = %s AND hour >= %s AND hour < %s "
        f"GROUP BY organization_id, {day}, {rest}"
    )


_SUMMED_UP = {
    "postgresql": _insert_days("(hour AT TIME ZONE 'UTC')::date"),
    "sqlite": _insert_days("substr(hour, 1, 10)"),
}


def _moment(day: date) -> Any:
    return connection.ops.adapt_datetimefield_value(midnight(day))


def database_now() -> datetime:
    """The time of the clock that the trigger uses."""
    if connection.vendor != "postgresql":
        return now()
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        moment: datetime = cursor.fetchone()[0]
    return moment
