"""The ledger: one durable row for each receipt, whatever happens to the database."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import OperationalError
from pytest_django.fixtures import Settings

from core import clock
from tests.support.builders.receipts import receipt
from tests.support.ledger.ledgers import read, running_ledger, until_stored
from tests.support.servers.database_outage import rows_locked
from usage.ledger import rows, sqlite_rows
from usage.ledger.ledger import Ledger
from usage.models import UsageRow

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def patient_ledger(settings: Settings) -> None:
    """Rows wait for a busy host's database, and do not go to the journal after 0.25 s."""
    settings.SVC_LEDGER_ANSWER_SECONDS = 60


def journal_content(directory: Path) -> bytes:
    """The content of all files of the journal."""
    return b"".join(path.read_bytes() for path in directory.iterdir())


async def stored() -> list[UsageRow]:
    return await read(lambda: list(UsageRow.objects.all()))


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
    sent: list[list[str]],
) -> None:
    async with running_ledger() as ledger:
        written = [receipt() for _ in range(200)]
        for each in written:
            await ledger.admit_durably(each)
        await asyncio.gather(*(ledger.record(each) for each in written))

        found = await stored()

    assert {row.request_id for row in found} == {each.request_id for each in written}
    assert sum(map(len, sent)) == 200
    assert len(sent) < 20


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
