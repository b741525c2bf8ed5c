"""Roll-ups made again from the rows alone, one organization and hour at a time.

Each hour is one short transaction, during which the roll-ups take no other writer; requests that
end meanwhile wait for it, readers do not. Rows of any date count, whoever inserted them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import connection, models, transaction

from svc_project.lib.clock import hour_of
from usage.models import UsageRollup, UsageRow
from usage.rows import ROLLUP_KEY, ROLLUP_SUMS, rollup_select

_ROWS = UsageRow._meta.db_table
_ROLLUPS = UsageRollup._meta.db_table
_HOUR = timedelta(hours=1)
_EVER = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Rebuilt:
    """How much was made again."""

    organizations: int = 0
    hours: int = 0
    rollups: int = 0


def rebuild(since: datetime | None = None) -> Rebuilt:
    """Make the roll-ups of every hour from that of ``since`` on; all of them by default.

    Roll-ups without rows go. Raises ``django.db.Error``; the hours done until then are done, and
    running it again is harmless.
    """
    rebuilt = Rebuilt()
    first = _EVER if since is None else hour_of(since)
    for organization_id in _organizations():
        hours = 0
        for hour in _hours(organization_id, first):
            rebuilt.rollups += _rebuild_hour(organization_id, hour)
            hours += 1
        rebuilt.hours += hours
        rebuilt.organizations += bool(hours)
    return rebuilt


def _organizations() -> Iterator[uuid.UUID]:
    """Every organization with a row or a roll-up, found by steps through the indexes."""
    last = None
    while True:
        ahead = models.Q() if last is None else models.Q(organization_id__gt=last)
        found = [
            organization_id
            for model in (UsageRow, UsageRollup)
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
    columns = ", ".join(f'"{name}"' for name in (*ROLLUP_KEY, *ROLLUP_SUMS))
    rows = f"(SELECT * FROM {_ROWS} WHERE organization_id = %s AND occurred_at >= %s AND occurred_at < %s) AS of_hour"  # noqa: S608
    begin, end = map(connection.ops.adapt_datetimefield_value, (hour, hour + _HOUR))
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # A writer could otherwise add a row that is in neither its sum nor this one. On SQLite
            # the transaction is the only writer.
            cursor.execute(f"LOCK TABLE {_ROLLUPS} IN SHARE ROW EXCLUSIVE MODE")
        UsageRollup.objects.filter(
            organization_id=organization_id, hour__gte=hour, hour__lt=hour + _HOUR
        ).delete()
        cursor.execute(
            f"INSERT INTO {_ROLLUPS} ({columns}) {rollup_select(rows, hour='%s')}",
            [
                begin,
                models.UUIDField().get_db_prep_value(organization_id, connection),
                begin,
                end,
            ],
        )
        made: int = cursor.rowcount
    return made
