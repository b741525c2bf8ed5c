"""The ledger: one durable row for each receipt, whatever happens to the database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError, connection
from pytest_django.fixtures import Settings

from core import clock
from core.errors import InternalError, ServerOverloaded
from tests.support.builders.receipts import admitted, receipt
from tests.support.servers.database_outage import rows_locked
from tests.support.until import until_async
from usage.ledger import rows, sqlite_rows
from usage.ledger.ledger import Ledger
from usage.models import UsageRow
from usage.receipts import Receipt

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def journal_directory(settings: Settings, tmp_path: Path) -> Path:
    settings.SVC_DATA_DIR = tmp_path
    return tmp_path / "journal"


@asynccontextmanager
async def running_ledger() -> AsyncIterator[Ledger]:
    ledger = Ledger()
    await ledger.start()
    try:
        yield ledger
    finally:
        await ledger.close()


@pytest.fixture
def patient_ledger(settings: Settings) -> None:
    """Rows wait for a busy host's database, and do not go to the journal after 0.25 s."""
    settings.SVC_LEDGER_ANSWER_SECONDS = 60


def journal_content(directory: Path) -> bytes:
    """The content of all files of the journal."""
    return b"".join(path.read_bytes() for path in directory.iterdir())


async def stored() -> list[UsageRow]:
    """All rows, read on a connection that is then closed."""

    def read() -> list[UsageRow]:
        try:
            return list(UsageRow.objects.all())
        finally:
            connection.close()

    return await sync_to_async(read)()


async def until_stored(count: int) -> list[UsageRow]:
    async def look() -> list[UsageRow] | None:
        return found if len(found := await stored()) >= count else None

    found: list[UsageRow] = await until_async(look)
    return found


@pytest.mark.usefixtures("patient_ledger")
async def test_a_row_is_stored_when_record_returns() -> None:
    written = receipt()
    async with running_ledger() as ledger:
        await ledger.admit_durably(written)
        await ledger.record(written)

        (row,) = await stored()

    assert row.request_id == written.request_id
    assert row.backend_reported_output_tokens == written.backend_reported_output_tokens
    assert row.output_price_per_mtok == written.output_price_per_mtok
    assert row.occurred_at.microsecond % 1000 == 0


@pytest.mark.usefixtures("patient_ledger")
async def test_two_hundred_at_once_are_two_hundred_rows_in_few_commits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    batches: list[int] = []
    insert = rows.insert

    def counted(receipts: Sequence[Receipt], **options: Any) -> int:
        batches.append(len(receipts))
        return insert(receipts, **options)

    monkeypatch.setattr(rows, "insert", counted)
    async with running_ledger() as ledger:
        written = [receipt() for _ in range(200)]
        for each in written:
            await ledger.admit_durably(each)
        await asyncio.gather(*(ledger.record(each) for each in written))

        found = await stored()

    assert {row.request_id for row in found} == {each.request_id for each in written}
    assert sum(batches) == 200
    assert len(batches) < 20


@pytest.mark.usefixtures("patient_ledger")
async def test_a_request_that_is_recorded_twice_keeps_its_first_row() -> None:
    first = receipt()
    again = receipt(request_id=first.request_id, outcome="internal_error")
    async with running_ledger() as ledger:
        await ledger.record(first)
        await asyncio.gather(ledger.record(again), ledger.record(again))

        (row,) = await stored()

    assert row.outcome == "success"
    assert row.backend_reported_output_tokens == first.backend_reported_output_tokens


@pytest.mark.usefixtures("patient_ledger")
async def test_one_receipt_that_the_database_refuses_does_not_cost_the_others() -> None:
    impossible = receipt(generated_output_tokens=1, delivered_output_tokens=2)
    async with running_ledger() as ledger:
        await asyncio.gather(
            *(ledger.record(each) for each in (receipt(), impossible, receipt(), receipt()))
        )

        assert len(await stored()) == 3


async def test_rows_go_to_the_journal_while_the_database_fails(
    journal_directory: Path,
) -> None:
    async with running_ledger() as ledger:
        with rows_locked():
            written = [receipt() for _ in range(20)]
            for each in written:
                await ledger.admit_durably(each)
            async with asyncio.timeout(60):
                await asyncio.gather(*(ledger.record(each) for each in written[:10]))
                await asyncio.gather(*(ledger.record(each) for each in written[10:]))
            assert await stored() == []
            assert b'"settled"' in journal_content(journal_directory)

        await until_stored(20)
        await ledger.record(receipt())
        assert len(await until_stored(21)) == 21

    assert not journal_content(journal_directory)


async def test_a_ledger_that_stops_during_an_outage_leaves_its_rows_to_the_next(
    journal_directory: Path,
) -> None:
    ledger = Ledger()
    await ledger.start()
    with rows_locked():
        await ledger.record(receipt())
        await ledger.record(receipt())
        stopping = asyncio.create_task(ledger.close())
        await asyncio.sleep(0)
        assert b'"settled"' in journal_content(journal_directory)
    await stopping

    async with running_ledger():
        await until_stored(2)


async def test_admitted_requests_that_never_settled_are_closed_by_the_next_process() -> None:
    lost = admitted()
    ledger = Ledger()
    await ledger.start()
    await ledger.admit_durably(lost)
    await ledger.close()

    async with running_ledger():
        (row,) = await until_stored(1)

    assert (row.request_id, row.outcome, row.http_status) == (lost.request_id, "interrupted", 500)


async def test_without_database_and_journal_no_request_is_admitted(settings: Settings) -> None:
    settings.SVC_JOURNAL_MAX_BYTES = 0
    async with running_ledger() as ledger:
        await ledger.admit_durably(admitted())
        with rows_locked():
            with pytest.raises(InternalError):
                await ledger.record(receipt())
            with pytest.raises(ServerOverloaded):
                await ledger.admit_durably(admitted())


@pytest.mark.usefixtures("patient_ledger")
async def test_a_row_that_was_written_later_never_has_an_earlier_time() -> None:
    written = [receipt() for _ in range(20)]
    async with running_ledger() as ledger:
        for each in written:
            await ledger.record(each)

        times = {row.request_id: row.occurred_at for row in await stored()}

    in_order = [times[each.request_id] for each in written]
    assert in_order == sorted(in_order)


@pytest.mark.sqlite
def test_a_clock_that_is_set_back_makes_no_row_earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    right, back = clock.now, timedelta(hours=1)
    batches = [[receipt(), receipt()] for _ in range(4)]
    for number, batch in enumerate(batches):
        if number == 2:
            monkeypatch.setattr(sqlite_rows, "now", lambda: right() - back)
        rows.insert(batch)

    times = {row.request_id: row.occurred_at for row in UsageRow.objects.all()}
    first, second, third, fourth = (times[batch[0].request_id] for batch in batches)
    # Never two batches at one time: a cursor after one batch would skip the other.
    assert first <= second < third < fourth


@pytest.mark.sqlite
def test_a_batch_on_sqlite_stops_waiting_for_a_lock() -> None:
    rows.insert([receipt()])
    with rows_locked(), pytest.raises(OperationalError):
        rows.insert([receipt()])
    assert rows.insert([receipt()]) == 1
