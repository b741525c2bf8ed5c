"""The shards of a roll-up on PostgreSQL, so that writers do not wait for each other.

Two transactions that add to one row wait for each other's commit. So each takes the first shard
that no other transaction writes to, by an advisory lock that its commit releases: one writer alone
stays in shard 0, four at once use four. A sum is the total of its shards; the shards of past hours
are merged.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from django.db import connection, transaction

from core.clock import hour_of
from usage.models.statements import CHAT, column_list

SHARDS: Final = 32
"""With more concurrent writers than this some wait for each other; nothing else changes."""

_WRITING, _MERGING = 1_937_137_004, 1_937_137_005
"""Classes of advisory locks, chosen at random."""

# The locks are tried in order until one succeeds.
FREE_SHARD: Final = (
    f"coalesce((SELECT shard FROM generate_series(0, {SHARDS - 1}) AS shard "  # noqa: S608
    f"WHERE pg_try_advisory_xact_lock({_WRITING}, shard) LIMIT 1), mod(pg_backend_pid(), {SHARDS}))"
)
"""SQL of a shard that no other transaction adds to until this one ends."""


def merge(moment: datetime) -> int:
    """Merge the shards of all hours before that of ``moment``; return how many rows were merged.

    A reader sees the sums before or after, which are the same. Does nothing on SQLite, nor while
    another process merges. Raises ``django.db.Error``.
    """
    if connection.vendor != "postgresql":
        return 0
    key, totals = column_list(CHAT.key), column_list(tuple(CHAT.totals))
    sums = ", ".join(f'sum("{name}")' for name in CHAT.totals)
    add = ", ".join(
        f'"{name}" = "{CHAT.sum_table}"."{name}" + excluded."{name}"' for name in CHAT.totals
    )
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s, 0)", [_MERGING])
        if not cursor.fetchone()[0]:
            return 0
        cursor.execute("SET LOCAL lock_timeout = '1s'")
        cursor.execute(
            f'WITH gone AS (DELETE FROM "{CHAT.sum_table}" WHERE hour < %s AND shard > 0 '  # noqa: S608
            "RETURNING *), "
            f'merged AS (INSERT INTO "{CHAT.sum_table}" ({key}, {totals}, "shard") '
            f"SELECT {key}, {sums}, 0 FROM gone GROUP BY {key} ORDER BY {key} "
            f'ON CONFLICT ({key}, "shard") DO UPDATE SET {add}) '
            "SELECT count(*) FROM gone",
            [hour_of(moment)],
        )
        gone: int = cursor.fetchone()[0]
    return gone


def postpone_merging() -> None:
    """Let no process merge shards until the transaction ends. Does nothing on SQLite. Raises
    ``django.db.Error``.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, 0)", [_MERGING])
