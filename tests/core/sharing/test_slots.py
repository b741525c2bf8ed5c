"""The slots of a server, divided among workers through the real Redis."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import pytest
import redis.asyncio

from core.asgi.drain import Drain
from core.errors import ServerOverloaded
from core.sharing import slots
from core.sharing.fair_queue import FairQueue
from core.sharing.slots import SharedSlots
from tests.support.servers.redis_store import PATIENT, REDIS_URL, url_through
from tests.support.servers.tcp_proxy import Cut, End, FaultProxy, Way
from tests.support.until import until_async

pytestmark = pytest.mark.redis
CLOSED: Final = "redis://127.0.0.1:1"
SERVER: Final = "gpu-1"


class Worker:
    """One worker's slots of the server."""

    def __init__(self, url: str, prefix: str, most: int, name: str = "", workers: int = 1) -> None:
        self.queue = FairQueue(most, 512, 60.0)
        self.slots = SharedSlots(
            url, workers=workers, name=name, prefix=prefix, timeout_seconds=PATIENT
        )
        self.slots.divide(SERVER, self.queue, most)
        self.slots.start()

    async def take(self, count: int) -> None:
        """Take ``count`` slots, each as soon as this worker has it."""
        async with asyncio.timeout(60):
            for _ in range(count):
                await self.queue.acquire("a")

    def free(self, count: int) -> None:
        for _ in range(count):
            self.queue.release("a")

    def fall_silent(self) -> None:
        assert self.slots._task is not None
        self.slots._task.cancel()


class Load:
    """Callers of each worker that use a slot again and again, and give up after their ``patience``."""

    def __init__(self, workers: list[Worker], patience: tuple[float, ...] = (60.0,)) -> None:
        self.chance = random.Random(11)
        self.patience = patience
        self.running = self.peak = 0
        self.served = [0] * len(workers)
        self.tasks = [
            asyncio.ensure_future(self._use(number, worker))
            for number, worker in enumerate(workers)
            for _ in range(4)
        ]

    async def _use(self, number: int, worker: Worker) -> None:
        while True:
            organization = self.chance.choice("ab")
            try:
                # wait_for of Python 3.11 swallows a cancellation that comes with the slot.
                async with asyncio.timeout(self.chance.choice(self.patience)):
                    await worker.queue.acquire(organization)
            except TimeoutError:
                continue
            self.running += 1
            self.peak = max(self.peak, self.running)
            self.served[number] += 1
            await asyncio.sleep(self.chance.random() * 0.02)
            self.running -= 1
            worker.queue.release(organization)

    async def end(self) -> None:
        for each in self.tasks:
            each.cancel()
        await asyncio.wait(self.tasks)


@pytest.fixture(autouse=True)
def settles_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "SETTLING_SECONDS", 0.0)


@asynccontextmanager
async def working(
    count: int, prefix: str, most: int, url: str = REDIS_URL
) -> AsyncIterator[list[Worker]]:
    workers = [Worker(url, prefix, most, workers=count) for _ in range(count)]
    try:
        yield workers
    finally:
        for each in workers:
            await each.slots.close()


async def test_without_a_store_one_process_has_all_slots() -> None:
    queue = FairQueue(1, 8, 1.0)
    SharedSlots("").divide(SERVER, queue, 64)
    assert queue.limit == 64


async def test_idle_workers_hold_half_of_their_equal_share_for_an_outage(prefix: str) -> None:
    async with working(4, prefix, 64) as workers:
        await until_async(lambda: all(each.queue.limit == 8 for each in workers))


async def test_a_busy_worker_borrows_all_but_one_slot_of_each_idle_one(prefix: str) -> None:
    async with working(4, prefix, 16) as workers:
        await workers[0].take(13)
        waits = asyncio.ensure_future(workers[0].take(1))
        await until_async(lambda: [each.queue.limit for each in workers] == [13, 1, 1, 1])
        assert not waits.done()
        await workers[3].take(1)
        workers[0].free(1)
        await waits


async def test_a_single_slot_goes_to_the_worker_that_needs_it(prefix: str) -> None:
    async with working(3, prefix, 1) as workers:
        for each in workers:
            await each.take(1)
            each.free(1)


@pytest.mark.parametrize("most", [1, 2])
async def test_with_fewer_slots_than_workers_each_busy_one_has_its_turn(
    prefix: str, most: int
) -> None:
    async with working(3, prefix, most) as workers:
        load = Load(workers)
        await until_async(lambda: min(load.served) >= 8)
        await load.end()
    assert load.peak == most


async def test_without_a_queue_a_refused_request_is_what_a_worker_needs_a_slot_for(
    prefix: str,
) -> None:
    async def is_refused(worker: Worker) -> bool:
        try:
            await worker.queue.acquire("a")
        except ServerOverloaded:
            await asyncio.sleep(0.02)
            return True
        worker.queue.release("a")
        return False

    async with working(2, prefix, 1) as workers, asyncio.timeout(30):
        for each in workers:
            each.queue.queue_length = 0
        await until_async(lambda: sorted(each.queue.limit for each in workers) == [0, 1])
        for each in (*workers, *workers):
            while await is_refused(each):
                pass


async def test_a_worker_above_its_equal_share_makes_room_as_its_requests_end(prefix: str) -> None:
    async with working(2, prefix, 8) as [first, second]:
        await first.take(7)
        crowd = [asyncio.ensure_future(first.take(1)) for _ in range(8)]
        starved = [asyncio.ensure_future(second.take(1)) for _ in range(4)]
        await until_async(lambda: first.queue.limit == 4)
        for _ in range(3):
            first.free(1)
            await asyncio.sleep(0)
        await asyncio.gather(*starved)
        assert (first.queue.inflight, second.queue.inflight) == (4, 4)
        for each in crowd:
            each.cancel()


async def test_fewer_slots_than_are_held_are_reached_as_requests_end(prefix: str) -> None:
    async with working(2, prefix, 16) as [first, second]:
        await asyncio.gather(first.take(8), second.take(7))
        for each in (first, second):
            each.slots.divide(SERVER, each.queue, 4)
        for each in (first, second):
            each.free(each.queue.inflight)
        await asyncio.gather(first.take(2), second.take(1))
        assert first.queue.limit + second.queue.limit <= 4


def hand_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on the workers serve only what comes on the connections that they have."""
    ending = Drain()
    ending.hand_over(60.0)
    monkeypatch.setattr(slots, "drain", ending)


async def test_a_worker_that_drains_keeps_one_slot_more_than_it_needs_while_no_other_waits(
    prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with working(2, prefix, 16) as [leaving, other]:
        await leaving.take(3)
        hand_over(monkeypatch)
        await until_async(lambda: leaving.queue.limit == 4)
        leaving.free(3)
        await until_async(lambda: leaving.queue.limit == 1)
        await other.take(16)
        assert leaving.queue.limit == 0


async def test_a_worker_that_drains_while_the_store_is_away_keeps_its_slots(
    prefix: str, to_redis: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every connection that it has may bring one more request."""
    monkeypatch.setattr(slots, "_AWAY_SECONDS", 0.05)
    async with working(1, prefix, 16, url_through(to_redis)) as [worker]:
        await worker.take(3)
        await until_async(lambda: worker.slots._divided[SERVER].granted)
        to_redis.refuse()
        await until_async(lambda: worker.slots._outages._is_failing)
        held = worker.queue.limit
        hand_over(monkeypatch)
        for _ in range(3):
            await worker.slots._renew(worker.slots._store)  # type: ignore[arg-type]
        assert worker.queue.limit == held > 3


async def test_the_successor_of_a_crashed_worker_has_its_slots_at_once(prefix: str) -> None:
    crashed = Worker(REDIS_URL, prefix, 8, name="g.0")
    await crashed.take(8)
    crashed.fall_silent()
    successor = Worker(REDIS_URL, prefix, 8, name="g.0")
    await successor.take(8)
    await successor.slots.close()


async def test_the_slots_of_a_silent_worker_are_free_after_a_while(
    prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slots, "SILENT_SECONDS", 1.0)
    silent = Worker(REDIS_URL, prefix, 8)
    await silent.take(8)
    silent.fall_silent()
    async with working(1, prefix, 8) as [other]:
        await other.take(8)


async def test_a_late_message_of_a_lost_connection_changes_nothing(prefix: str) -> None:
    async with working(1, prefix, 8) as [worker]:
        await worker.take(8)
        store = worker.slots._store
        assert store is not None
        async with redis.asyncio.from_url(REDIS_URL) as client:
            await client.evalsha(
                store.digest, 1, prefix + SERVER, worker.slots._name, 1, 1, 0, 0, 0, 8, 1, 15000, 0
            )
            async with working(1, prefix, 8) as [other]:
                await until_async(lambda: client.hget(prefix + SERVER, other.slots._name))
                assert other.queue.limit == 0


async def test_each_worker_keeps_its_slots_while_the_store_is_away(
    prefix: str, to_redis: FaultProxy
) -> None:
    async with working(2, prefix, 8, url_through(to_redis)) as [first, second]:
        await first.take(6)
        await until_async(lambda: second.queue.limit)
        to_redis.refuse()
        held = first.queue.limit, second.queue.limit
        waits = asyncio.ensure_future(first.take(3))
        await until_async(lambda: first.slots._outages._is_failing)
        assert first.queue.limit <= held[0]
        assert 1 <= second.queue.limit <= held[1]
        assert sum(held) <= 8
        to_redis.heal()
        first.free(3)
        await waits


async def test_workers_that_lent_their_only_slot_get_it_back_in_a_long_outage(
    prefix: str, to_redis: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slots, "_AWAY_SECONDS", 0.05)
    async with working(2, prefix, 2, url_through(to_redis)) as [first, second]:
        await first.take(2)
        await until_async(lambda: second.slots._divided[SERVER].answered)
        to_redis.refuse()
        await until_async(lambda: (first.queue.limit, second.queue.limit) == (1, 0))
        monkeypatch.setattr(slots, "OUTAGE_SECONDS", 0.0)
        await second.take(1)
        first.free(2)
        second.free(1)
        to_redis.heal()
        await first.take(2)


async def test_a_store_that_was_never_there_leaves_equal_shares() -> None:
    found = []
    for number in range(3):
        queue = FairQueue(1, 8, 1.0)
        SharedSlots(CLOSED, workers=3, number=number).divide(SERVER, queue, 8)
        found.append(queue.limit)
    assert found == [3, 3, 2]


async def test_a_store_that_lost_its_memory_grants_nothing_before_all_have_told(
    prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with working(2, prefix, 8) as [first, second]:
        await first.take(6)
        await second.take(1)
        monkeypatch.setattr(slots, "SETTLING_SECONDS", 3600.0)
        second.fall_silent()
        async with redis.asyncio.from_url(REDIS_URL) as client:
            await client.delete(prefix + SERVER)
            waits = asyncio.ensure_future(first.take(3))
            await until_async(lambda: client.hget(prefix + SERVER, first.slots._name))
            for _ in range(3):
                await first.slots._renew(first.slots._store)  # type: ignore[arg-type]
        assert first.queue.limit <= 7
        assert not waits.done()
        waits.cancel()


async def test_after_a_long_silence_of_all_nobody_takes_what_another_still_holds(
    prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the store was away, or its clock jumped: the others have not ended."""
    async with working(2, prefix, 8) as [first, second]:
        await first.take(4)
        await second.take(4)
        crowds = [asyncio.ensure_future(each.take(4)) for each in (first, second)]
        async with redis.asyncio.from_url(REDIS_URL, decode_responses=True) as client:
            divided = [each.slots._divided[SERVER] for each in (first, second)]
            await until_async(lambda: all(each.granted and each.told == 4 for each in divided))
            monkeypatch.setattr(slots, "SETTLING_SECONDS", 10.0)
            for each in (first, second):
                each.fall_silent()
            for name, text in (await client.hgetall(prefix + SERVER)).items():
                told = str(text).split()
                at = 2 if name else 0
                told[at] = str(int(told[at]) - 20_000)
                await client.hset(prefix + SERVER, name, " ".join(told))
            for _ in range(2):
                await first.slots._renew(first.slots._store)  # type: ignore[arg-type]
        assert first.queue.limit == 4
        for crowd in crowds:
            crowd.cancel()


async def test_workers_never_hold_more_than_there_are_whatever_the_store_does(
    prefix: str, to_redis: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers that use the store have told it what they hold within the time that it settles."""
    monkeypatch.setattr(slots, "SETTLING_SECONDS", 3.0)
    monkeypatch.setattr(slots, "_AWAY_SECONDS", 0.2)
    chance = random.Random(11)
    most = 10

    async def fault() -> None:
        async with redis.asyncio.from_url(REDIS_URL) as client:
            for _ in range(6):
                to_redis.cut(Cut(chance.choice(list(Way)), chance.randrange(2000), End.RST))
                await asyncio.sleep(0.2)
                await client.delete(prefix + SERVER)
                await asyncio.sleep(0.5)

    async with working(4, prefix, most, url_through(to_redis)) as workers:
        load = Load(workers, (0.05, 9.0))
        await fault()
        before = list(load.served)
        await until_async(
            lambda: all(now > then for now, then in zip(load.served, before, strict=True))
        )
        await load.end()
    assert 0 < load.peak <= most
