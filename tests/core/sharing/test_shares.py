"""Shared places and bytes: no caller gets all of them, and every caller gets a turn."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ServerOverloaded
from core.sharing.fair_queue import FairQueue
from core.sharing.places import Share


async def settle() -> None:
    """Let all tasks run until they wait."""
    for _ in range(10):
        await asyncio.sleep(0)


def test_a_caller_that_holds_its_share_waits_while_others_get_places() -> None:
    async def story() -> None:
        places = FairQueue(4, 8, 60, most_each=2)
        await places.acquire("a")
        await places.acquire("a")
        third = asyncio.ensure_future(places.acquire("a"))
        await settle()
        assert not third.done()

        await asyncio.wait_for(places.acquire("b"), 60)
        assert (places.inflight, places.waiting) == (3, 1)

        places.release("a")
        await asyncio.wait_for(third, 60)
        for caller in "aab":
            places.release(caller)
        assert (places.inflight, places.waiting) == (0, 0)

    asyncio.run(story())


def test_callers_that_wait_take_turns() -> None:
    async def story() -> list[str]:
        places = FairQueue(2, 40, 60, most_each=2)
        for _ in range(2):
            await places.acquire("first")
        order: list[str] = []

        async def use(caller: str) -> None:
            await places.acquire(caller)
            order.append(caller)
            await settle()
            places.release(caller)

        crowd = [asyncio.ensure_future(use("crowd")) for _ in range(10)]
        await settle()
        single = asyncio.ensure_future(use("single"))
        await settle()
        for _ in range(2):
            places.release("first")
        await asyncio.wait_for(asyncio.gather(*crowd, single), 60)
        return order

    assert "single" in asyncio.run(story())[:3]


def test_the_queue_is_bounded_and_one_caller_gets_half_of_it() -> None:
    async def story() -> None:
        places = FairQueue(2, 4, 60, most_each=1)
        await places.acquire("a")
        waiting = [asyncio.ensure_future(places.acquire("a")) for _ in range(2)]
        await settle()
        with pytest.raises(ServerOverloaded):
            await places.acquire("a")
        await places.acquire("b")
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert places.waiting == 0

    asyncio.run(story())


def test_a_place_that_a_caller_released_goes_to_others_first() -> None:
    async def story() -> None:
        places = FairQueue(2, 40, 60, most_each=1)
        for caller in "ab":
            await places.acquire(caller)
        crowd = [asyncio.ensure_future(places.acquire(caller)) for caller in "aabb"]
        await settle()
        single = asyncio.ensure_future(places.acquire("c"))
        await settle()
        places.release("a")
        await settle()
        assert single.done()
        assert not any(each.done() for each in crowd)
        for each in crowd:
            each.cancel()
        await asyncio.gather(*crowd, return_exceptions=True)

    asyncio.run(story())


def test_a_caller_with_nothing_waiting_gets_into_a_full_queue() -> None:
    async def story() -> None:
        places = FairQueue(2, 4, 60, most_each=1)
        for caller in "ab":
            await places.acquire(caller)
        crowd = [asyncio.ensure_future(places.acquire(caller)) for caller in "aabb"]
        await settle()
        single = asyncio.ensure_future(places.acquire("c"))
        await settle()
        assert places.waiting == 4
        assert [each.done() for each in crowd].count(True) == 1, "the newest of one was refused"
        assert not single.done()
        places.release("b")
        await asyncio.wait_for(single, 60)
        for each in crowd:
            each.cancel()
        await asyncio.gather(*crowd, return_exceptions=True)

    asyncio.run(story())


def test_a_caller_is_refused_after_the_queue_time() -> None:
    async def story() -> None:
        places = FairQueue(1, 4, 0.02, most_each=1)
        await places.acquire("a")
        for caller in "ab":
            with pytest.raises(ServerOverloaded):
                await asyncio.wait_for(places.acquire(caller), 60)
        places.release("a")
        await places.acquire("b")

    asyncio.run(story())


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("+-x")), max_size=60))
def test_no_place_is_lost_in_any_order_of_steps(steps: list[tuple[str, str]]) -> None:
    async def story() -> None:
        places = FairQueue(3, 6, 60, most_each=2)
        held: Counter[str] = Counter()
        waiting: list[tuple[str, asyncio.Task[None]]] = []
        for caller, step in steps:
            if step == "+":
                waiting.append((caller, asyncio.ensure_future(places.acquire(caller))))
            elif step == "-" and held[caller]:
                places.release(caller)
                held[caller] -= 1
            elif step == "x" and waiting:
                waiting[0][1].cancel()
            await settle()
            for name, task in [each for each in waiting if each[1].done()]:
                waiting.remove((name, task))
                if not task.cancelled() and task.exception() is None:
                    held[name] += 1
            assert places.inflight == held.total() <= 3
            assert max(held.values(), default=0) <= 2
        for _, task in waiting:
            task.cancel()
        await settle()
        for caller in held.elements():
            places.release(caller)
        assert (places.inflight, places.waiting) == (0, 0)

    asyncio.run(story())


def test_bytes_are_bounded_in_all_and_for_each() -> None:
    held = Share(100, 40)
    held.take(30, "a", 0)
    with pytest.raises(ServerOverloaded):
        held.take(11, "a", 0)
    held.take(60, "b", 0)
    with pytest.raises(ServerOverloaded):
        held.take(11, "c", 0)
    held.release(30, "a")
    held.take(11, "c", 0)
    held.release(60, "b")
    held.release(11, "c")
    assert held.held == 0


def test_an_owners_only_request_may_exceed_its_share_but_not_the_bound() -> None:
    held = Share(100, 40)
    held.take(50, "a", 0)
    held.take(40, "a", 50)
    for before in (0, 90):
        with pytest.raises(ServerOverloaded):
            held.take(11, "a", before)
    with pytest.raises(ServerOverloaded):
        held.take(1, "a")
    assert held.held == 90
