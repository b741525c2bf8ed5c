"""Durable admissions: committed before a request runs, deleted with its row, closed once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import reduce
from operator import add
from pathlib import Path

import msgspec
import pytest
from django.db import connection
from django.db.models import F
from pytest_django.fixtures import Settings

from core.errors import ServerOverloaded
from tests.support.builders.receipts import (
    admitted,
    progress,
    receipt,
    speech_admitted,
    speech_receipt,
)
from tests.support.ledger.journal_files import dead_segment
from tests.support.ledger.ledgers import read, running_ledger
from tests.support.servers.database_outage import rows_locked
from tests.support.until import until_async
from usage.ledger import orphans, rows
from usage.ledger.admissions import NewAdmissions, OwnerLease
from usage.ledger.journal.adoption import adopt
from usage.ledger.journal.records import encode
from usage.models import Admission, AdmissionOwner, SpeechDay, SpeechRow, UsageRollup, UsageRow
from usage.models.health_sums import OUTCOME_SUMS
from usage.receipts import AnyReceipt, Receipt, SpeechReceipt
from usage.verification.rollups import verify

pytestmark = pytest.mark.django_db(transaction=True)
MINUTE = timedelta(minutes=1)


@pytest.fixture(params=[pytest.param(True, marks=pytest.mark.postgresql), False])
def admits_in_database(
    request: pytest.FixtureRequest, settings: Settings, journal_directory: Path
) -> None:
    """A host without a lasting disk, or one whose journal takes no record."""
    if request.param:
        settings.SVC_DURABLE_ADMISSIONS = True
    else:
        journal_directory.write_bytes(b"not a directory")


def stored() -> set[str]:
    return set(Admission.objects.values_list("request_id", flat=True))


def outcomes() -> dict[str, str]:
    found = dict(UsageRow.objects.values_list("request_id", "outcome"))
    return found | dict(SpeechRow.objects.values_list("request_id", "outcome"))


def ended(request: Receipt) -> Receipt:
    """The row of the admitted request ``request`` once it is answered."""
    return msgspec.structs.replace(
        request,
        outcome="success",
        http_status=200,
        error_code=None,
        backend_reported_input_tokens=7,
        backend_reported_output_tokens=5,
        generated_output_tokens=5,
        delivered_output_tokens=5,
    )


def spoken(request: SpeechReceipt) -> SpeechReceipt:
    return speech_receipt(request_id=request.request_id)


def a_process(*running: AnyReceipt) -> OwnerLease:
    """A process that has committed the admissions of ``running``."""
    lease = OwnerLease(600)
    lease.extend()
    assert rows.insert_with_admissions((), NewAdmissions(running, lease)) == (0, True)
    return lease


def let_pass(
    lease: OwnerLease, *, since: timedelta = timedelta(), alive: timedelta = timedelta()
) -> None:
    """Move the process's lease, its start or its last extension, into the past."""
    owner = AdmissionOwner.objects.get(pk=lease.owner)
    owner.since -= since
    owner.alive_until -= alive
    owner.save()


def an_observer() -> OwnerLease:
    """A process that has extended its lease for 11 minutes."""
    lease = OwnerLease(600)
    lease.extend()
    let_pass(lease, since=11 * MINUTE)
    return lease


def close(observer: OwnerLease) -> int:
    """Close what ``observer`` may close; return how many requests."""
    closing = orphans.close_in_steps(observer, lambda: None)
    while True:
        try:
            next(closing)
        except StopIteration as end:
            closed: tuple[int, bool] = end.value
            return closed[0]


def assert_sums_are_those_of_the_rows() -> None:
    verify(pytest.fail)
    outcomes = reduce(add, map(F, OUTCOME_SUMS.values()))
    assert not UsageRollup.objects.exclude(requests=outcomes).exists()


@pytest.mark.usefixtures("admits_in_database")
async def test_an_admission_is_committed_before_the_request_runs_and_deleted_with_its_row() -> None:
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


async def test_an_admission_goes_to_the_journal_again_once_it_takes_records(
    journal_directory: Path,
) -> None:
    journal_directory.write_bytes(b"not a directory")  # noqa: ASYNC240
    async with running_ledger() as ledger:
        await ledger.admit_durably(first := admitted())
        journal_directory.unlink()  # noqa: ASYNC240
        await ledger.admit_durably(second := admitted())
        assert await read(stored) == {first.request_id}
        with rows_locked():  # the rows go to the journal, and from there to the database
            await asyncio.gather(ledger.record(ended(first)), ledger.record(ended(second)))

        async def is_empty() -> bool:
            return not ledger.state.rows_owed and not await read(stored)

        await until_async(is_empty)
        assert await read(outcomes) == dict.fromkeys(
            (first.request_id, second.request_id), "success"
        )


async def test_while_the_journal_takes_records_no_admission_is_stored() -> None:
    async with running_ledger() as ledger:
        await ledger.admit_durably(admitted())
        assert await read(stored) == set()


@pytest.mark.postgresql
async def test_without_the_database_no_request_is_admitted_and_running_answers_continue(
    settings: Settings,
) -> None:
    settings.SVC_DURABLE_ADMISSIONS = True
    request, late = admitted(), admitted()
    async with running_ledger() as ledger:
        await ledger.admit_durably(request)
        with rows_locked():
            await ledger.record(ended(request))  # synced to the journal
            with pytest.raises(ServerOverloaded):
                await ledger.admit_durably(late)
            assert not ledger.accepts_rows()

        async def is_back() -> bool:
            return ledger.state.database_answers and not ledger.state.rows_owed

        await until_async(is_back)
        await ledger.admit_durably(again := admitted())
        assert await read(stored) == {again.request_id}
        assert await read(outcomes) == {request.request_id: "success"}


@pytest.mark.usefixtures("admits_in_database")
async def test_a_request_cancelled_before_its_admission_leaves_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    request = admitted()
    begun, committed, may_go_on = asyncio.Event(), asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    insert = rows.insert_with_admissions

    def slow(
        receipts: Sequence[AnyReceipt], new_admissions: NewAdmissions, ended: Collection[str]
    ) -> tuple[int, bool]:
        if request in new_admissions.receipts:
            loop.call_soon_threadsafe(begun.set)
            assert may_go_on.wait(60)
        inserted = insert(receipts, new_admissions, ended)
        if request in new_admissions.receipts:
            loop.call_soon_threadsafe(committed.set)
        return inserted

    async with running_ledger() as ledger:
        await ledger.admit_durably(admitted())
        monkeypatch.setattr(rows, "insert_with_admissions", slow)
        admitting = asyncio.create_task(ledger.admit_durably(request))
        await begun.wait()
        admitting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await admitting
        may_go_on.set()
        await committed.wait()

        async def is_gone() -> bool:
            return request.request_id not in await read(stored)

        await until_async(is_gone)


def test_requests_of_a_dead_process_are_closed_once() -> None:
    chat, speech = admitted(), speech_admitted()
    dead = a_process(chat, speech)
    let_pass(dead, alive=11 * MINUTE)
    observers = [an_observer() for _ in range(4)]

    def closing(observer: OwnerLease) -> int:
        try:
            return close(observer)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(closing, observers)) == 2

    assert outcomes() == {chat.request_id: "interrupted", speech.request_id: "interrupted"}
    assert_sums_are_those_of_the_rows()


def test_a_request_with_a_row_is_not_closed() -> None:
    request = admitted()
    dead = a_process(request)
    rows.insert([ended(request)])
    let_pass(dead, alive=11 * MINUTE)

    assert close(an_observer()) == 0
    assert outcomes() == {request.request_id: "success"}
    assert stored() == set()


def test_a_process_that_extends_its_lease_keeps_its_requests() -> None:
    living = a_process(admitted())
    let_pass(living, alive=9 * MINUTE)

    assert close(an_observer()) == 0
    assert outcomes() == {}


def test_after_an_outage_every_process_has_time_to_extend_its_lease() -> None:
    """The database was away for longer than a lease: all leases have run out, also that of the
    process that comes back first."""
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
    new = OwnerLease(600)
    new.extend()
    assert close(new) == 0
    let_pass(new, since=11 * MINUTE)
    assert close(new) == 1


def test_the_rows_of_a_process_taken_for_dead_replace_the_interrupted_ones() -> None:
    chat, speech, gone = admitted(), speech_admitted(), admitted()
    paused = a_process(chat, speech, gone)
    let_pass(paused, alive=11 * MINUTE)
    assert close(an_observer()) == 3
    times = dict(UsageRow.objects.values_list("request_id", "occurred_at"))

    for _ in range(2):  # the second time like a retry after a lost reply
        both: list[AnyReceipt] = [ended(chat), spoken(speech)]
        assert rows.insert(both, ended={each.request_id for each in both}) == 0

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


def test_the_rows_of_a_recovered_journal_replace_the_interrupted_ones(
    journal_directory: Path,
) -> None:
    lost = a_process(answered := admitted(), running := admitted())
    let_pass(lost, alive=11 * MINUTE)
    assert close(an_observer()) == 2

    dead_segment(
        journal_directory,
        "1-found.log",
        encode("admitted", answered),
        encode("admitted", running),
        encode("progress", progress(running.request_id, 3)),
        encode("settled", ended(answered)),
    )
    adopt(journal_directory)

    assert outcomes() == {answered.request_id: "success", running.request_id: "interrupted"}
    row = UsageRow.objects.get(request_id=running.request_id)
    assert row.backend_reported_output_tokens == 3
    assert_sums_are_those_of_the_rows()


def test_a_process_whose_lease_has_run_out_extends_it_before_new_admissions() -> None:
    lease = a_process()
    let_pass(lease, alive=11 * MINUTE)

    assert rows.insert_with_admissions((), NewAdmissions([admitted()], lease)) == (0, False)
    assert stored() == set()
    lease.extend()
    assert rows.insert_with_admissions((), NewAdmissions([admitted()], lease)) == (0, True)


def test_an_admission_that_is_written_twice_is_stored_once() -> None:
    lease = a_process(request := admitted())
    assert rows.insert_with_admissions([receipt()], NewAdmissions([request], lease)) == (1, True)
    assert stored() == {request.request_id}
