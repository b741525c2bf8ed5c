"""The ledger between database and journal: what it falls back on, and how it comes back."""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError, connection
from pytest_django.fixtures import Settings

from svc_project.lib.errors import InternalError, ServerOverloaded
from tests.database_outage import rows_locked
from tests.usage.making import admitted, receipt, speech_receipt
from usage import ledger as ledger_module
from usage import rows
from usage.adoption import adopt
from usage.ledger import Ledger
from usage.models import SpeechRow, UsageRow
from usage.receipts import AnyReceipt, Receipt, SpeechReceipt
from usage.records import framed, noted, read_segment

pytestmark = pytest.mark.django_db(transaction=True)
T = TypeVar("T")
BAD = "acme/bad"


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
        await ledger.stop()


async def read(what: Callable[[], T]) -> T:
    """Ask the database on a connection that does not stay open."""

    def ask() -> T:
        try:
            return what()
        finally:
            connection.close()

    return await sync_to_async(ask)()


def outcomes() -> dict[str, str]:
    return dict(UsageRow.objects.values_list("request_id", "outcome"))


async def until(look: Callable[[], object], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not look():
        assert time.monotonic() < deadline, f"not seen within {seconds} s"
        await asyncio.sleep(0.02)


async def until_stored(count: int) -> dict[str, str]:
    found: dict[str, str] = {}
    deadline = time.monotonic() + 30
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} rows"
        found = await read(outcomes)
    return found


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The request ids of each batch that was sent to the database and taken."""
    batches: list[list[str]] = []
    insert = rows.insert

    def watched(receipts: Sequence[AnyReceipt]) -> int:
        new = insert(receipts)
        batches.append([each.request_id for each in receipts])
        return new

    monkeypatch.setattr(rows, "insert", watched)
    return batches


@contextmanager
def refusing(condition: str) -> Iterator[None]:
    """The database refuses rows of chats for which the SQL ``condition`` holds, as after a migration
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
    """Run it while this thread waits, whose event loop may not ask a database."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(run_sql, statement).result()


def run_sql(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
    connection.close()


def files(directory: Path, pattern: str) -> list[Path]:
    return list(directory.glob(pattern))


def break_journal(directory: Path) -> None:
    """Nothing can be made in the journal's directory: it is none."""
    directory.write_bytes(b"not a directory")


def mend_journal(directory: Path) -> None:
    directory.unlink()


# -- the way back (1) --------------------------------------------------------------------------


async def test_after_a_stall_each_row_is_sent_once_and_the_ledger_stays_on_the_database(
    sent: list[list[str]], journal_directory: Path
) -> None:
    async with running_ledger() as ledger:
        stays_open = admitted()
        ledger.admit(stays_open)
        with rows_locked():
            during = [receipt() for _ in range(30)]
            for each in during:
                ledger.admit(each)
            await asyncio.gather(*map(ledger.record, during))
        await until(lambda: not ledger.rows_owed and ledger.database_answers)
        sent.clear()

        began = time.monotonic()
        after = []
        while time.monotonic() - began < 2.5:
            after.append(receipt())
            ledger.admit(after[-1])
            await ledger.record(after[-1])

        again = {each.request_id for each in during} & {each for batch in sent for each in batch}
        assert not again
        # A commit that a busy disk held up is counted when it ends; its row was released before.
        await until(lambda: ledger.rows_written == len(during) + len(after))
        assert len(await read(outcomes)) == len(during) + len(after)


async def test_what_an_outage_left_goes_in_slices_between_living_requests(
    sent: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "SLICE", 10)
    async with running_ledger() as ledger:
        with rows_locked():
            await asyncio.gather(*(ledger.record(receipt()) for _ in range(60)))
        live = []
        while ledger.rows_owed:
            live.append(receipt())
            await ledger.record(live[-1])
        assert len(await read(outcomes)) == 60 + len(live)
        assert ledger.rows_written == 60 + len(live)


@pytest.mark.postgresql
async def test_a_connection_that_was_dropped_is_replaced_before_the_journal_is_asked(
    journal_directory: Path,
) -> None:
    async with running_ledger() as ledger:
        await ledger.record(receipt())
        await read(
            lambda: run_sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        )
        last = receipt()
        ledger.admit(last)
        await ledger.record(last)

        assert last.request_id in await read(outcomes)
        assert ledger.rows_owed == 0


# -- refused rows (2, 17) ----------------------------------------------------------------------


async def test_a_refused_row_is_kept_seen_and_written_when_it_is_not_refused_any_more(
    journal_directory: Path,
) -> None:
    bad = receipt(model_identifier=BAD, generated_output_tokens=77)
    with refusing(f"model_identifier = '{BAD}'"):
        async with running_ledger() as ledger:
            good = [receipt() for _ in range(6)]
            await asyncio.gather(*map(ledger.record, [*good[:3], bad, *good[3:]]))

            assert set(await read(outcomes)) == {each.request_id for each in good}
            assert (ledger.rows_refused, ledger.refused_waiting) == (1, 1)
            assert ledger.rows_written == len(good)
            assert ledger.database_answers
        (kept,) = files(journal_directory, "*.refused")
        assert read_segment(kept.read_bytes()).settled[bad.request_id] == bad
        assert await read(lambda: adopt(journal_directory)) == 0
        assert kept.exists()

    async with running_ledger() as ledger:
        found = await until_stored(7)
        await until(lambda: not files(journal_directory, "*"))
        assert ledger.refused_waiting == 0
    assert found[bad.request_id] == "success"


async def test_a_database_that_refuses_every_row_counts_as_away(journal_directory: Path) -> None:
    async with running_ledger() as ledger:
        await ledger.record(receipt())
        with refusing("http_status > 0"):
            during = [receipt() for _ in range(5)]
            await asyncio.gather(*map(ledger.record, during))
            assert not ledger.database_answers
            assert ledger.rows_owed == 5
            assert not files(journal_directory, "*.refused")
        assert set(await until_stored(6)) > {each.request_id for each in during}
        await until(lambda: ledger.database_answers)


async def test_a_value_that_no_driver_takes_holds_up_no_other_row(
    monkeypatch: pytest.MonkeyPatch, journal_directory: Path
) -> None:
    insert = rows.insert
    bad = receipt()

    def cannot_encode(receipts: Sequence[AnyReceipt]) -> int:
        if bad in receipts:
            raise UnicodeEncodeError("utf-8", "x", 0, 1, "surrogates not allowed")
        return insert(receipts)

    monkeypatch.setattr(rows, "insert", cannot_encode)
    async with running_ledger() as ledger:
        with rows_locked():
            await asyncio.gather(*map(ledger.record, [receipt(), bad, receipt(), receipt()]))
        await until_stored(3)
        await until(lambda: not ledger.rows_owed)
        assert ledger.rows_refused == 1
        assert ledger.database_answers


# -- no place left (3) -------------------------------------------------------------------------


@pytest.fixture
def full_database(monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """A database that can be read, and takes no rows while ``full``."""
    state = {"full": False}
    insert = rows.insert

    def perhaps(receipts: Sequence[AnyReceipt]) -> int:
        if state["full"]:
            raise OperationalError("database or disk is full")
        return insert(receipts)

    monkeypatch.setattr(rows, "insert", perhaps)
    return state


async def test_with_no_place_left_one_answer_is_withheld_and_nothing_more_is_admitted(
    journal_directory: Path, full_database: dict[str, bool]
) -> None:
    break_journal(journal_directory)
    async with running_ledger() as ledger:
        unnoted = receipt()
        ledger.admit(unnoted)  # the database is there yet
        assert ledger.has_place()
        assert not ledger.journal_works
        full_database["full"] = True
        with pytest.raises(InternalError):
            await ledger.record(unnoted)

        until_retried = time.monotonic() + 2.5
        while time.monotonic() < until_retried:
            with pytest.raises(ServerOverloaded):
                ledger.admit(admitted())
            assert not ledger.has_place()
            await asyncio.sleep(0.05)

        assert ledger.rows_kept == 1
        full_database["full"] = False
        found = await until_stored(1)
        assert found == {unnoted.request_id: "internal_error"}
        await until(lambda: ledger.database_answers and not ledger.rows_kept)
        ledger.admit(admitted())


async def test_with_the_journal_gone_the_database_alone_serves_on(journal_directory: Path) -> None:
    break_journal(journal_directory)
    async with running_ledger() as ledger:
        for _ in range(3):
            each = receipt()
            ledger.admit(each)
            await ledger.record(each)
        assert len(await read(outcomes)) == 3
        assert ledger.has_place()
        assert not ledger.journal_works
        mend_journal(journal_directory)
        ledger.admit(admitted())
        assert ledger.journal_works


async def test_what_only_memory_has_goes_to_the_journal_when_that_is_back(
    journal_directory: Path, full_database: dict[str, bool]
) -> None:
    break_journal(journal_directory)
    async with running_ledger() as ledger:
        full_database["full"] = True
        lost = receipt()
        with pytest.raises(InternalError):
            await ledger.record(lost)
        mend_journal(journal_directory)
        await until(lambda: lost.request_id.encode() in all_noted(journal_directory))
    full_database["full"] = False
    assert await read(lambda: adopt(journal_directory)) == 1
    assert await read(outcomes) == {lost.request_id: "internal_error"}


def all_noted(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in directory.glob("*.log"))


# -- syncing (7) -------------------------------------------------------------------------------


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


async def test_a_client_that_is_told_500_is_not_billed_a_success(
    monkeypatch: pytest.MonkeyPatch, journal_directory: Path
) -> None:
    async with running_ledger() as ledger:
        await ledger.record(receipt())
        left = failing_syncs(monkeypatch, float("inf"))
        with rows_locked():
            asked: list[AnyReceipt] = [receipt(), receipt(streamed=True), speech_receipt()]
            for each in asked:
                ledger.admit(each)
            answers = await asyncio.gather(*map(ledger.record, asked), return_exceptions=True)
        left["failures"] = 0
        withheld = {
            each.request_id
            for each, answer in zip(asked, answers, strict=True)
            if isinstance(answer, InternalError)
        }
        found = await until_stored(3)
        await until(lambda: not ledger.rows_owed)
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
        await until(lambda: not ledger.rows_owed)

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
            await until(lambda: not ledger.database_answers)
            second = asyncio.create_task(ledger.record(receipt()))
            await asyncio.sleep(0.05)
        await asyncio.gather(first, second)
        assert set((await until_stored(2)).values()) == {"success"}


# -- the end (15) ------------------------------------------------------------------------------


async def test_a_row_that_comes_after_the_end_is_written(journal_directory: Path) -> None:
    ledger = Ledger()
    await ledger.start()
    late, later = receipt(), receipt()
    await ledger.stop()

    await asyncio.gather(ledger.record(late), ledger.record(later))

    assert set(await read(outcomes)) == {late.request_id, later.request_id}


async def test_a_row_that_comes_after_the_end_goes_to_the_journal_during_an_outage(
    journal_directory: Path, full_database: dict[str, bool]
) -> None:
    ledger = Ledger()
    await ledger.start()
    await ledger.stop()
    full_database["full"] = True
    late = receipt()

    await ledger.record(late)

    full_database["full"] = False
    assert await read(lambda: adopt(journal_directory)) == 1
    assert await read(outcomes) == {late.request_id: "success"}


# -- adoption (8, 9, 10, 16, 19) ---------------------------------------------------------------


def dead_segment(directory: Path, name: str, *lines: bytes) -> Path:
    directory.mkdir(exist_ok=True)
    path = directory / name
    path.write_bytes(b"".join(lines))
    return path


async def test_a_file_that_cannot_be_adopted_holds_up_no_other(journal_directory: Path) -> None:
    left = receipt()
    dead_segment(journal_directory, "500-dead.log", noted("settled", left))
    (journal_directory / "100-other.log").mkdir()

    async with running_ledger() as ledger:
        assert set(await until_stored(1)) == {left.request_id}
        await until(lambda: ledger.unreadable_files == {"100-other.log"})


def test_a_file_that_could_not_be_read_is_adopted_later(
    journal_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = receipt()
    dead_segment(journal_directory, "500-dead.log", noted("settled", left))
    pread = os.pread

    def fails(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "pread", fails)
    assert adopt(journal_directory) == 0
    monkeypatch.setattr(os, "pread", pread)
    assert adopt(journal_directory) == 1


def test_rows_that_the_database_has_are_not_sent_by_who_adopts_them(
    journal_directory: Path, sent: list[list[str]]
) -> None:
    done = [receipt() for _ in range(700)]
    lacking = receipt()
    rows.insert(done)
    sent.clear()
    lines = [noted("admitted", each) for each in [*done, lacking]]
    dead_segment(journal_directory, "1-dead.log", *lines)

    assert adopt(journal_directory) == 1

    assert sent == [[lacking.request_id]]


async def test_rows_that_were_written_do_not_come_back_when_their_month_was_dropped(
    journal_directory: Path,
) -> None:
    ledger = Ledger()
    await ledger.start()
    running = admitted()
    ledger.admit(running)
    for _ in range(20):
        each = receipt()
        ledger.admit(each)
        await ledger.record(each)
    await read(lambda: UsageRow.objects.all().delete())
    await ledger.stop()

    assert await read(lambda: adopt(journal_directory)) == 1

    assert await read(outcomes) == {running.request_id: running.outcome}


def test_admissions_older_than_any_request_are_not_closed_again(journal_directory: Path) -> None:
    old = admitted(request_id=f"req_{int((time.time() - 30 * 86_400) * 1000):012x}7" + "0" * 19)
    young = admitted()
    dead_segment(journal_directory, "1-dead.log", noted("admitted", old), noted("admitted", young))

    assert adopt(journal_directory) == 1

    assert set(outcomes()) == {young.request_id}


def test_an_interrupted_request_is_closed_however_late_its_journal_is_found(
    journal_directory: Path,
) -> None:
    old = admitted(request_id=f"req_{int((time.time() - 30 * 86_400) * 1000):012x}7" + "0" * 19)
    dead_segment(journal_directory, "1-dead.log", noted("admitted", old))

    assert adopt(journal_directory) == 1


def test_a_segment_of_a_newer_version_is_left_to_it(journal_directory: Path) -> None:
    path = dead_segment(
        journal_directory,
        "1-dead.log",
        noted("settled", receipt()),
        framed(b'{"something":{"new":1},"v":999}'),
    )

    assert adopt(journal_directory) == 0

    assert path.exists()


def test_files_of_processes_that_died_before_they_named_them_are_removed(
    journal_directory: Path,
) -> None:
    old = dead_segment(journal_directory, "1-dead.new")
    young = dead_segment(journal_directory, "2-young.new")
    os.utime(old, (1, 1))

    adopt(journal_directory)

    assert (old.exists(), young.exists()) == (False, True)


def test_a_receipt_of_the_first_version_still_has_all_that_is_required() -> None:
    """New fields have defaults, or the journals of the version before could not be read."""

    def required(kind: type[msgspec.Struct]) -> set[str]:
        return {field.name for field in msgspec.structs.fields(kind) if field.required}

    assert required(Receipt) == {
        "request_id",
        "organization_id",
        "api_key_id",
        "model_identifier",
        "model_id",
        "model_version_id",
        "outcome",
        "streamed",
        "shape",
        "http_status",
        "input_price_per_mtok",
        "output_price_per_mtok",
        "price_currency",
    }
    assert required(SpeechReceipt) == {
        "request_id",
        "organization_id",
        "api_key_id",
        "day",
        "voice",
        "cloned",
        "engine",
        "response_format",
        "transport",
        "outcome",
        "http_status",
    }
