"""The local journal after the death of a process, a torn write, a flipped bit, a full disk."""

from __future__ import annotations

import fcntl
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders.receipts import admitted, progress, receipt
from tests.support.ledger.ledgers import read_segment
from tests.support.live import ROOT
from tests.support.until import until
from usage.ledger.journal import journal as journal_module
from usage.ledger.journal.adoption import adopt
from usage.ledger.journal.journal import Journal
from usage.ledger.journal.segments import Orphan, adopt_file
from usage.ledger.journal.segments import abandoned as abandoned_files
from usage.models import UsageRow

ROOM = 1_000_000


def content_of(directory: Path) -> bytes:
    (path,) = directory.glob("*.log")
    return path.read_bytes()


def orphans(directory: Path) -> list[Orphan]:
    """Lock and return every segment that no living process owns."""
    return [orphan for path in abandoned_files(directory) if (orphan := adopt_file(path))]


def abandoned(directory: Path, content: bytes, name: str = "1-dead.log") -> Path:
    """A segment whose owner is dead."""
    directory.mkdir(exist_ok=True)
    path = directory / name
    path.write_bytes(content)
    return path


@pytest.fixture
def segment(tmp_path: Path) -> bytes:
    """Three requests: one settled, one running with progress, one just admitted."""
    journal = Journal(tmp_path / "made", ROOM)
    first, second, third = admitted(), admitted(), admitted()
    for each in (first, second, third):
        journal.admitted(each)
    journal.progress(progress(second.request_id, 7))
    journal.settled(receipt(request_id=first.request_id))
    content = content_of(tmp_path / "made")
    journal.close()
    return content


def test_a_record_torn_at_any_byte_costs_that_record_only(segment: bytes) -> None:
    last = segment.splitlines(keepends=True)[-1]
    whole = len(segment) - len(last)

    for size in range(whole, len(segment) - 1):
        found = read_segment(segment[:size])
        assert len(found.running) == 3
        assert not found.settled
        assert not found.damaged


def test_a_flipped_bit_costs_one_record_and_is_noticed(segment: bytes) -> None:
    last = segment.rindex(b"\n", 0, -1)
    for position in range(len(segment) - 1):
        flipped = bytearray(segment)
        flipped[position] ^= 0x10

        found = read_segment(bytes(flipped))

        touched = 2 if segment[position] == ord("\n") else 1
        assert len(found.settled) + len(found.running) >= 3 - touched
        assert found.damaged or position >= last


@given(content=st.binary(max_size=400))
def test_no_file_content_can_stop_a_recovery(content: bytes) -> None:
    found = read_segment(content)

    assert not found.settled
    assert not found.running


@pytest.mark.django_db(transaction=True)
def test_a_damaged_segment_is_set_aside_and_its_good_records_are_rows(
    segment: bytes, tmp_path: Path
) -> None:
    directory = tmp_path / "journal"
    lines = segment.splitlines(keepends=True)
    abandoned(directory, b"".join([lines[0], b"00000000 {}\n", *lines[2:]]))

    adopt(directory)

    assert [path.suffix for path in directory.iterdir()] == [".damaged"]
    assert UsageRow.objects.count() == 2


def test_a_segment_is_adopted_by_one_process_only(segment: bytes, tmp_path: Path) -> None:
    abandoned(tmp_path / "journal", segment)

    first = orphans(tmp_path / "journal")
    second = orphans(tmp_path / "journal")

    assert (len(first), len(second)) == (1, 0)
    first[0].close()
    (third,) = orphans(tmp_path / "journal")
    third.close()


def test_no_other_process_sees_a_segment_before_it_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    lock = fcntl.flock

    def look_first(file: int, operation: int) -> None:
        seen.append(list(tmp_path.glob("*.log")))
        lock(file, operation)

    monkeypatch.setattr(fcntl, "flock", look_first)
    Journal(tmp_path, ROOM).admitted(admitted())

    assert seen == [[]]


def test_a_segment_is_deleted_when_the_database_has_all_its_rows(tmp_path: Path) -> None:
    journal = Journal(tmp_path, ROOM)
    first, second = admitted(), admitted()
    journal.admitted(first)
    journal.admitted(second)
    journal.settled(receipt(request_id=first.request_id))

    assert journal.owes == 1
    journal.written([first.request_id])
    assert len(list(tmp_path.glob("*.log"))) == 1
    assert not journal.owes

    journal.written([second.request_id])
    assert not list(tmp_path.glob("*.log"))
    assert not journal.owes


def test_a_full_journal_accepts_records_again_once_its_rows_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "SEGMENT_BYTES", 1)
    journal = Journal(tmp_path, 1)
    first = admitted()
    journal.admitted(first)
    with pytest.raises(OSError, match="SVC_JOURNAL_MAX_BYTES"):
        journal.admitted(admitted())

    journal.written([first.request_id])
    journal.admitted(admitted())

    assert len(read_segment(content_of(tmp_path)).running) == 1


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """Simulate a full disk for this process (setrlimit(2), RLIMIT_FSIZE)."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_torn_record_hides_no_later_record(tmp_path: Path) -> None:
    journal = Journal(tmp_path, ROOM)
    journal.admitted(admitted())
    taken = len(content_of(tmp_path))

    with no_file_beyond(taken + 50), pytest.raises(OSError, match="journal"):
        journal.admitted(admitted())
    journal.admitted(admitted())

    found = read_segment(content_of(tmp_path))
    assert len(found.running) == 2
    assert not found.damaged


DIES_WRITING = """
import pathlib, signal, sys, time
import django
django.setup()
from tests.support.builders.receipts import admitted
from usage.ledger.journal.journal import Journal
journal = Journal(pathlib.Path(sys.argv[1]), 100_000_000)
while journal.size < 10_000_000:  # one segment's worth
    journal.admitted(admitted())
signal.pause()
"""


def test_records_survive_the_death_of_the_process(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", DIES_WRITING, str(tmp_path)], cwd=ROOT)
    until(lambda: any(path.stat().st_size > 50_000 for path in tmp_path.glob("*.log")))
    process.send_signal(signal.SIGKILL)
    process.wait()

    (left,) = orphans(tmp_path)
    found = read_segment(left.read())

    assert len(found.running) == content_of(tmp_path).count(b"\n")
    assert not found.damaged
    left.close()
