"""Fixtures of the ledger."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection, connections, transaction
from pytest_django.fixtures import Settings

from tests.support.builders.receipts import receipt
from usage.ledger import rows
from usage.receipts import AnyReceipt


@pytest.fixture(autouse=True)
def journal_directory(settings: Settings, tmp_path: Path) -> Path:
    settings.SVC_DATA_DIR = tmp_path
    return tmp_path / "journal"


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The request ids of each batch that the database accepted."""
    batches: list[list[str]] = []
    insert = rows.insert

    def watched(receipts: Sequence[AnyReceipt], **options: Any) -> int:
        new = insert(receipts, **options)
        batches.append([each.request_id for each in receipts])
        return new

    monkeypatch.setattr(rows, "insert", watched)
    return batches


@pytest.fixture
def full_database(monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """A database that can be read but accepts no rows while ``full``."""
    state = {"full": False}
    insert = rows.insert

    def perhaps(receipts: Sequence[AnyReceipt], **options: Any) -> int:
        if state["full"]:
            raise OperationalError("database or disk is full")
        return insert(receipts, **options)

    monkeypatch.setattr(rows, "insert", perhaps)
    return state


class SlowCommit:
    """A transaction of the ledger in a thread of its own, which ends when it is told to."""

    def __init__(self, thread: ThreadPoolExecutor) -> None:
        self._thread = thread
        self._stamped, self._may_commit = threading.Event(), threading.Event()
        self._over: Future[None] | None = None

    def begin(self, before: str = "SELECT 1", after: str = "SELECT 1") -> None:
        """Write a row between two other statements, and wait before the commit."""
        self._over = self._thread.submit(self._write, before, after)
        assert self._stamped.wait(60)

    def end(self) -> None:
        self._may_commit.set()
        if self._over is not None:
            self._over.result(60)

    def _write(self, before: str, after: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(before)
        with transaction.atomic(), connection.cursor() as cursor:
            rows.insert([receipt()])
            cursor.execute(after)
            self._stamped.set()
            self._may_commit.wait(60)


@pytest.fixture
def slow() -> Iterator[SlowCommit]:
    with ThreadPoolExecutor(1) as thread:
        commit = SlowCommit(thread)
        yield commit
        commit.end()
        thread.submit(connections.close_all).result()
