"""Admissions that are journaled together: all are in the file before any request goes on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.builders.receipts import admitted
from tests.support.ledger.ledgers import read_segment
from usage.ledger.journal.journal import Journal

ROOM = 1_000_000


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
