"""The journals that dead processes left: adopted once, and completely."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import msgspec
import pytest

from tests.support.builders.receipts import admitted, receipt
from tests.support.ledger.journal_files import dead_segment
from tests.support.ledger.ledgers import outcomes, read, running_ledger, until_stored
from tests.support.until import until_async
from usage.ledger import rows
from usage.ledger.journal.adoption import adopt
from usage.ledger.journal.records import encode, framed
from usage.ledger.ledger import Ledger
from usage.models import UsageRow
from usage.receipts import SpeechReceipt

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_file_that_cannot_be_adopted_does_not_stop_the_others(
    journal_directory: Path,
) -> None:
    left = receipt()
    dead_segment(journal_directory, "500-dead.log", encode("settled", left))
    (journal_directory / "100-other.log").mkdir()

    async with running_ledger() as ledger:
        assert set(await until_stored(1)) == {left.request_id}
        await until_async(lambda: ledger.state.unreadable_files == {"100-other.log"})


def test_a_file_that_could_not_be_read_is_adopted_later(
    journal_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = receipt()
    dead_segment(journal_directory, "500-dead.log", encode("settled", left))
    pread = os.pread

    def fails(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "pread", fails)
    assert adopt(journal_directory) == 0
    monkeypatch.setattr(os, "pread", pread)
    assert adopt(journal_directory) == 1


def test_adoption_does_not_send_rows_that_the_database_has(
    journal_directory: Path, sent: list[list[str]]
) -> None:
    done = [receipt() for _ in range(700)]
    lacking = receipt()
    rows.insert(done)
    sent.clear()
    lines = [encode("admitted", each) for each in [*done, lacking]]
    dead_segment(journal_directory, "1-dead.log", *lines)

    assert adopt(journal_directory) == 1

    assert sent == [[lacking.request_id]]


async def test_rows_that_were_written_do_not_come_back_when_their_month_was_dropped(
    journal_directory: Path,
) -> None:
    ledger = Ledger()
    await ledger.start()
    running = admitted()
    await ledger.admit_durably(running)
    for _ in range(20):
        each = receipt()
        await ledger.admit_durably(each)
        await ledger.record(each)
    await read(lambda: UsageRow.objects.all().delete())
    await ledger.close()

    assert await read(lambda: adopt(journal_directory)) == 1

    assert await read(outcomes) == {running.request_id: running.outcome}


def test_a_request_admitted_before_a_step_of_the_clock_is_closed(journal_directory: Path) -> None:
    """A host whose clock has no battery starts in the past, until a time server sets it."""
    before = admitted(request_id=f"req_{int((time.time() - 30 * 86_400) * 1000):012x}7" + "0" * 19)
    after = admitted()
    dead_segment(
        journal_directory, "1-dead.log", encode("admitted", before), encode("admitted", after)
    )

    assert adopt(journal_directory) == 2

    assert outcomes() == {each.request_id: "interrupted" for each in (before, after)}
    assert not list(journal_directory.iterdir())


def test_a_segment_of_a_newer_version_is_left_alone(journal_directory: Path) -> None:
    path = dead_segment(
        journal_directory,
        "1-dead.log",
        encode("settled", receipt()),
        framed(b'{"something":{"new":1},"v":999}'),
    )

    assert adopt(journal_directory) == 0

    assert path.exists()


def test_unnamed_files_of_dead_processes_are_removed(
    journal_directory: Path,
) -> None:
    old = dead_segment(journal_directory, "1-dead.new")
    young = dead_segment(journal_directory, "2-young.new")
    os.utime(old, (1, 1))

    adopt(journal_directory)

    assert (old.exists(), young.exists()) == (False, True)


def test_a_speech_receipt_of_the_first_version_has_all_required_fields() -> None:
    """New fields must have defaults, so that the journals of an older version can be read."""

    def required(kind: type[msgspec.Struct]) -> set[str]:
        return {field.name for field in msgspec.structs.fields(kind) if field.required}

    assert required(SpeechReceipt) == {
        *("request_id", "organization_id", "api_key_id", "day", "voice", "cloned", "engine"),
        *("response_format", "transport", "outcome", "http_status"),
    }
