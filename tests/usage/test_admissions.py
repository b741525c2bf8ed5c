"""Notes of admissions in the database: made before a request runs, gone with its row, closed once."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from pytest_django.fixtures import Settings

from svc_project.lib.errors import ServerOverloaded
from tests.database_outage import rows_locked
from tests.usage.making import admitted, progress, receipt, speech_admitted, speech_receipt
from usage import orphans, rows
from usage.admissions import Lease, Notes
from usage.adoption import adopt
from usage.ledger import Ledger
from usage.models import Admission, AdmissionOwner, SpeechDay, SpeechRow, UsageRollup, UsageRow
from usage.receipts import AnyReceipt, Receipt, SpeechReceipt
from usage.records import noted
from usage.verification import verify

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]
T = TypeVar("T")
MINUTE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def journal_directory(settings: Settings, tmp_path: Path) -> Path:
    settings.SVC_DATA_DIR = tmp_path
    settings.SVC_DURABLE_ADMISSIONS = True
    return tmp_path / "journal"


@asynccontextmanager
async def running_ledger() -> AsyncIterator[Ledger]:
    ledger = Ledger()
    await ledger.start()
    try:
        yield ledger
    finally:
        await ledger.stop()


async def until(look: Callable[[], Awaitable[object]]) -> None:
    deadline = time.monotonic() + 30
    while not await look():
        assert time.monotonic() < deadline, "not seen within 30 s"
        await asyncio.sleep(0.02)


async def read(what: Callable[[], T]) -> T:
    """Ask the database on a connection that does not stay open."""

    def ask() -> T:
        try:
            return what()
        finally:
            connection.close()

    return await sync_to_async(ask)()


def stored() -> set[str]:
    return set(Admission.objects.values_list("request_id", flat=True))


def outcomes() -> dict[str, str]:
    found = dict(UsageRow.objects.values_list("request_id", "outcome"))
    return found | dict(SpeechRow.objects.values_list("request_id", "outcome"))


def ended(note: Receipt) -> Receipt:
    """The row of ``note`` when it is answered."""
    return msgspec.structs.replace(
        note,
        outcome="success",
        http_status=200,
        error_code=None,
        backend_reported_input_tokens=7,
        backend_reported_output_tokens=5,
        generated_output_tokens=5,
        delivered_output_tokens=5,
    )


def spoken(note: SpeechReceipt) -> SpeechReceipt:
    return speech_receipt(request_id=note.request_id)


def a_process(*running: AnyReceipt) -> Lease:
    """A process that has noted ``running``."""
    lease = Lease(600)
    lease.extend()
    assert rows.insert_and_note((), Notes(running, lease)) == (0, True)
    return lease


def let_pass(
    lease: Lease, *, since: timedelta = timedelta(), alive: timedelta = timedelta()
) -> None:
    """As if the process had begun so much earlier, or had said so much earlier that it lives."""
    owner = AdmissionOwner.objects.get(pk=lease.owner)
    owner.since -= since
    owner.alive_until -= alive
    owner.save()


def an_observer() -> Lease:
    """A process that has said for 11 minutes that it lives."""
    lease = Lease(600)
    lease.extend()
    let_pass(lease, since=11 * MINUTE)
    return lease


def close(observer: Lease) -> int:
    closing = orphans.close_in_steps(observer, lambda: None)
    while True:
        try:
            next(closing)
        except StopIteration as end:
            closed: int = end.value
            return closed


def assert_sums_are_those_of_the_rows() -> None:
    verify(pytest.fail)


async def test_a_note_is_there_before_the_request_runs_and_goes_with_its_row() -> None:
    chat, speech = admitted(), speech_admitted()
    async with running_ledger() as ledger:
        await asyncio.gather(ledger.admit_durably(chat), ledger.admit_durably(speech))
        assert await read(stored) == {chat.request_id, speech.request_id}

        await ledger.record(ended(chat))
        assert await read(stored) == {speech.request_id}
        await ledger.record(spoken(speech))
        assert await read(stored) == set()
        assert await read(outcomes) == {chat.request_id: "success", speech.request_id: "success"}

    assert await read(AdmissionOwner.objects.count) == 0, (
        "a process that has stopped leaves nothing"
    )


async def test_without_the_setting_nothing_is_noted(settings: Settings) -> None:
    settings.SVC_DURABLE_ADMISSIONS = False
    async with running_ledger() as ledger:
        await ledger.admit_durably(admitted())
        assert await read(stored) == set()


async def test_a_broken_journal_refuses_nobody_whose_admission_the_database_has(
    journal_directory: Path,
) -> None:
    journal_directory.write_bytes(b"not a directory")  # noqa: ASYNC240
    note = admitted()
    async with running_ledger() as ledger:
        await ledger.admit_durably(note)
        assert await read(stored) == {note.request_id}
        await ledger.record(ended(note))
        assert await read(outcomes) == {note.request_id: "success"}


async def test_while_the_database_takes_nothing_nobody_is_admitted_and_answers_go_on() -> None:
    note, late = admitted(), admitted()
    async with running_ledger() as ledger:
        await ledger.admit_durably(note)
        with rows_locked():
            await ledger.record(ended(note))  # the journal vouches for it
            with pytest.raises(ServerOverloaded):
                await ledger.admit_durably(late)
            assert not ledger.has_place()

        async def is_back() -> bool:
            return ledger.database_answers and not ledger.rows_owed

        await until(is_back)
        await ledger.admit_durably(again := admitted())
        assert await read(stored) == {again.request_id}
        assert await read(outcomes) == {note.request_id: "success"}


async def test_who_does_not_wait_for_the_note_leaves_none(monkeypatch: pytest.MonkeyPatch) -> None:
    note = admitted()
    begun, committed, may_go_on = asyncio.Event(), asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    insert = rows.insert_and_note

    def slow(receipts: Sequence[AnyReceipt], notes: Notes) -> tuple[int, bool]:
        if note in notes.receipts:
            loop.call_soon_threadsafe(begun.set)
            assert may_go_on.wait(30)
        inserted = insert(receipts, notes)
        if note in notes.receipts:
            loop.call_soon_threadsafe(committed.set)
        return inserted

    async with running_ledger() as ledger:
        await ledger.admit_durably(admitted())
        monkeypatch.setattr(rows, "insert_and_note", slow)
        admitting = asyncio.create_task(ledger.admit_durably(note))
        await begun.wait()
        admitting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await admitting
        may_go_on.set()
        await committed.wait()

        async def is_gone() -> bool:
            return note.request_id not in await read(stored)

        await until(is_gone)


def test_requests_of_a_dead_process_are_closed_once() -> None:
    chat, speech = admitted(), speech_admitted()
    dead = a_process(chat, speech)
    let_pass(dead, alive=11 * MINUTE)
    observers = [an_observer() for _ in range(4)]

    def closing(observer: Lease) -> int:
        try:
            return close(observer)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(closing, observers)) == 2

    assert outcomes() == {chat.request_id: "interrupted", speech.request_id: "interrupted"}
    assert_sums_are_those_of_the_rows()


def test_a_request_whose_row_is_there_is_not_closed() -> None:
    note = admitted()
    dead = a_process(note)
    rows.insert([ended(note)], keep_notes=True)
    let_pass(dead, alive=11 * MINUTE)

    assert close(an_observer()) == 0
    assert outcomes() == {note.request_id: "success"}
    assert stored() == set()


def test_a_process_that_says_that_it_lives_keeps_its_requests() -> None:
    living = a_process(admitted())
    let_pass(living, alive=9 * MINUTE)

    assert close(an_observer()) == 0
    assert outcomes() == {}


def test_after_an_outage_every_process_has_the_time_to_say_that_it_lives() -> None:
    """The database was away for longer than a lease: all leases have run out, that of the process
    which comes back first too."""
    other, first = a_process(admitted()), an_observer()
    let_pass(other, alive=20 * MINUTE)
    let_pass(first, alive=20 * MINUTE)
    first.extend()
    assert close(first) == 0

    other.extend()
    let_pass(first, since=11 * MINUTE)
    assert close(first) == 0
    assert outcomes() == {}


def test_a_process_that_starts_closes_nothing_before_a_lease_has_passed() -> None:
    dead = a_process(admitted())
    let_pass(dead, alive=11 * MINUTE)
    new = Lease(600)
    new.extend()
    assert close(new) == 0
    let_pass(new, since=11 * MINUTE)
    assert close(new) == 1


def test_a_process_that_was_taken_for_dead_has_the_last_word_on_its_requests() -> None:
    chat, speech, gone = admitted(), speech_admitted(), admitted()
    paused = a_process(chat, speech, gone)
    let_pass(paused, alive=11 * MINUTE)
    assert close(an_observer()) == 3
    times = dict(UsageRow.objects.values_list("request_id", "occurred_at"))

    for _ in range(2):  # the second time as after a lost reply
        assert rows.insert([ended(chat), spoken(speech)]) == 0

    assert outcomes() == {
        chat.request_id: "success",
        speech.request_id: "success",
        gone.request_id: "interrupted",
    }
    row = UsageRow.objects.get(request_id=chat.request_id)
    assert (row.backend_reported_output_tokens, row.occurred_at) == (5, times[chat.request_id])
    assert sum(UsageRollup.objects.values_list("requests", flat=True)) == 2
    assert SpeechDay.objects.get(day="2026-11-20").characters == 40
    assert_sums_are_those_of_the_rows()
    assert stored() == {gone.request_id}


def test_a_journal_that_is_found_after_all_has_the_last_word_too(journal_directory: Path) -> None:
    answered, running = admitted(), admitted()
    lost = a_process(answered, running)
    let_pass(lost, alive=11 * MINUTE)
    assert close(an_observer()) == 2

    journal_directory.mkdir()
    (journal_directory / "1-found.log").write_bytes(
        noted("admitted", answered)
        + noted("admitted", running)
        + noted("progress", progress(running.request_id, 3))
        + noted("settled", ended(answered))
    )
    adopt(journal_directory)

    assert outcomes() == {answered.request_id: "success", running.request_id: "interrupted"}
    row = UsageRow.objects.get(request_id=running.request_id)
    assert row.backend_reported_output_tokens == 3
    assert_sums_are_those_of_the_rows()


def test_the_notes_of_a_process_whose_lease_has_run_out_begin_with_a_new_one() -> None:
    lease = a_process()
    let_pass(lease, alive=11 * MINUTE)

    assert rows.insert_and_note((), Notes([admitted()], lease)) == (0, False)
    assert stored() == set()
    lease.extend()
    assert rows.insert_and_note((), Notes([admitted()], lease)) == (0, True)


def test_a_note_that_is_made_again_stays_one() -> None:
    note = admitted()
    lease = a_process(note)
    assert rows.insert_and_note([receipt()], Notes([note], lease)) == (1, True)
    assert stored() == {note.request_id}
