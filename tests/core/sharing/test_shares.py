"""Shared places and bytes: no caller gets all of them, and every caller gets a turn."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ServerOverloaded
from core.sharing.fair_queue import FairQueue
from core.sharing.places import WITHOUT_KEY, Holder, Share, of_organizations


async def settle() -> None:
    """Let all tasks run until they wait."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_caller_that_holds_its_share_waits_while_others_get_places() -> None:
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


async def test_the_queue_is_bounded_and_one_caller_gets_half_of_it() -> None:
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


@pytest.mark.parametrize(
    ("queue_length", "refused"), [(40, 0), (4, 1)], ids=["a queue with room", "a full queue"]
)
async def test_a_released_place_goes_to_a_caller_with_nothing_whatever_others_wait_for(
    queue_length: int, refused: int
) -> None:
    places = FairQueue(2, queue_length, 60, most_each=1)
    for caller in "ab":
        await places.acquire(caller)
    crowd = [asyncio.ensure_future(places.acquire(caller)) for caller in "aabb"]
    await settle()
    single = asyncio.ensure_future(places.acquire("c"))
    await settle()
    assert not single.done()
    places.release("a")
    await settle()
    assert single.done()
    assert [each.done() for each in crowd].count(True) == refused, "the newest of one"
    for each in crowd:
        each.cancel()
    await asyncio.gather(*crowd, return_exceptions=True)


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


@pytest.fixture
def places() -> Share:
    """Eight places, of which one owner may hold a quarter."""
    return Share(8, 2, "tests")


def test_an_owner_holds_its_share_and_others_theirs(places: Share) -> None:
    for owner in ("a", "b"):
        places.take(2, owner)
        with pytest.raises(ServerOverloaded, match="organization"):
            places.take(1, owner)

    assert places.held == 4
    assert (places.refused_share, places.refused_full) == (2, 0)


def test_all_owners_together_hold_at_most_the_bound(places: Share) -> None:
    for owner in "abcd":
        places.take(2, owner)

    with pytest.raises(ServerOverloaded) as refused:
        places.take(1, "e")

    assert "organization" not in refused.value.message
    assert (places.refused_share, places.refused_full) == (0, 1)


def test_released_places_can_be_taken_again(places: Share) -> None:
    for _ in range(100):
        places.take(2, "a")
        places.release(1, "a")
        places.release(1, "a")

    assert places.held == 0
    assert not places._by_owner, "an owner without places is forgotten"


def test_a_refusal_takes_nothing(places: Share) -> None:
    with pytest.raises(ServerOverloaded):
        places.take(3, "a")

    assert places.held == 0
    places.take(2, "a")


def test_callers_without_a_key_have_one_share_together(places: Share) -> None:
    places.take(2)
    with pytest.raises(ServerOverloaded) as refused:
        places.check(1, WITHOUT_KEY)
    assert "organization" not in refused.value.message
    places.check(2, "a")


def test_a_holder_has_one_place_at_a_time(places: Share) -> None:
    other, holder = Share(4, 1), Holder()
    holder.owner = "a"

    holder.hold(places)
    holder.hold(other)
    assert (places.held, other.held) == (0, 1)

    holder.release_place()
    holder.release_place()
    assert (places.held, other.held) == (0, 0)


def test_a_refused_holder_keeps_its_place(places: Share) -> None:
    full, holder = Share(1, 1), Holder()
    full.take(1, "b")
    holder.hold(places)

    with pytest.raises(ServerOverloaded):
        holder.hold(full)

    assert (places.held, full.held) == (1, 1)


def test_a_share_is_at_least_one_place() -> None:
    assert of_organizations(1, "tests").most_each == 1
