"""The ledger's partitions on PostgreSQL: one a month, by the time inside the request ids.

A request id is a UUIDv7 in hex, so its order is the order of admission, and a month is a range of
ids. That keeps ``request_id`` in the primary key of every partition, lets old months be dropped at
once, and needs no column that callers or the export would see. A row whose id is foreign, or older
than the first partition, goes to the default partition and is found like any other.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from django.db import OperationalError, connection, transaction
from psycopg import errors

from core.clock import month_of, next_month

log = logging.getLogger(__name__)

TABLE = "usage_usagerow"
DEFAULT_PARTITION = f"{TABLE}_default"
MONTHS_AHEAD = 3
MOST_MOVED: Final = 10_000
"""How many rows are moved when a partition is made; readers and writers of them wait for that."""

LOCK_SECONDS: Final = 0.5
"""How long attaching a partition may wait for readers; new readers of the ledger queue behind it."""


def ensure(moment: datetime) -> list[str]:
    """Create the partitions of ``moment``'s month and the next ones; return the names created.

    Does nothing on SQLite. Rows of a month that came before its partition, from a host whose clock is
    months ahead, move into it from the default partition; a month with more than ``MOST_MOVED`` of
    them stays there. Attaching a partition does not block writers; but PostgreSQL checks the default
    partition for it, which blocks its readers. While a reader uses the ledger for longer than
    ``LOCK_SECONDS`` the month is left to the next upkeep: three months are prepared ahead.
    """
    if connection.vendor != "postgresql":
        return []
    made = []
    for first in _months(moment):
        try:
            if _make(first):
                made.append(_name(first))
        except OperationalError as error:
            if not isinstance(error.__cause__, errors.LockNotAvailable):
                raise
            log.warning(
                "the ledger's partition of %s is postponed: others use it", f"{first:%Y-%m}"
            )
    return made


def lower_bound(first: datetime) -> str:
    """The smallest request id that can be generated at ``first`` or later."""
    return f"req_{int(first.timestamp() * 1000):012x}"


def _months(moment: datetime) -> Iterator[datetime]:
    first = month_of(moment)
    for _ in range(MONTHS_AHEAD + 1):
        yield first
        first = next_month(first)


def _name(first: datetime) -> str:
    return f"{TABLE}_{first:%Y_%m}"


def _make(first: datetime) -> bool:
    name = _name(first)
    bounds = (lower_bound(first), lower_bound(next_month(first)))
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [name])
        if cursor.fetchone()[0]:
            return False
        cursor.execute(f"SET LOCAL lock_timeout = {LOCK_SECONDS * 1000:.0f}")
        # Workers that start together must not create the same partition twice.
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [TABLE])
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [name])
        if cursor.fetchone()[0]:
            return False
        cursor.execute(
            f'SELECT count(*) FROM (SELECT FROM "{DEFAULT_PARTITION}" '  # noqa: S608  # names are ours
            f"WHERE request_id >= %s AND request_id < %s LIMIT {MOST_MOVED + 1}) AS early",
            bounds,
        )
        early = cursor.fetchone()[0]
        if early > MOST_MOVED:
            log.warning(
                "the ledger's month %s stays in the default partition, which has more than %d rows of it",
                f"{first:%Y-%m}",
                MOST_MOVED,
            )
            return False
        cursor.execute(f'CREATE TABLE "{name}" (LIKE "{TABLE}" INCLUDING ALL)')
        if early:
            _move(cursor, name, bounds)
        cursor.execute(
            f'ALTER TABLE "{TABLE}" ATTACH PARTITION "{name}" FOR VALUES FROM (%s) TO (%s)', bounds
        )
    return True


def _move(cursor: Any, name: str, bounds: tuple[str, str]) -> None:
    """Move the rows between ``bounds`` from the default partition into the new table ``name``.

    The locks are those of the attachment, taken in its order, so that no such row comes meanwhile.
    """
    cursor.execute(f'LOCK TABLE ONLY "{TABLE}" IN SHARE UPDATE EXCLUSIVE MODE')
    cursor.execute(f'LOCK TABLE "{DEFAULT_PARTITION}" IN ACCESS EXCLUSIVE MODE')
    cursor.execute(
        f'WITH moved AS (DELETE FROM "{TABLE}" WHERE request_id >= %s AND request_id < %s '  # noqa: S608
        f'RETURNING *) INSERT INTO "{name}" SELECT * FROM moved',
        bounds,
    )
    log.warning(
        "the ledger's partition %s takes over %d row(s) that came before it",
        name,
        cursor.rowcount,
    )
