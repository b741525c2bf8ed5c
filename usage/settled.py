"""Up to which moment the ledger is complete: rows stamped earlier are all there, and none comes.

Rows are stamped a little before they are committed. On PostgreSQL the database knows which
transactions of the ledger's writers run now, on whatever host, and a row is never stamped before
its transaction began; so what is complete is known, and a stalled commit only makes it older. On
SQLite stamps are taken under the write lock and commits follow in their order; a margin covers a
commit that the disk holds up.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from django.db import connection

from svc_project.lib import clock
from usage.rows import MARK

SQLITE_MARGIN: Final = timedelta(seconds=2)

# The clock of the statement's start: a transaction that is not listed yet begins after it. Stamps
# are cut to milliseconds.
_COMPLETE = (
    "SELECT date_trunc('milliseconds', least(statement_timestamp(), min(xact_start))), "  # noqa: S608
    "statement_timestamp() FROM pg_stat_activity "
    f"WHERE datname = current_database() AND state <> 'idle' AND query LIKE '{MARK}%%' "
    "AND pid <> pg_backend_pid()"
)


@dataclass(frozen=True, slots=True)
class Settled:
    """Statements that begin from now on see every row stamped before ``until``.

    ``now``: by the clock that stamps rows.
    """

    until: datetime
    now: datetime

    def covers(self, moment: datetime) -> bool:
        """Whether no row stamped at ``moment`` or before is still to come.

        A row of the future was stamped by a clock that was wrong; it is not worth waiting for.
        """
        return moment < self.until or moment > self.now

    def has_closed(self, end: datetime) -> bool:
        """Whether a period that ends with ``end`` (exclusive) has all its rows, for ever."""
        return end <= self.until


def settled() -> Settled:
    """What is complete now. Raises ``django.db.Error``.

    On PostgreSQL the writers must be seen: they log in as the same role, or this one may read all
    of ``pg_stat_activity`` (``pg_read_all_stats``).
    """
    if connection.vendor != "postgresql":
        now = clock.now()
        return Settled(now - SQLITE_MARGIN, now)
    with connection.cursor() as cursor:
        cursor.execute(_COMPLETE, [])
        until, now = cursor.fetchone()
    return Settled(until.astimezone(UTC), now.astimezone(UTC))
