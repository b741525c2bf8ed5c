"""The ledger's partitions on PostgreSQL: one a month, by the time inside the request ids.

A request id is a UUIDv7 in hex, so its order is the order of admission, and a month is a range of
ids. That keeps ``request_id`` in the primary key of every partition, lets old months be dropped at
once, and needs no column that callers or the export would see. A row whose id is foreign, or older
than the first partition, goes to the default partition and is found like any other.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from django.db import OperationalError, connection, transaction
from psycopg import errors

log = logging.getLogger(__name__)

TABLE = "usage_usagerow"
DEFAULT_PARTITION = f"{TABLE}_default"
MONTHS_AHEAD = 3
LOCK_SECONDS: Final = 0.5
"""How long attaching a partition may wait for readers; new readers of the ledger queue behind it."""


def ensure(moment: datetime) -> list[str]:
    """Create the partitions of ``moment``'s month and the next ones; return the names created.

    Does nothing on SQLite. A month that has rows in the default partition stays there. Attaching a
    partition does not block writers; but PostgreSQL checks the default partition for it, which
    blocks its readers. While a reader uses the ledger for longer than ``LOCK_SECONDS`` the month is
    left to the next upkeep: three months are prepared ahead.
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


def next_month(first: datetime) -> datetime:
    """The first moment of the month after the one that begins with ``first``."""
    return first.replace(year=first.year + first.month // 12, month=first.month % 12 + 1)


def _months(moment: datetime) -> Iterator[datetime]:
    first = moment.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
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
            f'SELECT EXISTS (SELECT FROM "{DEFAULT_PARTITION}" '  # noqa: S608  # names are ours
            "WHERE request_id >= %s AND request_id < %s)",
            bounds,
        )
        if cursor.fetchone()[0]:
            return False
        cursor.execute(f'CREATE TABLE "{name}" (LIKE "{TABLE}" INCLUDING ALL)')
        cursor.execute(
            f'ALTER TABLE "{TABLE}" ATTACH PARTITION "{name}" FOR VALUES FROM (%s) TO (%s)', bounds
        )
    return True
