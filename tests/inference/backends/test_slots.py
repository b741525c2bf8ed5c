"""The slots of a backend: which request gets one, and which leaves it to another organization.

The order of those that wait is tested in ``tests/core/sharing/test_priorities.py``.
"""

from __future__ import annotations

import time

import pytest

from core.errors import ServerOverloaded
from core.sharing.fair_queue import RECENT_SECONDS, FairQueue
from tests.core.sharing.test_priorities import HOLDER, Queue, some


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


async def test_no_request_overtakes_the_waiting_ones() -> None:
    queue = await Queue.full()
    await queue.join("Sa1")
    queue.slots.release(HOLDER)
    assert not queue.slots.try_acquire(HOLDER)
    await queue.settle()
    assert queue.served == ["Sa1"]


@pytest.mark.parametrize("queue_length", [0, 2])
async def test_a_full_queue_refuses_at_once(queue_length: int) -> None:
    queue = await Queue.full(queue_length=queue_length)
    await queue.join(*some("Sa", queue_length))
    with pytest.raises(ServerOverloaded) as refusal:
        await queue.slots.acquire("a")
    assert (refusal.value.status, refusal.value.headers) == (503, {})
    assert queue.slots.waiting == queue_length


async def test_a_wait_that_takes_too_long_is_refused_and_leaves_the_queue() -> None:
    slots = FairQueue(1, 10, 0.02)
    assert slots.try_acquire(HOLDER)
    with pytest.raises(ServerOverloaded):
        await slots.acquire("a")
    assert (slots.inflight, slots.waiting) == (1, 0)
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
    queue = Queue(8, reserved=0.25)
    await queue.join("Sb0", *some("Sa", 6), "Sb1")
    assert queue.slots.waiting == 1
    assert queue.served[-1] == "Sb1"
    for _ in range(2):
        queue.slots.release("a")
    await queue.settle()
    assert queue.served[-1] == "Sa5"
