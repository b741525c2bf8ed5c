"""The local journal after the death of a process, a torn write, a flipped bit, a full disk."""

from __future__ import annotations

import asyncio
import fcntl
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders.receipts import admitted, progress, receipt
from tests.support.ledger.journal_files import dead_segment
from tests.support.ledger.ledgers import read_segment
from usage.ledger.journal import journal as journal_module
from usage.ledger.journal.adoption import adopt
from usage.ledger.journal.journal import Journal
from usage.ledger.journal.segments import Orphan, abandoned, adopt_file
from usage.models import UsageRow

ROOM = 1_000_000


def content_of(directory: Path) -> bytes:
    (path,) = directory.glob("*.log")
    return path.read_bytes()


def orphans(directory: Path) -> list[Orphan]:
    """Lock and return every segment that no living process owns."""
    return [orphan for path in abandoned(directory) if (orphan := adopt_file(path))]


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
    dead_segment(directory, "1-dead.log", lines[0], b"00000000 {}\n", *lines[2:])

    adopt(directory)

    assert [path.suffix for path in directory.iterdir()] == [".damaged"]
    assert UsageRow.objects.count() == 2


def test_a_segment_is_adopted_by_one_process_only(segment: bytes, tmp_path: Path) -> None:
    dead_segment(tmp_path / "journal", "1-dead.log", segment)

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


def running_in(directory: Path) -> set[str]:
    """The requests that would be closed if the process died now."""
    found: set[str] = set()
    for path in directory.glob("*.log"):
        content = read_segment(path.read_bytes())
        assert not content.damaged
        found |= set(content.running)
    return found


async def test_each_of_many_is_in_the_file_when_it_is_admitted(tmp_path: Path) -> None:
    journal = Journal(tmp_path, ROOM)
    requests = [admitted() for _ in range(20)]

    async def admit(number: int) -> bool:
        if number % 2:
            await asyncio.sleep(0)  # half of them come a turn later
        await journal.admit(requests[number])
        return requests[number].request_id in running_in(tmp_path)

    assert await asyncio.gather(*(admit(number) for number in range(20))) == [True] * 20


@pytest.mark.parametrize("turns", [1, 2, 3])
async def test_a_cancelled_one_leaves_nothing_to_be_closed(tmp_path: Path, turns: int) -> None:
    journal = Journal(tmp_path, ROOM)
    stays, leaves = admitted(), admitted()
    tasks = [asyncio.create_task(journal.admit(each)) for each in (leaves, stays)]
    for _ in range(turns):  # before, with and after the write
        await asyncio.sleep(0)
    ended_before = tasks[0].done()
    tasks[0].cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    journal.flush_written()

    assert outcomes[1] is None
    assert running_in(tmp_path) - {stays.request_id} == (
        {leaves.request_id} if ended_before else set()
    )


async def test_a_journal_without_room_refuses_all_of_them(tmp_path: Path) -> None:
    journal = Journal(tmp_path, 0)
    outcomes = await asyncio.gather(
        *(journal.admit(admitted()) for _ in range(3)), return_exceptions=True
    )

    assert [type(outcome) for outcome in outcomes] == [OSError] * 3
