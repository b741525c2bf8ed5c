"""Rebuilding the sums from the rows: roll-ups a step of the ledger at a time, speech days an
organization at a time.

Where the sums of a step are right nothing is written and nothing waits. Otherwise the step is one
short transaction that locks the sums against writers; requests that end meanwhile wait for it,
readers do not. Rows of any date count, whichever program inserted them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import msgspec
from django.db import connection, models, transaction

from core.clock import hour_of
from usage.models import SpeechDay, SpeechRow, UsageRollup
from usage.models.statements import CHAT, ROLLUP_SUMS, SPEECH, column_list
from usage.queries import days, speech_hours
from usage.verification import walk
from usage.verification.progress import Progress
from usage.verification.walk import Step

_EVER = datetime(1, 1, 1, tzinfo=UTC)
_ROLLUPS = UsageRollup._meta.db_table


class Rebuilt(msgspec.Struct):
    """How much was rebuilt; ``organizations`` and ``hours`` are those of the roll-ups.

    ``changed``: roll-ups that had been wrong, missing or superfluous.
    """

    organizations: int = 0
    hours: int = 0
    rollups: int = 0
    changed: int = 0
    speech_days: int = 0
    last: str = ""
    """The last organization that was counted."""


def rebuild(since: datetime | None = None, progress: Progress[Rebuilt] | None = None) -> Rebuilt:
    """Rebuild the roll-ups from the hour of ``since`` on, and the days and speech days from its day on;
    all of them by default.

    Deletes sums without rows, except those of pruned rows. Raises ``django.db.Error``; completed steps
    stay, and another run is harmless. ``progress`` may continue an earlier run that was stopped.
    """
    progress = progress or Progress("rebuild_rollups", Rebuilt(), since)
    rebuilt = progress.state
    first = None if since is None else hour_of(since)
    for step in walk.steps(first, progress.begin):
        _count(step, rebuilt)
        if step.end is not None:
            progress.reached(step.end)
    days.invalidate((first or _EVER).date())
    days.sum_closed_days()
    speech_hours.invalidate(first or _EVER)
    speech_hours.sum_closed_hours()
    rebuilt.speech_days = sum(
        _rebuild_speech(organization_id, (first or _EVER).date())
        for organization_id in _organizations(SpeechRow, SpeechDay)
    )
    progress.ended()
    return rebuilt


def _count(step: Step, rebuilt: Rebuilt) -> None:
    for organization_id, hours, rollups, changed in _made_again(step):
        rebuilt.hours += hours
        rebuilt.rollups += rollups
        rebuilt.changed += changed
        if str(organization_id) != rebuilt.last:
            rebuilt.last = str(organization_id)
            rebuilt.organizations += 1


def _made_again(step: Step) -> list[tuple[Any, int, int, int]]:
    """Rebuild a step; return by organization: hours, roll-ups now, and how many were wrong or deleted."""
    found = _compared(step)
    if any(changed for *_, changed in found):
        with transaction.atomic(), connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                # Else a writer could add a row that is in neither its sum nor this one. On SQLite the
                # transaction is the only writer.
                cursor.execute(f'LOCK TABLE "{_ROLLUPS}" IN SHARE ROW EXCLUSIVE MODE')
            where, parameters = step.where("hour")
            cursor.execute(f'DELETE FROM "{_ROLLUPS}" WHERE {where}', parameters)  # noqa: S608
            made, parameters = walk.made(step)
            columns = column_list((*CHAT.key, *CHAT.totals))
            cursor.execute(f'INSERT INTO "{_ROLLUPS}" ({columns}) {made}', parameters)
    return found


def _compared(step: Step) -> list[tuple[Any, int, int, int]]:
    """Compare stored and computed sums in one statement, and so in one snapshot of the database."""
    made, made_parameters = walk.made(step)
    stored, stored_parameters = walk.stored(step)
    key = column_list(CHAT.key)
    differs = " OR ".join(
        ["sum(is_made) <> 1", "sum(is_stored) <> 1", *(f"sum({each}) <> 0" for each in ROLLUP_SUMS)]
    )
    negated = ", ".join(f"-{name}" for name in ROLLUP_SUMS)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT organization_id, count(DISTINCT CASE WHEN made = 1 THEN hour END), "  # noqa: S608
            f"sum(made), sum(differs) FROM (SELECT {key}, sum(is_made) AS made, "
            f"CASE WHEN {differs} THEN 1 ELSE 0 END AS differs FROM ("
            f"SELECT {key}, {column_list(ROLLUP_SUMS)}, 1 AS is_made, 0 AS is_stored "
            f"FROM ({made}) AS must_be UNION ALL "
            f"SELECT {key}, {negated}, 0, 1 FROM ({stored}) AS is_there"
            f") AS both_sides GROUP BY {key}) AS by_key GROUP BY organization_id ORDER BY 1",
            [*made_parameters, *stored_parameters],
        )
        return [
            (organization_id, hours, int(made), int(changed))
            for organization_id, hours, made, changed in cursor.fetchall()
        ]


def _organizations(*of: type[models.Model]) -> Iterator[uuid.UUID]:
    """Yield every organization with a row of one of these models, by steps through the indexes."""
    last = None
    while True:
        ahead = models.Q() if last is None else models.Q(organization_id__gt=last)
        found = [
            organization_id
            for model in of
            for organization_id in model._default_manager.filter(ahead)
            .order_by("organization_id")
            .values_list("organization_id", flat=True)[:1]
        ]
        if not found:
            return
        yield (last := min(found))


def _rebuild_speech(organization_id: uuid.UUID, first: date) -> int:
    """Replace the days of one organization from ``first`` on, except those whose rows are pruned; return
    how many there are now."""
    rows = f"(SELECT * FROM {SPEECH.row_table} WHERE organization_id = %s AND day >= %s) AS of_days"  # noqa: S608
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # Locked as above.
            cursor.execute(f'LOCK TABLE "{SpeechDay._meta.db_table}" IN SHARE ROW EXCLUSIVE MODE')
        # After the lock of the days, because a late row locks in that order too.
        first = max(first, speech_hours.lock_pruned_day(organization_id))
        SpeechDay.objects.filter(organization_id=organization_id, day__gte=first).delete()
        cursor.execute(
            SPEECH.insert_sums(rows),
            [
                models.UUIDField().get_db_prep_value(organization_id, connection),
                connection.ops.adapt_datefield_value(first),
            ],
        )
        made: int = cursor.rowcount
    return made
