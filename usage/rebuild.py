"""Sums made again from the rows alone: roll-ups an organization and hour at a time, speech days an
organization at a time.

Each of these is one short transaction, during which the sums take no other writer; requests that
end meanwhile wait for it, readers do not. Rows of any date count, whoever inserted them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.db import connection, models, transaction
from django.db.models import QuerySet

from svc_project.lib.clock import hour_of
from usage.models import SpeechDay, SpeechRow, UsageRollup, UsageRow
from usage.tables import CHAT, SPEECH

_HOUR = timedelta(hours=1)
_EVER = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Rebuilt:
    """How much was made again; ``organizations`` and ``hours`` are those of the roll-ups."""

    organizations: int = 0
    hours: int = 0
    rollups: int = 0
    speech_days: int = 0


def rebuild(since: datetime | None = None) -> Rebuilt:
    """Make the roll-ups of every hour from that of ``since`` on, and the speech days from its day
    on; all of them by default.

    Sums without rows go. Raises ``django.db.Error``; what was done until then is done, and running
    it again is harmless.
    """
    rebuilt = Rebuilt()
    first = _EVER if since is None else hour_of(since)
    for organization_id in _organizations(UsageRow, UsageRollup):
        hours = 0
        for hour in _hours(organization_id, first):
            rebuilt.rollups += _rebuild_hour(organization_id, hour)
            hours += 1
        rebuilt.hours += hours
        rebuilt.organizations += bool(hours)
    for organization_id in _organizations(SpeechRow, SpeechDay):
        rebuilt.speech_days += _rebuild_speech(organization_id, first.date())
    return rebuilt


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


def _hours(organization_id: uuid.UUID, first: datetime) -> Iterator[datetime]:
    """Every hour from ``first`` on in which the organization has a row or a roll-up."""
    while True:
        found = [
            moment
            for model, name in ((UsageRow, "occurred_at"), (UsageRollup, "hour"))
            for moment in model._default_manager.filter(
                organization_id=organization_id, **{f"{name}__gte": first}
            )
            .order_by(name)
            .values_list(name, flat=True)[:1]
        ]
        if not found:
            return
        hour = hour_of(min(found))
        yield hour
        first = hour + _HOUR


def _rebuild_hour(organization_id: uuid.UUID, hour: datetime) -> int:
    """Replace the roll-ups of one hour; returns how many there are now."""
    begin, end = map(connection.ops.adapt_datetimefield_value, (hour, hour + _HOUR))
    rows = f"(SELECT * FROM {CHAT.row_table} WHERE organization_id = %s AND occurred_at >= %s AND occurred_at < %s) AS of_hour"  # noqa: S608
    return _replace(
        UsageRollup.objects.filter(
            organization_id=organization_id, hour__gte=hour, hour__lt=hour + _HOUR
        ),
        CHAT.summed_up(rows, hour="%s"),
        [begin, _uuid_parameter(organization_id), begin, end],
    )


def _rebuild_speech(organization_id: uuid.UUID, first: date) -> int:
    """Replace the days of one organization from ``first`` on; returns how many there are now."""
    rows = f"(SELECT * FROM {SPEECH.row_table} WHERE organization_id = %s AND day >= %s) AS of_days"  # noqa: S608
    return _replace(
        SpeechDay.objects.filter(organization_id=organization_id, day__gte=first),
        SPEECH.summed_up(rows),
        [
            _uuid_parameter(organization_id),
            connection.ops.adapt_datefield_value(first),
        ],
    )


def _replace(stored: QuerySet[Any], insert: str, parameters: list[Any]) -> int:
    """Put what ``insert`` makes in the place of ``stored``; returns how many there are now."""
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # A writer could otherwise add a row that is in neither its sum nor this one. On SQLite
            # the transaction is the only writer.
            table = stored.model._meta.db_table
            cursor.execute(f'LOCK TABLE "{table}" IN SHARE ROW EXCLUSIVE MODE')
        stored.delete()
        cursor.execute(insert, parameters)
        made: int = cursor.rowcount
    return made


def _uuid_parameter(organization_id: uuid.UUID) -> Any:
    return models.UUIDField().get_db_prep_value(organization_id, connection)
