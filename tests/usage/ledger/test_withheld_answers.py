"""The ledger without its journal: answers are withheld, and none of them is billed."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from svc_project.lib.errors import InternalError, ServerOverloaded
from tests.support.builders.receipts import admitted, receipt, speech_receipt
from tests.support.ledger.ledgers import (
    all_records,
    break_journal,
    failing_syncs,
    outcomes,
    read,
    repair_journal,
    running_ledger,
    until,
    until_stored,
)
from tests.support.servers.database_outage import rows_locked
from usage.ledger.journal.adoption import adopt
from usage.models import SpeechRow
from usage.receipts import AnyReceipt

pytestmark = pytest.mark.django_db(transaction=True)


async def test_without_database_and_journal_one_answer_is_withheld_and_admissions_stop(
    journal_directory: Path, full_database: dict[str, bool]
) -> None:
    break_journal(journal_directory)
    async with running_ledger() as ledger:
        unnoted = receipt()
        await ledger.admit_durably(unnoted)  # the database is there yet
        assert ledger.accepts_rows()
        assert not ledger.figures.journal_works
        full_database["full"] = True
        with pytest.raises(InternalError):
            await ledger.record(unnoted)

        until_retried = time.monotonic() + 2.5
        while time.monotonic() < until_retried:
            with pytest.raises(ServerOverloaded):
                await ledger.admit_durably(admitted())
            assert not ledger.accepts_rows()
            await asyncio.sleep(0.05)

        assert ledger.figures.rows_in_memory == 1
        full_database["full"] = False
        found = await until_stored(1)
        assert found == {unnoted.request_id: "internal_error"}
        await until(lambda: ledger.figures.database_answers and not ledger.figures.rows_in_memory)
        await ledger.admit_durably(admitted())


async def test_without_the_journal_rows_go_to_the_database_alone(journal_directory: Path) -> None:
    break_journal(journal_directory)
    async with running_ledger() as ledger:
        for _ in range(3):
            each = receipt()
            await ledger.admit_durably(each)
            await ledger.record(each)
        assert len(await read(outcomes)) == 3
        assert ledger.accepts_rows()
        assert not ledger.figures.journal_works
        repair_journal(journal_directory)
        await ledger.admit_durably(admitted())
        assert ledger.figures.journal_works


async def test_rows_in_memory_go_to_the_journal_when_it_recovers(
    journal_directory: Path, full_database: dict[str, bool]
) -> None:
    break_journal(journal_directory)
    async with running_ledger() as ledger:
        full_database["full"] = True
        lost = receipt()
        with pytest.raises(InternalError):
            await ledger.record(lost)
        repair_journal(journal_directory)
        await until(lambda: lost.request_id.encode() in all_records(journal_directory))
    full_database["full"] = False
    assert await read(lambda: adopt(journal_directory)) == 1
    assert await read(outcomes) == {lost.request_id: "internal_error"}


async def test_a_client_that_gets_500_is_not_billed_a_success(
    monkeypatch: pytest.MonkeyPatch, journal_directory: Path
) -> None:
    async with running_ledger() as ledger:
        await ledger.record(receipt())
        left = failing_syncs(monkeypatch, float("inf"))
        with rows_locked():
            asked: list[AnyReceipt] = [receipt(), receipt(streamed=True), speech_receipt()]
            for each in asked:
                await ledger.admit_durably(each)
            answers = await asyncio.gather(*map(ledger.record, asked), return_exceptions=True)
        left["failures"] = 0
        withheld = {
            each.request_id
            for each, answer in zip(asked, answers, strict=True)
            if isinstance(answer, InternalError)
        }
        found = await until_stored(3)
        await until(lambda: not ledger.figures.rows_owed)
        speech = await read(lambda: dict(SpeechRow.objects.values_list("request_id", "outcome")))

    for request_id, outcome in {**found, **speech}.items():
        expected = "internal_error" if request_id in withheld else "success"
        assert outcome == expected


@pytest.mark.parametrize(
    ("facts", "begun", "status", "audio_ms"),
    [
        ({"response_format": "wav"}, True, 200, 2500),
        ({"response_format": "wav"}, False, 500, 0),
        ({"response_format": "pcm"}, True, 200, 2500),
        ({"response_format": "pcm"}, False, 500, 0),
        ({"transport": "websocket", "http_status": 101}, True, 101, 2500),
    ],
)
async def test_the_row_of_withheld_speech_tells_what_the_client_saw(
    journal_directory: Path,
    full_database: dict[str, bool],
    facts: dict[str, object],
    begun: bool,
    status: int,
    audio_ms: int,
) -> None:
    break_journal(journal_directory)
    async with running_ledger() as ledger:
        full_database["full"] = True
        with pytest.raises(InternalError):
            await ledger.record(speech_receipt(**facts), begun=begun)
        full_database["full"] = False
        await until(lambda: not ledger.figures.rows_owed)

    row = await read(SpeechRow.objects.get)
    assert (row.outcome, row.http_status, row.error_type) == (
        "internal_error",
        status,
        "proxy_error",
    )
    assert row.audio_ms == audio_ms


async def test_one_failed_sync_costs_a_segment_and_no_answer(
    monkeypatch: pytest.MonkeyPatch, journal_directory: Path
) -> None:
    async with running_ledger() as ledger:
        await ledger.record(receipt())
        with rows_locked():
            failing_syncs(monkeypatch, 1)
            during = [receipt() for _ in range(3)]
            await asyncio.gather(*map(ledger.record, during))
        assert set((await until_stored(4)).values()) == {"success"}


async def test_a_row_that_the_database_has_while_it_waits_to_be_synced_is_released(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sync = os.fdatasync

    def slow(file: int) -> None:
        time.sleep(0.4)
        sync(file)

    monkeypatch.setattr(os, "fdatasync", slow)
    async with running_ledger() as ledger:
        with rows_locked():
            first = asyncio.create_task(ledger.record(receipt()))
            await until(lambda: not ledger.figures.database_answers)
            second = asyncio.create_task(ledger.record(receipt()))
            await asyncio.sleep(0.05)
        await asyncio.gather(first, second)
        assert set((await until_stored(2)).values()) == {"success"}
