"""Pruning on PostgreSQL beside an open reader of the ledger and a process that admits requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.core.management import CommandError
from django.db import OperationalError, connection, connections
from pytest_django.fixtures import Settings

from tests.support.builders import traffic
from tests.support.builders.receipts import admitted
from tests.support.ledger.commands import drop_tables, id_of, prune
from tests.support.ledger.ledgers import read, running_ledger
from tests.support.servers.database_outage import another_session
from usage.models import PrunedMonth, UsageRow, partitions
from usage.retention import prune as pruning
from usage.verification.rollups import verify

pytestmark = pytest.mark.django_db(transaction=True)
parquet = pytest.importorskip("pyarrow.parquet")

MARCH = datetime(2025, 3, 1, tzinfo=UTC)


def write_march() -> str:
    request_id = id_of(MARCH)
    traffic.write(MARCH, request_id=request_id)
    return request_id


@pytest.fixture
def partition() -> Iterator[str]:
    """The partition of March 2025 with one row."""
    made = partitions.ensure(MARCH)
    write_march()
    yield "usage_usagerow_2025_03"
    UsageRow.objects.all().delete()
    drop_tables(made)


@contextmanager
def open_reader() -> Iterator[int]:
    """A transaction that has read the ledger and is not over; the number of its server process."""
    with another_session() as other:
        other.execute("SELECT FROM usage_usagerow LIMIT 1")
        yield other.info.backend_pid


def on_a_thread(what: Callable[[], str]) -> Callable[[], str]:
    def call() -> str:
        try:
            return what()
        finally:
            connections.close_all()

    return call


@pytest.mark.postgresql
async def test_admissions_go_on_while_prune_waits_for_an_open_reader(
    partition: str, tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SVC_DATA_DIR = tmp_path
    settings.SVC_DURABLE_ADMISSIONS = True
    monkeypatch.setattr(pruning, "_ATTEMPTS", 3)
    monkeypatch.setattr(pruning, "PAUSE_SECONDS", 0.1, raising=False)
    settled = list[asyncio.Task[None]]()
    with ThreadPoolExecutor(1) as thread:
        async with running_ledger() as ledger:
            with open_reader() as process:
                pruned = thread.submit(on_a_thread(lambda: prune(tmp_path / "archive")))
                while not pruned.done():
                    request = admitted()
                    await ledger.admit_durably(request)
                    assert ledger.state.database_answers, "it waited for the database in vain"
                    settled.append(asyncio.create_task(ledger.record(request)))
                await asyncio.gather(*settled)

            with pytest.raises(CommandError) as told:
                pruned.result()
            assert f"server process {process}" in str(told.value)
            assert "Run prune again" in str(told.value)
            assert "\n" not in str(told.value)
            await read(lambda: verify(pytest.fail))

            said = await read(lambda: prune(tmp_path / "archive"))

    assert "2025-03: 1 row(s) removed" in said
    assert not await read(lambda: partition in connection.introspection.table_names())
    assert await read(UsageRow.objects.count) == len(settled) > 10
    await read(lambda: verify(pytest.fail))


@pytest.mark.postgresql
def test_a_month_that_waits_for_a_reader_accepts_no_rows(
    partition: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "_ATTEMPTS", 1)
    with open_reader(), pytest.raises(CommandError, match="Run prune again"):
        prune(tmp_path)

    with pytest.raises(Exception, match="belongs to a pruned month"):
        write_march()
    with pytest.raises(Exception, match="belongs to a pruned month"):
        UsageRow.objects.update(outcome="interrupted")

    assert "1 row(s) removed" in prune(tmp_path)
    (path,) = tmp_path.glob("*.parquet")
    assert parquet.read_table(path).column("outcome").to_pylist() == ["success"]
    assert PrunedMonth.objects.get().rows == 1


def test_a_database_that_fails_ends_prune_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_march()

    def fail(reached: str) -> None:
        raise OperationalError("server closed the connection\n\tunexpectedly")

    monkeypatch.setattr(pruning, "at", fail)

    with pytest.raises(CommandError) as told:
        prune(tmp_path)

    assert "server closed the connection" in str(told.value)
    assert "Run prune again" in str(told.value)
    assert "\n" not in str(told.value)
