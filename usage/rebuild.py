"""Sums made again from the rows alone: roll-ups a step of the ledger at a time, speech days an
organization at a time.

Where the sums of a step are right already nothing is written and nobody waits. Where they are not the
step is one short transaction, during which the sums take no other writer; requests that end meanwhile
wait for it, readers do not. Rows of any date count, whoever inserted them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import msgspec
from django.db import connection, models, transaction
from django.db.models import QuerySet

from svc_project.lib.clock import hour_of
from usage import days, walk
from usage.models import SpeechDay, SpeechRow, UsageRollup
from usage.progress import Progress
from usage.tables import CHAT, ROLLUP_SUMS, SPEECH, listed
from usage.walk import Step

_EVER = datetime(1, 1, 1, tzinfo=UTC)
_ROLLUPS = UsageRollup._meta.db_table


class Rebuilt(msgspec.Struct):
    """How much was made again; ``organizations`` and ``hours`` are those of the roll-ups.

    ``changed`` roll-ups had been wrong, missing or too many.
    """

    organizations: int = 0
    hours: int = 0
    rollups: int = 0
    changed: int = 0
    speech_days: int = 0
    last: str = ""
    """The organization that was counted last."""


def rebuild(since: datetime | None = None, progress: Progress[Rebuilt] | None = None) -> Rebuilt:
    """Make the roll-ups of every hour from that of ``since`` on, and the days and speech days from its
    day on; all of them by default.

    Sums without rows go; those of pruned rows stay. Raises ``django.db.Error``; what was done until then
    is done, and running it again is harmless. ``progress`` may go on where an earlier run was stopped.
    """
    progress = progress or Progress("rebuild_rollups", Rebuilt(), since)
    rebuilt = progress.state
    first = None if since is None else hour_of(since)
    for step in walk.steps(first, progress.begin):
        _count(step, rebuilt)
        if step.end is not None:
            progress.reached(step.end)
    days.forget((first or _EVER).date())
    days.keep_up()
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
    """By organization: hours, roll-ups that there are now, and how many of them, or gone, were wrong."""
    found = _compared(step)
    if any(changed for *_, changed in found):
        with transaction.atomic(), connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                # A writer could otherwise add a row that is in neither its sum nor this one. On
                # SQLite the transaction is the only writer.
                cursor.execute(f'LOCK TABLE "{_ROLLUPS}" IN SHARE ROW EXCLUSIVE MODE')
            where, parameters = step.where("hour")
            cursor.execute(f'DELETE FROM "{_ROLLUPS}" WHERE {where}', parameters)  # noqa: S608
            made, parameters = walk.made(step)
            columns = listed((*CHAT.key, *CHAT.totals))
            cursor.execute(f'INSERT INTO "{_ROLLUPS}" ({columns}) {made}', parameters)
    return found


def _compared(step: Step) -> list[tuple[Any, int, int, int]]:
    """What is stored against what must be, in one statement and so in one state of the database."""
    made, made_parameters = walk.made(step)
    stored, stored_parameters = walk.stored(step)
    key = listed(CHAT.key)
    differs = " OR ".join(
        ["sum(is_made) <> 1", "sum(is_stored) <> 1", *(f"sum({each}) <> 0" for each in ROLLUP_SUMS)]
    )
    negated = ", ".join(f"-{name}" for name in ROLLUP_SUMS)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT organization_id, count(DISTINCT CASE WHEN made = 1 THEN hour END), "  # noqa: S608
            f"sum(made), sum(differs) FROM (SELECT {key}, sum(is_made) AS made, "
            f"CASE WHEN {differs} THEN 1 ELSE 0 END AS differs FROM ("
            f"SELECT {key}, {listed(ROLLUP_SUMS)}, 1 AS is_made, 0 AS is_stored "
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
    """Every organization with a row of one of these models, found by steps through the indexes."""
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
    """Replace the days of one organization from ``first`` on; returns how many there are now."""
    rows = f"(SELECT * FROM {SPEECH.row_table} WHERE organization_id = %s AND day >= %s) AS of_days"  # noqa: S608
    return _replace(
        SpeechDay.objects.filter(organization_id=organization_id, day__gte=first),
        SPEECH.summed_up(rows),
        [
            models.UUIDField().get_db_prep_value(organization_id, connection),
            connection.ops.adapt_datefield_value(first),
        ],
    )


def _replace(stored: QuerySet[Any], insert: str, parameters: list[Any]) -> int:
    """Put what ``insert`` makes in the place of ``stored``; returns how many there are now."""
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # As above.
            table = stored.model._meta.db_table
            cursor.execute(f'LOCK TABLE "{table}" IN SHARE ROW EXCLUSIVE MODE')
        stored.delete()
        cursor.execute(insert, parameters)
        made: int = cursor.rowcount
    return made
