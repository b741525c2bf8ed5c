"""Threads for work that would block the event loop: organizations take turns."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from core.errors import InvalidField
from core.sharing.fair_queue import FairPool


def blocked(thread: FairPool) -> tuple[asyncio.Task[bool], threading.Event]:
    """Work that blocks the thread until the event is set."""
    free = threading.Event()
    return asyncio.create_task(thread.run("first", lambda: free.wait(60))), free


def named(done: list[str], name: str) -> Callable[[], None]:
    return lambda: done.append(name)


async def test_organizations_take_turns_in_the_thread() -> None:
    thread, done = FairPool("test"), list[str]()
    first, free = blocked(thread)
    await asyncio.sleep(0)
    flood = [
        asyncio.create_task(thread.run("flood", named(done, f"flood {number}")))
        for number in range(3)
    ]
    other = asyncio.create_task(thread.run("other", named(done, "other")))
    await asyncio.sleep(0)
    free.set()
    await asyncio.gather(first, *flood, other)
    assert done == ["flood 0", "other", "flood 1", "flood 2"]


async def test_a_cancelled_callers_work_is_skipped_or_holds_its_thread_until_it_has_ended() -> None:
    thread, done = FairPool("test"), list[str]()
    first, free = blocked(thread)
    await asyncio.sleep(0)
    left = asyncio.create_task(thread.run("a", named(done, "left")))
    stays = asyncio.create_task(thread.run("a", named(done, "stays")))
    await asyncio.sleep(0)
    left.cancel()
    first.cancel()
    await asyncio.sleep(0)
    assert thread._slots.inflight == 1
    assert thread._slots.waiting == 1

    free.set()
    await stays
    assert done == ["stays"]


async def test_exceptions_of_the_work_are_raised_and_the_thread_goes_on() -> None:
    thread = FairPool("test")

    def fail() -> None:
        raise InvalidField("no")

    with pytest.raises(InvalidField, match="no"):
        await thread.run("a", fail)
    assert await thread.run("a", lambda: 5) == 5


async def test_an_organization_leaves_a_thread_to_others() -> None:
    threads = FairPool("test", 2)
    assert await threads.run("b", lambda: 5) == 5
    flood = [blocked(threads) for _ in range(3)]
    await asyncio.sleep(0)

    assert await asyncio.wait_for(threads.run("b", lambda: 6), 60) == 6

    for _, free in flood:
        free.set()
    await asyncio.gather(*(running for running, _ in flood))
