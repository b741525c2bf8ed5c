"""The slots of a backend: which request gets one, which waits, which is refused."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from core.errors import ServerOverloaded
from core.sharing.fair_queue import RECENT_SECONDS, FairQueue

HOLDER = "z"
"""The organization that took the slots at the beginning."""


class Queue:
    """Starts waiters one after another and records the order in which they get a slot."""

    def __init__(self, slots: FairQueue, held_by: str = HOLDER) -> None:
        self.slots = slots
        self.served: list[str] = []
        self._holders = [held_by] * slots.inflight

    async def join(self, name: str) -> asyncio.Task[None]:
        """Queue as ``name``, whose first letter is the organization."""

        async def wait() -> None:
            await self.slots.acquire(name[0])
            self.served.append(name)
            self._holders.append(name[0])

        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        return task

    async def serve(self, count: int) -> list[str]:
        for _ in range(count):
            self.slots.release(self._holders.pop(0))
            await asyncio.sleep(0)
        return self.served


async def settled(condition: Callable[[], bool]) -> None:
    """Let other tasks run until ``condition`` holds."""
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0)
    pytest.fail("it did not happen")


def full(limit: int = 1, queue_length: int = 10, queue_seconds: float = 60) -> FairQueue:
    slots = FairQueue(limit, queue_length, queue_seconds)
    for _ in range(limit):
        assert slots.try_acquire(HOLDER)
    return slots


def test_a_free_slot_is_taken_without_waiting() -> None:
    slots = FairQueue(2, 10, 60)
    assert [slots.try_acquire(HOLDER) for _ in range(3)] == [True, True, False]
    assert slots.inflight == 2
    slots.release(HOLDER)
    assert (slots.inflight, slots.try_acquire(HOLDER)) == (1, True)


async def test_acquiring_a_free_slot_never_lets_other_tasks_run() -> None:
    acquiring = FairQueue(1, 10, 60).acquire("a")
    with pytest.raises(StopIteration):
        acquiring.send(None)


def test_releasing_more_than_was_acquired_is_an_error() -> None:
    with pytest.raises(RuntimeError):
        FairQueue(1, 10, 60).release(HOLDER)


async def test_one_organization_is_served_first_come_first_served() -> None:
    queue = Queue(full())
    for name in ("a1", "a2", "a3"):
        await queue.join(name)
    assert await queue.serve(3) == ["a1", "a2", "a3"]
    assert (queue.slots.inflight, queue.slots.waiting) == (1, 0)


async def test_organizations_take_turns() -> None:
    queue = Queue(full())
    for name in ("a1", "a2", "a3", "b1", "b2", "c1"):
        await queue.join(name)
    assert await queue.serve(6) == ["a1", "b1", "c1", "a2", "b2", "a3"]


async def test_no_request_overtakes_the_waiting_ones() -> None:
    queue = Queue(full())
    await queue.join("a1")
    queue.slots.release(HOLDER)
    assert not queue.slots.try_acquire(HOLDER)
    await settled(lambda: queue.served == ["a1"])


async def test_a_full_queue_refuses_at_once() -> None:
    queue = Queue(full(queue_length=2))
    await queue.join("a1")
    await queue.join("a2")
    with pytest.raises(ServerOverloaded) as refusal:
        await queue.slots.acquire("a")
    assert (refusal.value.status, refusal.value.headers) == (503, {})
    assert queue.slots.waiting == 2


async def test_without_a_queue_a_full_backend_refuses_at_once() -> None:
    with pytest.raises(ServerOverloaded):
        await full(queue_length=0).acquire("a")


async def test_an_organization_that_fills_the_queue_gives_way_to_another() -> None:
    queue = Queue(full(queue_length=3))
    noisy = [await queue.join(name) for name in ("a1", "a2", "a3")]
    await queue.join("b1")
    with pytest.raises(ServerOverloaded):
        await noisy[2]
    with pytest.raises(ServerOverloaded):
        await queue.slots.acquire("b")
    assert await queue.serve(3) == ["a1", "b1", "a2"]


async def test_a_wait_that_takes_too_long_is_refused_and_leaves_the_queue() -> None:
    slots = full(queue_seconds=0.02)
    with pytest.raises(ServerOverloaded):
        await slots.acquire("a")
    assert (slots.inflight, slots.waiting) == (1, 0)
    slots.release(HOLDER)
    assert slots.try_acquire(HOLDER)


async def test_a_raised_limit_serves_waiting_requests_at_once() -> None:
    queue = Queue(full())
    for name in ("a1", "a2", "a3"):
        await queue.join(name)
    queue.slots.limit = 3
    await settled(lambda: queue.served == ["a1", "a2"])
    assert (queue.slots.inflight, queue.slots.waiting) == (3, 1)


async def test_a_lowered_limit_lets_running_requests_end_and_admits_fewer() -> None:
    slots = full(limit=3)
    slots.limit = 1
    assert slots.inflight == 3
    slots.release(HOLDER)
    slots.release(HOLDER)
    assert not slots.try_acquire(HOLDER)
    slots.release(HOLDER)
    assert slots.try_acquire(HOLDER)


def reserving(limit: int, *held_by: str) -> FairQueue:
    slots = FairQueue(limit, 10, 60, reserved=0.25)
    for organization_id in held_by:
        assert slots.try_acquire(organization_id)
    return slots


def test_an_organization_alone_has_every_slot() -> None:
    slots = reserving(8, *"aaaaaaaa")
    assert not slots.try_acquire("a")


def test_an_organization_with_many_slots_leaves_the_reserve_to_one_that_used_them_lately() -> None:
    slots = reserving(8, "b", *"aaaaa")
    assert not slots.try_acquire("a")
    assert slots.try_acquire("b")
    assert slots.try_acquire("c")
    assert not slots.try_acquire("c")


def test_after_a_while_no_slot_is_reserved(monkeypatch: pytest.MonkeyPatch) -> None:
    slots = reserving(8, "b", *"aaaaa")
    slots.release("b")
    assert slots.try_acquire("a")
    assert not slots.try_acquire("a")
    later = time.monotonic() + RECENT_SECONDS
    monkeypatch.setattr("core.sharing.fair_queue.time.monotonic", lambda: later)
    assert slots.try_acquire("a")
    assert slots.try_acquire("a")


def test_the_gateways_own_use_reserves_no_slot() -> None:
    slots = reserving(2, "", "")
    slots.release("")
    slots.release("")
    assert slots.try_acquire("a")
    assert slots.try_acquire("a")


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_small_backend_reserves_one_slot_if_it_has_two(limit: int) -> None:
    slots = reserving(limit, "b")
    slots.release("b")
    taken = [slots.try_acquire("a") for _ in range(limit)]
    assert taken.count(True) == max(1, limit - 1)


async def test_a_reserved_slot_passes_over_an_organization_that_waits_for_more() -> None:
    slots = reserving(8, "b", *"aaaaa")
    queue = Queue(slots)
    await queue.join("a1")
    await queue.join("b1")
    assert queue.served == ["b1"]
    for _ in range(2):
        slots.release("a")
    await settled(lambda: queue.served == ["b1", "a1"])
