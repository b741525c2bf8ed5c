"""The moment up to which the ledger is complete: all rows stamped earlier are visible.

Rows are stamped a little before they are committed. On PostgreSQL the database knows which
transactions of the ledger's writers run now, on any host, and a row is never stamped before its
transaction began; so the moment is known, and a stalled commit only makes it earlier. On SQLite
stamps are taken under the write lock and commits follow in their order; a margin covers a commit
that waits for the disk.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from django.db import connection

from svc_project.lib import clock
from usage.ledger.postgresql_rows import MARK

SQLITE_MARGIN: Final = timedelta(seconds=2)

# Measured from the statement's start: a transaction that is not listed yet begins after it.
# Stamps are truncated to milliseconds.
_COMPLETE = (
    "SELECT date_trunc('milliseconds', least(statement_timestamp(), min(xact_start))), "  # noqa: S608
    "statement_timestamp() FROM pg_stat_activity "
    f"WHERE datname = current_database() AND state <> 'idle' AND query LIKE '{MARK}%%' "
    "AND pid <> pg_backend_pid()"
)


@dataclass(frozen=True, slots=True)
class Completeness:
    """Statements that begin from now on see every row stamped before ``until``.

    ``now``: the time of the clock that stamps rows.
    """

    until: datetime
    now: datetime

    def covers(self, moment: datetime) -> bool:
        """Whether no row stamped at ``moment`` or before can still appear.

        A row from the future was stamped by a wrong clock; it is not waited for.
        """
        return moment < self.until or moment > self.now

    def has_closed(self, end: datetime) -> bool:
        """Whether a period that ends at ``end`` (exclusive) has all its rows."""
        return end <= self.until


def completeness() -> Completeness:
    """Return up to when the ledger is complete now. Raises ``django.db.Error``.

    On PostgreSQL the role must see the writers: they log in as the same role, or it may read all of
    ``pg_stat_activity`` (``pg_read_all_stats``).
    """
    if connection.vendor != "postgresql":
        now = clock.now()
        return Completeness(now - SQLITE_MARGIN, now)
    with connection.cursor() as cursor:
        cursor.execute(_COMPLETE, [])
        until, now = cursor.fetchone()
    return Completeness(until.astimezone(UTC), now.astimezone(UTC))
