"""Closed hours of speech: upkeep adds up the rows of each by voice and key, once, into ``SpeechHour``.

Whole hours before an organization's watermark are read from these sums, what is later from the rows; so a
reader is exact, however late upkeep runs. They are made of the rows alone: whichever release wrote a row, it
is in them. A row that is written or changed after its hour has passed lowers the watermark in its own
transaction (a trigger, migrations ``0015`` and ``0016``), and the hours from there are summed again.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction
from django.db.models.functions import Coalesce, Greatest

from core.clock import hour_of
from usage.models import SpeechDay, SpeechHour, SpeechRow, SpeechWatermark
from usage.models.statements import POSTGRESQL_HOUR
from usage.queries.days import CLOSED_FOR, database_now
from usage.queries.health import UNFAILED
from usage.queries.selection import owners_of
from usage.queries.sources import sum_of

EVER: Final = datetime(1, 1, 1, tzinfo=UTC)
_ROWS, _HOURS = SpeechRow._meta.db_table, SpeechHour._meta.db_table
_WATERMARKS = SpeechWatermark._meta.db_table
_UNFAILED: Final = ", ".join(f"'{each.value}'" for each in sorted(UNFAILED))
KEY: Final = ("organization_id", "hour", "voice", "api_key_id")
FIGURES: Final = {
    "requests": "1",
    "characters": "characters",
    "audio_ms": "audio_ms",
    "failed": f"CASE WHEN outcome IN ({_UNFAILED}) THEN 0 ELSE 1 END",
}
"""SQL of what a row adds to each sum. A client that disconnected is no failure."""
_HOUR: Final = {
    "postgresql": POSTGRESQL_HOUR,
    "sqlite": "substr(occurred_at, 1, 13) || ':00:00'",
}
_ORGANIZATIONS: Final = f"""{owners_of(SpeechDay._meta.db_table)}
SELECT id FROM owner LEFT JOIN {_WATERMARKS} AS kept ON kept.organization_id = owner.id
WHERE id IS NOT NULL AND (kept.until < %s OR EXISTS (
    SELECT 1 FROM {_ROWS} AS spoken WHERE spoken.organization_id = owner.id
    AND spoken.occurred_at >= coalesce(kept.until, %s) AND spoken.occurred_at < %s))
"""  # noqa: S608  # names are ours


def summed_until(organization_id: str) -> datetime:
    """The watermark: whole hours of the organization before it can be read from ``SpeechHour``."""
    kept = SpeechWatermark.objects.filter(pk=organization_id).values_list("until", flat=True)
    return kept.first() or EVER


def sum_closed_hours(least: datetime = EVER) -> int:
    """Sum the hours that have closed; return how many organizations had some.

    A watermark before ``least`` is raised too where no row came after it: that of an organization that
    stopped speaking.

    Uses a short transaction for each organization; a concurrent call finds nothing to do. Raises
    ``django.db.Error``; hours summed until then stay.
    """
    closed = hour_of(database_now() - CLOSED_FOR)
    with connection.cursor() as cursor:
        cursor.execute(_ORGANIZATIONS, [*map(_moment, (least, EVER, closed))])
        due = [organization_id for (organization_id,) in cursor.fetchall()]
    for organization_id in due:
        _sum(organization_id, closed)
    return len(due)


def invalidate(since: datetime) -> None:
    """Lower every watermark to the hour of ``since``, so that later hours are summed again.

    Hours whose rows are pruned stay. Raises ``django.db.Error``.
    """
    hour = hour_of(since)
    SpeechWatermark.objects.filter(until__gt=hour).update(
        until=Greatest(hour, Coalesce("pruned", hour))
    )


def pruned_days() -> dict[UUID, date]:
    """The day before which the sums of an organization have lost their rows, where rows are pruned.

    Raises ``django.db.Error``.
    """
    kept = SpeechWatermark.objects.exclude(pruned=None).values_list("pk", "pruned")
    return {pk: pruned.date() for pk, pruned in kept if pruned is not None}


def lock_pruned_day(organization_id: UUID) -> date:
    """Return that day of one organization, ``date.min`` where nothing is pruned; no prune of it begins
    until the transaction ends.

    Raises ``django.db.Error``.
    """
    kept = SpeechWatermark.objects.select_for_update().filter(pk=organization_id)
    pruned = kept.values_list("pruned", flat=True).first()
    return date.min if pruned is None else pruned.date()


def _sum(organization_id: Any, closed: datetime) -> None:
    """Sum the hours of one organization from its watermark up to ``closed``, and raise the watermark."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {_WATERMARKS} (organization_id, until) VALUES (%s, %s) "  # noqa: S608
            "ON CONFLICT (organization_id) DO NOTHING",
            [organization_id, _moment(EVER)],
        )
        # Late writers wait for this lock: their row is summed, or lowers the new watermark.
        lock = " FOR UPDATE" if connection.vendor == "postgresql" else ""
        cursor.execute(
            f"SELECT until FROM {_WATERMARKS} WHERE organization_id = %s{lock}",  # noqa: S608
            [organization_id],
        )
        until = cursor.fetchone()[0]
        cursor.execute(
            f"DELETE FROM {_HOURS} WHERE organization_id = %s AND hour >= %s",  # noqa: S608
            [organization_id, until],
        )
        made = made_of("organization_id = %s AND occurred_at >= %s AND occurred_at < %s")
        columns = ", ".join((*KEY, *FIGURES))
        cursor.execute(
            f"INSERT INTO {_HOURS} ({columns}) {made}", [organization_id, until, _moment(closed)]
        )
        cursor.execute(
            f"UPDATE {_WATERMARKS} SET until = %s WHERE organization_id = %s",  # noqa: S608
            [_moment(closed), organization_id],
        )


def made_of(where: str) -> str:
    """SQL of the sums of the rows that ``where`` selects: ``KEY`` and ``FIGURES``."""
    key = [f"{_HOUR[connection.vendor]} AS hour" if name == "hour" else name for name in KEY]
    sums = [f"{sum_of(each)} AS {name}" for name, each in FIGURES.items()]
    return f"SELECT {', '.join([*key, *sums])} FROM {_ROWS} WHERE {where} GROUP BY 1, 2, 3, 4"  # noqa: S608


def _moment(moment: datetime) -> Any:
    return connection.ops.adapt_datetimefield_value(moment)
