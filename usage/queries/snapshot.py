"""Reads that see one snapshot of the database, and how PostgreSQL is to plan them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction


@contextmanager
def database_snapshot() -> Iterator[None]:
    """Let every statement inside see one snapshot of the database, without blocking a writer.

    Has no effect inside an open transaction or snapshot.
    """
    if connection.in_atomic_block or _is_in_snapshot():
        yield
    elif connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield
    else:
        # Django would begin IMMEDIATE (settings.DATABASES) and keep the ledger's writer waiting.
        with connection.cursor() as cursor:
            cursor.execute("BEGIN DEFERRED")
            try:
                yield
            finally:
                cursor.execute("ROLLBACK")


def _is_in_snapshot() -> bool:
    """Whether a snapshot of SQLite is open; one of PostgreSQL is an atomic block."""
    return (
        connection.vendor == "sqlite"
        and connection.connection is not None
        and connection.connection.in_transaction
    )


def plan_with(**settings: str) -> None:
    """Set PostgreSQL's planner for the rest of the transaction, such as ``jit="off"``.

    Compiling a statement of this kind takes longer than running it, and a plan that sorts a large
    period would use the database's disk.
    """
    if connection.vendor == "postgresql":
        calls = ", ".join(["set_config(%s, %s, true)"] * len(settings))
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {calls}", [part for each in settings.items() for part in each])
