"""The ledger without its journal: answers are withheld, and none of them is billed."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.db.models import Sum

from core.errors import InternalError, ServerOverloaded
from tests.support.builders.receipts import admitted, receipt, speech_receipt
from tests.support.ledger.ledgers import (
    all_records,
    break_journal,
    failing_syncs,
    outcomes,
    read,
    repair_journal,
    running_ledger,
    until_stored,
)
from tests.support.servers.database_outage import rows_locked
from tests.support.until import until_async
from usage.ledger import rows
from usage.ledger.journal.adoption import adopt
from usage.models import SpeechDay, SpeechRow, UsageDay, UsageRollup, UsageRow
from usage.models.statements import ROLLUP_SUMS
from usage.queries import days
from usage.queries.outcomes import whole as ended_of
from usage.queries.periods import Period
from usage.receipts import AnyReceipt, withheld
from usage.verification.rollups import verify

pytestmark = pytest.mark.django_db(transaction=True)


async def test_without_database_and_journal_one_answer_is_withheld_and_admissions_stop(
    journal_directory: Path, full_database: dict[str, bool]
) -> None:
    break_journal(journal_directory)
    async with running_ledger() as ledger:
        unnoted = receipt()
        await ledger.admit_durably(unnoted)  # the database is there yet
        assert ledger.accepts_rows()
        assert not ledger.state.journal_works
        full_database["full"] = True
        with pytest.raises(InternalError):
            await ledger.record(unnoted)

        until_retried = time.monotonic() + 2.5
        while time.monotonic() < until_retried:
            with pytest.raises(ServerOverloaded):
                await ledger.admit_durably(admitted())
            assert not ledger.accepts_rows()
            await asyncio.sleep(0.05)

        assert ledger.state.rows_in_memory == 1
        full_database["full"] = False
        found = await until_stored(1)
        assert found == {unnoted.request_id: "internal_error"}
        await until_async(lambda: ledger.state.database_answers and not ledger.state.rows_in_memory)
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
        assert not ledger.state.journal_works
        repair_journal(journal_directory)
        await ledger.admit_durably(admitted())
        assert ledger.state.journal_works


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
        await until_async(lambda: not ledger.state.rows_owed)
        speech = await read(lambda: dict(SpeechRow.objects.values_list("request_id", "outcome")))

    for request_id, outcome in {**found, **speech}.items():
        expected = "internal_error" if request_id in withheld else "success"
        assert outcome == expected


@pytest.mark.parametrize(
    ("facts", "begun", "status", "audio_ms"),
    [
        ({"response_format": "wav"}, True, 200, 2500),
        ({"response_format": "wav"}, False, 500, 0),
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
        await until_async(lambda: not ledger.state.rows_owed)

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
            await until_async(lambda: not ledger.state.database_answers)
            second = asyncio.create_task(ledger.record(receipt()))
            await asyncio.sleep(0.05)
        await asyncio.gather(first, second)
        assert set((await until_stored(2)).values()) == {"success"}


@pytest.fixture
def reply_lost(monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """A database that commits the next rows, loses its reply and does not answer while ``away``."""
    state = {"away": False, "next": False}
    insert = rows.insert

    def perhaps(receipts: Sequence[AnyReceipt], **options: Any) -> int:
        if state["away"]:
            raise OperationalError("away")
        new = insert(receipts, **options)
        if state["next"]:
            state["away"] = True
            raise OperationalError("the reply of the commit was lost")
        return new

    monkeypatch.setattr(rows, "insert", perhaps)
    return state


@pytest.mark.parametrize("dies", [False, True], ids=["lives on", "dies"])
async def test_a_row_that_was_committed_before_its_answer_was_withheld_is_corrected(
    journal_directory: Path, reply_lost: dict[str, bool], dies: bool
) -> None:
    tokens = {"delivered_output_tokens": 5, "generated_output_tokens": 5}
    asked: list[AnyReceipt] = [
        receipt(**tokens),
        receipt(streamed=True, **tokens),
        speech_receipt(transport="websocket", http_status=101),
        speech_receipt(response_format="wav"),
    ]
    break_journal(journal_directory)
    async with running_ledger() as ledger:
        for each in asked:
            await ledger.admit_durably(each)
        reply_lost["next"] = True
        answers = await asyncio.gather(*map(ledger.record, asked), return_exceptions=True)
        assert [type(answer) for answer in answers] == [InternalError] * 4
        reply_lost["next"] = False
        if dies:
            repair_journal(journal_directory)
            await until_async(
                lambda: all(
                    each.request_id.encode() in all_records(journal_directory) for each in asked
                )
            )
        else:
            reply_lost["away"] = False
            await until_async(lambda: not ledger.state.rows_owed)
    reply_lost["away"] = False
    await read(lambda: adopt(journal_directory))

    said = await read(
        lambda: list(
            UsageRow.objects.order_by("http_status").values_list(
                "outcome", "http_status", "error_code", "delivered_output_tokens"
            )
        )
    )
    assert said == [
        ("internal_error", 200, "internal_error", 5),
        ("internal_error", 500, "internal_error", 0),
    ]
    spoken = await read(
        lambda: list(
            SpeechRow.objects.order_by("http_status").values_list(
                "outcome", "http_status", "error_type", "close_code", "audio_ms"
            )
        )
    )
    assert spoken == [
        ("internal_error", 101, "proxy_error", 1011, 2500),
        ("internal_error", 500, "proxy_error", None, 0),
    ]
    (delivered,) = await read(
        lambda: UsageRollup.objects.aggregate(Sum("delivered_output_tokens")).values()
    )
    assert delivered == 5
    assert (await read(SpeechDay.objects.get)).audio_ms == 2500
    await read(lambda: verify(pytest.fail))


def test_what_was_not_delivered_leaves_the_sums_of_its_hour_and_its_day() -> None:
    """Also where writers that ran at once put the sums of an hour into several rows."""
    hour = datetime(2025, 11, 5, 10, tzinfo=UTC)
    answers = [
        receipt(delivered_output_tokens=number, generated_output_tokens=number)
        for number in (5, 7, 9)
    ]
    for each in answers:
        rows.insert([each], hour)
    if connection.vendor == "postgresql":
        whole = UsageRollup.objects.get()
        UsageRollup.objects.update(delivered_output_tokens=6)
        whole.shard, whole.delivered_output_tokens = 1, 15
        for name in set(ROLLUP_SUMS) - {"delivered_output_tokens"}:
            setattr(whole, name, 0)
        whole.save(force_insert=True)
    days.sum_closed_days()

    for corrected in map(withheld, answers[1:]):
        for _ in range(2):
            rows.insert([corrected], ended={corrected.request_id})

    verify(pytest.fail)
    days.sum_closed_days()
    verify(pytest.fail)
    assert UsageDay.objects.get().delivered_output_tokens == 5
    ended = ended_of(answers[0].organization_id, Period(hour, hour + timedelta(hours=1)))
    assert (ended.requests, ended.failed, ended.unknown) == (3, 2, 0)
    assert (
        sum(ended.sums) == 3 + 3 + 2
    )  # requests, outcomes, and both times of the success that is left
