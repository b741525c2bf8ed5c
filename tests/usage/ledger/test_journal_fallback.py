"""The ledger between database and journal: the fallback, and the recovery."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from tests.support.builders.receipts import admitted, receipt
from tests.support.ledger.ledgers import (
    BAD,
    files,
    outcomes,
    read,
    read_segment,
    refusing,
    run_sql,
    running_ledger,
    until_stored,
)
from tests.support.servers.database_outage import rows_locked
from tests.support.until import until_async
from usage.ledger import journal_fallback, rows
from usage.ledger.journal.adoption import adopt
from usage.ledger.ledger import Ledger
from usage.receipts import AnyReceipt

pytestmark = pytest.mark.django_db(transaction=True)


async def test_after_a_stall_each_row_is_sent_once_and_the_ledger_stays_on_the_database(
    sent: list[list[str]], journal_directory: Path
) -> None:
    async with running_ledger() as ledger:
        stays_open = admitted()
        await ledger.admit_durably(stays_open)
        with rows_locked():
            during = [receipt() for _ in range(30)]
            for each in during:
                await ledger.admit_durably(each)
            await asyncio.gather(*map(ledger.record, during))
        await until_async(lambda: not ledger.state.rows_owed and ledger.state.database_answers)
        sent.clear()

        began = time.monotonic()
        after = []
        while time.monotonic() - began < 2.5:
            after.append(receipt())
            await ledger.admit_durably(after[-1])
            await ledger.record(after[-1])

        again = {each.request_id for each in during} & {each for batch in sent for each in batch}
        assert not again
        # A commit that a busy disk delayed is counted when it ends; its row was released before.
        await until_async(lambda: ledger.state.rows_written == len(during) + len(after))
        assert len(await read(outcomes)) == len(during) + len(after)


async def test_rows_owed_after_an_outage_are_written_in_slices_between_running_requests(
    sent: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_fallback, "SLICE", 10)
    async with running_ledger() as ledger:
        with rows_locked():
            await asyncio.gather(*(ledger.record(receipt()) for _ in range(60)))
        live = []
        while ledger.state.rows_owed:
            live.append(receipt())
            await ledger.record(live[-1])
        assert len(await read(outcomes)) == 60 + len(live)
        assert ledger.state.rows_written == 60 + len(live)


@pytest.mark.postgresql
async def test_a_dropped_connection_is_replaced_before_the_journal_is_used(
    journal_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions: list[int] = []
    insert = rows.insert

    def watched(receipts: Sequence[AnyReceipt], **options: Any) -> int:
        new = insert(receipts, **options)
        sessions.append(connection.connection.info.backend_pid)
        return new

    monkeypatch.setattr(rows, "insert", watched)
    async with running_ledger() as ledger:
        await ledger.record(receipt())
        # The writer's session only: other threads of the tests keep connections to this database.
        dropped = sessions[-1]
        await read(lambda: run_sql(f"SELECT pg_terminate_backend({dropped})"))
        last = receipt()
        await ledger.admit_durably(last)
        await ledger.record(last)

        assert last.request_id in await read(outcomes)
        assert ledger.state.rows_owed == 0
        assert sessions[-1] != dropped


async def test_a_refused_row_is_kept_reported_and_written_once_it_is_accepted(
    journal_directory: Path,
) -> None:
    bad = receipt(model_identifier=BAD, generated_output_tokens=77)
    with refusing(f"model_identifier = '{BAD}'"):
        async with running_ledger() as ledger:
            good = [receipt() for _ in range(6)]
            await asyncio.gather(*map(ledger.record, [*good[:3], bad, *good[3:]]))

            assert set(await read(outcomes)) == {each.request_id for each in good}
            assert (ledger.state.rows_refused, ledger.state.refused_waiting) == (1, 1)
            assert ledger.state.rows_written == len(good)
            assert ledger.state.database_answers
        (kept,) = files(journal_directory, "*.refused")
        assert read_segment(kept.read_bytes()).settled[bad.request_id] == bad
        assert await read(lambda: adopt(journal_directory)) == 0
        assert kept.exists()

    async with running_ledger() as ledger:
        found = await until_stored(7)
        await until_async(lambda: not files(journal_directory, "*"))
        assert ledger.state.refused_waiting == 0
    assert found[bad.request_id] == "success"


async def test_a_database_that_refuses_every_row_counts_as_away(journal_directory: Path) -> None:
    async with running_ledger() as ledger:
        await ledger.record(receipt())
        with refusing("http_status > 0"):
            during = [receipt() for _ in range(5)]
            await asyncio.gather(*map(ledger.record, during))
            assert not ledger.state.database_answers
            assert ledger.state.rows_owed == 5
            assert not files(journal_directory, "*.refused")
        assert set(await until_stored(6)) > {each.request_id for each in during}
        await until_async(lambda: ledger.state.database_answers)


async def test_a_value_that_the_driver_refuses_does_not_stop_other_rows(
    monkeypatch: pytest.MonkeyPatch, journal_directory: Path
) -> None:
    insert = rows.insert
    bad = receipt()

    def cannot_encode(receipts: Sequence[AnyReceipt], **options: Any) -> int:
        if bad in receipts:
            raise UnicodeEncodeError("utf-8", "x", 0, 1, "surrogates not allowed")
        return insert(receipts, **options)

    monkeypatch.setattr(rows, "insert", cannot_encode)
    async with running_ledger() as ledger:
        with rows_locked():
            await asyncio.gather(*map(ledger.record, [receipt(), bad, receipt(), receipt()]))
        await until_stored(3)
        await until_async(lambda: not ledger.state.rows_owed)
        assert ledger.state.rows_refused == 1
        assert ledger.state.database_answers


@pytest.mark.parametrize("away", [False, True], ids=["database", "journal"])
async def test_a_row_recorded_after_the_stop_is_written_or_goes_to_the_journal_during_an_outage(
    journal_directory: Path, full_database: dict[str, bool], away: bool
) -> None:
    ledger = Ledger()
    await ledger.start()
    late, later = receipt(), receipt()
    await ledger.close()
    full_database["full"] = away

    await asyncio.gather(ledger.record(late), ledger.record(later))

    full_database["full"] = False
    assert await read(lambda: adopt(journal_directory)) == (2 if away else 0)
    assert set(await read(outcomes)) == {late.request_id, later.request_id}
