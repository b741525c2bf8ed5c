"""The moment up to which the ledger is complete: all rows stamped earlier are visible.

Rows are stamped a little before they are committed. On PostgreSQL each transaction of a writer, on any
host, holds a lock that says when it began, and a row is never stamped before that; so the moment is
known, and a stalled commit only makes it earlier. On SQLite
stamps are taken under the write lock and commits follow in their order; a margin covers a commit
that waits for the disk.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from django.db import connection

from core import clock
from usage.ledger.postgresql_rows import EARLIEST_BEGAN, MARK

SQLITE_MARGIN: Final = timedelta(seconds=2)

# Measured from the statement's start: a transaction that has no lock yet begins after it. Writers of
# an older release hold no lock, so they are looked for by their statement while hosts are upgraded.
_COMPLETE = (
    "SELECT date_trunc('milliseconds', least(statement_timestamp(), "  # noqa: S608
    f"({EARLIEST_BEGAN}), (SELECT min(xact_start) FROM pg_stat_activity "
    f"WHERE datname = current_database() AND state <> 'idle' AND query LIKE '{MARK}%%' "
    "AND pid <> pg_backend_pid()))), statement_timestamp()"
)


@dataclass(frozen=True, slots=True)
class Completeness:
    """Statements that begin from now on see every row stamped before ``until``.

    ``now``: the time of the clock that stamps rows.
    """

    until: datetime
    now: datetime

    def covers(self, moment: datetime) -> bool:
        """Whether no row stamped at ``moment`` or before can still appear."""
        return moment < self.until

    def precedes(self, moment: datetime) -> bool:
        """Whether the clock that stamps rows has not come to ``moment`` yet.

        A row with such a stamp that was read before comes from a clock that has been set back.
        """
        return moment > self.now


def completeness() -> Completeness:
    """Return up to when the ledger is complete now. Raises ``django.db.Error``."""
    if connection.vendor != "postgresql":
        now = clock.now()
        return Completeness(now - SQLITE_MARGIN, now)
    with connection.cursor() as cursor:
        cursor.execute(_COMPLETE, [])
        until, now = cursor.fetchone()
    return Completeness(until.astimezone(UTC), now.astimezone(UTC))
