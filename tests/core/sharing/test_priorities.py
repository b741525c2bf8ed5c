"""The priority classes of ``FairQueue``: which class gets a slot, which waits, which loses its place."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ServerOverloaded
from core.sharing.fair_queue import RECENT_SECONDS, TURN, FairQueue, acquire_first
from core.sharing.priority import Priority

CLASSES = {each.name[0]: each for each in Priority}
"""By the first letters of their names."""
HOLDER = "z"
"""The organization that took the slots at the beginning."""


class Queue:
    """Slots with requests such as ``Ba1``: class, organization and number."""

    def __init__(self, limit: int = 1, queue_length: int = 100, reserved: float = 0.0) -> None:
        self.slots = FairQueue(limit, queue_length, 60, reserved)
        self.served: list[str] = []
        """Those that got a slot, in this order."""
        self.holding: list[str] = []
        self.waiting: dict[str, asyncio.Task[None]] = {}
        self.refused: list[str] = []

    @classmethod
    async def full(cls, limit: int = 1, queue_length: int = 100, reserved: float = 0.0) -> Queue:
        """A queue whose slots are taken."""
        queue = cls(limit, queue_length, reserved)
        for number in range(limit):
            await queue.join(f"S{HOLDER}{number}")
        queue.served.clear()
        return queue

    async def join(self, *names: str) -> None:
        for name in names:
            self.waiting[name] = asyncio.ensure_future(self._wait(name))
            await self.settle()

    async def serve(self, count: int = 1) -> list[str]:
        """Release ``count`` slots, the ones that were taken first."""
        for _ in range(count):
            name = self.holding.pop(0)
            self.slots.release(name[1], CLASSES[name[0]])
            await self.settle()
        return self.served

    async def cancel(self, name: str) -> None:
        self.waiting[name].cancel()
        await self.settle()

    async def settle(self) -> None:
        for _ in range(4):
            await asyncio.sleep(0)
        self.waiting = {name: task for name, task in self.waiting.items() if not task.done()}

    async def end(self) -> None:
        """Cancel what waits and release what is held: then every slot is free."""
        for name in list(self.waiting):
            await self.cancel(name)
        await self.serve(len(self.holding))
        assert (self.slots.inflight, self.slots.waiting) == (0, 0)
        assert self.slots.waiting_by_class == (0, 0, 0)

    async def _wait(self, name: str) -> None:
        try:
            await self.slots.acquire(name[1], CLASSES[name[0]])
        except ServerOverloaded:
            self.refused.append(name)
            return
        self.served.append(name)
        self.holding.append(name)


def some(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


MANY = some("Ia", 40)
ORDERS: dict[str, tuple[list[str], list[str]]] = {
    "the highest class first": (["Ba1", "Sa1", "Ia1"], ["Ia1", "Sa1", "Ba1"]),
    "first come first served inside a class": (["Ia1", "Ba1", "Ia2"], ["Ia1", "Ia2", "Ba1"]),
    "organizations take turns inside a class": (
        ["Ba1", "Ia1", "Ia2", "Ia3", "Ib1", "Bb1", "Ba2"],
        ["Ia1", "Ib1", "Ia2", "Ia3", "Ba1", "Bb1", "Ba2"],
    ),
    "the turn of an organization is its own in each class": (
        ["Ia1", "Ib1", "Sa1", "Sb1"],
        ["Ia1", "Ib1", "Sa1", "Sb1"],
    ),
    "batch gets the slot that it is owed": (
        ["Ba1", "Ba2", *MANY],
        [*MANY[:15], "Ba1", *MANY[15:30], "Ba2", *MANY[30:]],
    ),
    "so does standard": (["Sb1", *MANY], [*MANY[:15], "Sb1", *MANY[15:]]),
    "two classes that are owed one get theirs one after the other": (
        ["Bb1", "Sb1", *MANY],
        [*MANY[:15], "Sb1", "Bb1", *MANY[15:]],
    ),
    "batch is owed one by standard too": (
        ["Bb1", *some("Sa", 20)],
        [*some("Sa", 20)[:15], "Bb1", *some("Sa", 20)[15:]],
    ),
}


@pytest.mark.parametrize("case", ORDERS)
async def test_free_slots_go_to_the_highest_class_but_one_of_sixteen(case: str) -> None:
    joins, expected = ORDERS[case]
    queue = await Queue.full()
    await queue.join(*joins)
    assert await queue.serve(len(joins)) == expected
    await queue.end()


async def test_what_a_class_is_owed_is_counted_on_when_its_requests_leave() -> None:
    queue = await Queue.full()
    await queue.join("Bb1", *MANY)
    await queue.serve(10)
    await queue.cancel("Bb1")
    await queue.serve(3)
    await queue.join("Bb2")
    assert (await queue.serve(6))[-1] == "Bb2"
    await queue.end()


async def test_a_running_answer_is_never_cut_for_a_higher_class() -> None:
    queue = await Queue.full(2)
    await queue.join("Ba1")
    await queue.serve()
    await queue.join("Ia1", "Ib1")
    assert (queue.slots.inflight, queue.served) == (2, ["Ba1"])
    await queue.end()


DISPLACED: dict[str, tuple[list[str], str, list[str]]] = {
    "the newest of the lowest class": (["Ba1", "Ba2", "Sa1", "Sb1"], "Ib1", ["Ba2"]),
    "standard displaces batch": (["Ba1", "Ba2", "Ia1", "Ib1"], "Sb1", ["Ba2"]),
    "of the organization that has most there": (["Ba1", "Ba2", "Bb1", "Ib1"], "Ic1", ["Ba2"]),
    "of equals the newest": (["Ba1", "Bb1", "Bc1", "Ib1"], "Id1", ["Bc1"]),
    "of the caller's own organization too": (["Ba1", "Ba2", "Sa1", "Sb1"], "Ia1", ["Ba2"]),
    "a class keeps its only one": (["Ba1", "Sa1", "Sb1", "Sb2"], "Ic1", ["Sb2"]),
    "no class displaces a higher one": (["Ia1", "Ia2", "Ia3", "Ia4"], "Sb1", ["Sb1"]),
    "nor is it displaced for the balance of organizations": (
        ["Sa1", "Sa2", "Sa3", "Ba1"],
        "Bb1",
        ["Bb1"],
    ),
    "in a class the organization with two more": (["Ia1", "Ia2", "Sa1", "Ba1"], "Ib1", ["Ia2"]),
    "and none with one more": (["Ia1", "Ia2", "Ib1", "Sa1"], "Ib2", ["Ib2"]),
}


@pytest.mark.parametrize("case", DISPLACED)
async def test_a_full_queue_makes_room_for_a_higher_class(case: str) -> None:
    joins, last, refused = DISPLACED[case]
    queue = await Queue.full(queue_length=4)
    await queue.join(*joins)
    assert not queue.refused
    await queue.join(last)
    assert queue.refused == refused
    assert sorted(await queue.serve(4)) == sorted({*joins, last} - {*refused})
    await queue.end()


async def test_in_a_queue_with_less_than_a_place_for_each_class_the_highest_has_all() -> None:
    queue = await Queue.full(queue_length=2)
    await queue.join("Ba1", "Sa1", "Ia1", "Ib1")
    assert queue.refused == ["Ba1", "Sa1"]
    await queue.end()


async def test_a_displaced_request_goes_on_waiting_in_other_queues() -> None:
    first, second = await Queue.full(queue_length=1), await Queue.full(queue_length=1)
    batch = asyncio.ensure_future(
        acquire_first((first.slots, second.slots), "a", Priority.BATCH),
    )
    await first.settle()
    await first.join("Ib1")
    assert (first.slots.waiting_by_class, second.slots.waiting_by_class) == ((1, 0, 0), (0, 0, 1))
    await second.serve()
    assert await batch is second.slots
    second.slots.release("a", Priority.BATCH)
    await first.end()
    await second.end()


async def test_batch_leaves_the_reserve_to_interactive(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = Queue(8, reserved=0.25)
    await queue.join(*some("Ba", 8))
    assert queue.slots.inflight == 8, "all slots, while no interactive request came"
    await queue.serve(8)

    await queue.join("Ia1", *some("Ba", 8))
    assert (queue.slots.inflight, queue.slots.waiting_by_class) == (6, (0, 0, 3))
    await queue.join("Sa1", "Ia2")
    assert (queue.slots.inflight, queue.served[-2:]) == (8, ["Sa1", "Ia2"])
    await queue.serve(2)
    assert queue.slots.waiting_by_class == (0, 0, 3), "the slots that got free are the reserve"

    later = time.monotonic() + RECENT_SECONDS
    monkeypatch.setattr("core.sharing.fair_queue.time.monotonic", lambda: later)
    await queue.join("Sa2")
    assert queue.slots.inflight == 8, "after a while batch has them all again"
    await queue.end()


async def test_batch_that_holds_less_than_the_reserve_gets_what_it_is_owed_of_it() -> None:
    queue = Queue(4, reserved=0.25)
    await queue.join("Ia1", "Ia2", "Ia3", "Ba1", "Ba2")
    for number in range(3 * TURN):
        await queue.join(f"Sa{number}")
        # The answer of batch is a long one.
        queue.holding.sort(key=lambda name: name == "Ba1")
        await queue.serve()
    assert queue.served.index("Ba1") == 3 + TURN - 1
    assert "Ba2" not in queue.served, "batch holds the reserve already"
    queue.holding.sort(key=lambda name: name != "Ba1")
    await queue.serve()
    assert queue.served[-1] == "Ba2", "it was owed a slot all the time"
    await queue.end()


async def test_a_limit_that_goes_to_nothing_and_back_keeps_the_order_of_classes() -> None:
    queue = await Queue.full(4)
    queue.slots.limit = 0
    await queue.join("Ba1", "Sa1", "Ia1", "Ia2", "Bb1")
    await queue.serve(4)
    assert (queue.slots.inflight, queue.served) == (0, [])
    for limit, expected in ((1, ["Ia1"]), (0, ["Ia1"]), (2, ["Ia1", "Ia2"])):
        queue.slots.limit = limit
        await queue.settle()
        assert queue.served == expected
    queue.slots.limit = 8
    await queue.settle()
    assert queue.served == ["Ia1", "Ia2", "Sa1", "Ba1", "Bb1"]
    await queue.end()


class Promises:
    """Follows the requests of a queue without a reserve, and checks each slot that is handed out."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self.given: Counter[str] = Counter()
        """How many slots each class got."""
        self._waiting: list[str] = []
        """In the order in which they came."""
        self._passed: Counter[str] = Counter()
        """How many slots went past each class while it waited."""
        self._since: dict[str, set[str]] = {}
        """The organizations that were served since one's turn in a class began."""

    def check(self, joined: str | None) -> None:
        """Check what happened since the last call, in which ``joined`` came."""
        queue = self._queue
        if joined is not None:
            self._waiting.append(joined)
        for name in queue.served:
            self._served(name)
        self.given.update(name[0] for name in queue.served)
        queue.served.clear()
        self._waiting = [name for name in self._waiting if name in queue.waiting]
        turns = {name[:2] for name in self._waiting}
        self._since = {turn: self._since.get(turn, set()) for turn in turns}

        slots = queue.slots
        assert slots.inflight == len(queue.holding)
        assert slots.waiting == len(queue.waiting) == sum(slots.waiting_by_class)
        by_class = Counter(name[0] for name in queue.waiting)
        assert slots.waiting_by_class == tuple(by_class[letter] for letter in CLASSES)
        assert slots.waiting <= slots.queue_length
        assert not slots.waiting or slots.inflight >= slots.limit, "no slot is free"

    def _served(self, name: str) -> None:
        own = [each for each in self._waiting if each[:2] == name[:2]]
        assert own[0] == name, "first come first served"
        self._waiting.remove(name)
        others = {each[0] for each in self._waiting} - {name[0]}
        higher = [each for each in others if CLASSES[each] < CLASSES[name[0]]]
        assert not higher or self._passed[name[0]] >= TURN - 1
        self._passed[name[0]] = 0
        self._passed.update(others)
        assert max(self._passed.values()) <= TURN, "no class waits for ever"
        for turn, served in self._since.items():
            if turn[0] == name[0] and turn != name[:2]:
                assert name[1] not in served, "organizations take turns"
                served.add(name[1])
        if any(each[:2] == name[:2] for each in self._waiting):
            self._since[name[:2]] = set()
        else:
            self._since.pop(name[:2], None)


STEPS = st.one_of(
    st.tuples(st.just("join"), st.sampled_from("ISB"), st.sampled_from("abc")),
    st.tuples(st.just("join"), st.just("I"), st.just("a")),
    st.tuples(st.just("serve"), st.just(""), st.just("")),
    st.tuples(st.just("cancel"), st.integers(0, 20), st.just("")),
    st.tuples(st.just("limit"), st.integers(0, 4), st.just("")),
)


@given(st.lists(STEPS, max_size=150), st.sampled_from([2, 8, 30]))
def test_in_any_order_of_steps_no_slot_is_lost_and_every_class_has_its_share(
    steps: list[tuple[str, str | int, str]], queue_length: int
) -> None:
    async def story() -> None:
        queue = Queue(2, queue_length)
        promises = Promises(queue)
        for number, (step, what, organization) in enumerate(steps):
            joined = None
            if step == "join":
                joined = f"{what}{organization}{number}"
                await queue.join(joined)
            elif step == "serve" and queue.holding:
                await queue.serve()
            elif step == "cancel" and isinstance(what, int) and what < len(queue.waiting):
                await queue.cancel(list(queue.waiting)[what])
            elif step == "limit" and isinstance(what, int):
                queue.slots.limit = what
                await queue.settle()
            promises.check(joined)
        await queue.end()

    asyncio.run(story())


@pytest.mark.parametrize("seed", range(3))
async def test_under_a_lasting_load_every_class_has_its_share(seed: int) -> None:
    chance = random.Random(seed)
    queue = Queue(3, 12)
    promises = Promises(queue)
    for number in range(3000):
        letter = "I" if chance.random() < 0.8 else chance.choice("SB")
        name = f"{letter}{chance.choice('abcd')}{number}"
        await queue.join(name)
        promises.check(name)
        if chance.random() < 0.5 and queue.holding:
            await queue.serve()
            promises.check(None)
    given = promises.given
    assert min(given["S"], given["B"]) > given.total() // (2 * TURN), given
    assert queue.refused
    await queue.end()


@pytest.mark.parametrize("limits", [[4], [*range(7)]], ids=["one limit", "a limit that moves"])
@pytest.mark.parametrize("reserved", [0.0, 0.25])
async def test_no_slot_is_lost_or_invented_whatever_is_cancelled(
    reserved: float, limits: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(7)
    slots = FairQueue(4, 20, 60, reserved)
    outcomes: Counter[str] = Counter()
    most = 0

    async def ask(organization_id: str, priority: Priority) -> None:
        try:
            await slots.acquire(organization_id, priority)
        except ServerOverloaded:
            outcomes["refused"] += 1
            return
        nonlocal most
        most = max(most, slots.inflight)
        try:
            for _ in range(chance.randrange(4)):
                await asyncio.sleep(0)
            outcomes[priority.label] += 1
        finally:
            slots.release(organization_id, priority)

    tasks = []
    for _ in range(3000):
        tasks.append(asyncio.create_task(ask(chance.choice("abc"), chance.choice([*Priority]))))
        if chance.random() < 0.3:
            chance.choice(tasks).cancel()
        if chance.random() < 0.1:
            slots.limit = chance.choice(limits)
        if chance.random() < 0.5:
            await asyncio.sleep(0)
    later = time.monotonic() + RECENT_SECONDS
    monkeypatch.setattr("core.sharing.fair_queue.time.monotonic", lambda: later)
    slots.limit = 4
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (slots.inflight, slots.waiting, slots.waiting_by_class) == (0, 0, (0, 0, 0))
    assert most == max(limits)
    assert len(outcomes) == 4, outcomes
