"""A running ledger in a test: its rows, its journal, and ways in which they break."""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeVar

import pytest
from asgiref.sync import sync_to_async
from django.db import connection

from tests.support.until import until_async
from usage.ledger.journal.records import FileContent, read_in_steps
from usage.ledger.ledger import Ledger
from usage.models import UsageRow

T = TypeVar("T")


BAD = "acme/bad"


@asynccontextmanager
async def running_ledger() -> AsyncIterator[Ledger]:
    ledger = Ledger()
    await ledger.start()
    try:
        yield ledger
    finally:
        await ledger.close()


async def read(what: Callable[[], T]) -> T:
    """Query the database on a connection that is then closed."""

    def ask() -> T:
        try:
            return what()
        finally:
            connection.close()

    return await sync_to_async(ask)()


def outcomes() -> dict[str, str]:
    return dict(UsageRow.objects.values_list("request_id", "outcome"))


async def until_stored(count: int) -> dict[str, str]:
    """Wait for ``count`` chat rows; return their outcomes."""

    async def look() -> dict[str, str] | None:
        return found if len(found := await read(outcomes)) >= count else None

    found: dict[str, str] = await until_async(look)
    return found


@contextmanager
def refusing(condition: str) -> Iterator[None]:
    """Let the database refuse chat rows for which the SQL ``condition`` holds, as after a migration
    that ran ahead of this process."""
    table = UsageRow._meta.db_table
    if connection.vendor == "postgresql":
        begin = f"ALTER TABLE {table} ADD CONSTRAINT newer CHECK (NOT ({condition})) NOT VALID"
        end = f"ALTER TABLE {table} DROP CONSTRAINT newer"
    else:
        begin = (
            f"CREATE TRIGGER newer BEFORE INSERT ON {table} WHEN NEW.{condition} "
            "BEGIN SELECT RAISE(ABORT, 'refused'); END"
        )
        end = "DROP TRIGGER newer"
    on_a_thread(begin)
    try:
        yield
    finally:
        on_a_thread(end)


def on_a_thread(statement: str) -> None:
    """Run ``statement`` in another thread, because an event loop must not query a database."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(run_sql, statement).result()


def run_sql(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
    connection.close()


def read_segment(content: bytes) -> FileContent:
    """Read a whole file of the journal's records."""
    reading = read_in_steps(content)
    while True:
        try:
            next(reading)
        except StopIteration as end:
            found: FileContent = end.value
            return found


def files(directory: Path, pattern: str) -> list[Path]:
    return list(directory.glob(pattern))


def break_journal(directory: Path) -> None:
    """Replace the journal's directory by a file, so that no file can be created in it."""
    directory.write_bytes(b"not a directory")


def repair_journal(directory: Path) -> None:
    directory.unlink()


def all_records(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in directory.glob("*.log"))


def failing_syncs(monkeypatch: pytest.MonkeyPatch, times: float) -> dict[str, float]:
    left = {"failures": times}
    sync = os.fdatasync

    def perhaps(file: int) -> None:
        if left["failures"] > 0:
            left["failures"] -= 1
            raise OSError(errno.EIO, "Input/output error")
        sync(file)

    monkeypatch.setattr(os, "fdatasync", perhaps)
    return left
