"""One quota of several workers, and what becomes of it while Redis is away."""

from __future__ import annotations

import asyncio
import multiprocessing
import socket
import time
import uuid
from collections.abc import AsyncIterator
from concurrent.futures import ProcessPoolExecutor

import django
import pytest

from speech.errors import QuotaExceeded
from svc_project.lib.ratelimits_redis import RedisLimiter
from tests.redis_store import PATIENT, REDIS_URL, RelayToRedis, with_redis
from tests.speech.quota_service import Service, caller

TODAY = ("org-1", "2026-11-20")


@pytest.fixture
def prefix() -> str:
    return f"svc-test:{uuid.uuid4().hex}:"


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture
async def relay() -> AsyncIterator[RelayToRedis]:
    relay = RelayToRedis()
    await relay.start()
    yield relay
    await relay.stop()


async def becomes(limiter: RedisLimiter, service: Service, *, is_shared: bool) -> None:
    """Open sessions, which take no characters, until the store is in use or not."""
    deadline = time.monotonic() + 10
    while limiter.is_shared != is_shared:
        await service.quota.open_session(caller(requests=10**9))
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


def _speak_as_much_as_possible(url: str, prefix: str) -> tuple[int, bool]:
    """One worker process: twenty tasks that give back every third sentence, until all refuse."""

    async def work() -> tuple[int, bool]:
        limiter = RedisLimiter(url, prefix=prefix, timeout_seconds=PATIENT)
        service = Service(limiter)
        service.ledger.spoken[TODAY] = 1000
        kept = 0

        async def speak() -> None:
            nonlocal kept
            for number in range(100_000):
                try:
                    reserved = await service.quota.charge(caller(6000), 7)
                except QuotaExceeded:
                    return
                if number % 3:
                    kept += 7
                else:
                    reserved.give_back()

        await asyncio.gather(*[speak() for _ in range(20)])
        await limiter.close()
        return kept, limiter.is_shared

    return asyncio.run(work())


@with_redis
def test_several_processes_never_speak_more_than_the_quota(prefix: str) -> None:
    with ProcessPoolExecutor(
        3, multiprocessing.get_context("spawn"), initializer=django.setup
    ) as pool:
        runs = [pool.submit(_speak_as_much_as_possible, REDIS_URL, prefix) for _ in range(3)]
        results = [run.result(timeout=60) for run in runs]
    assert all(is_shared for _, is_shared in results)
    kept = sum(kept for kept, _ in results)
    assert kept <= 5000

    async def left() -> int:
        limiter = RedisLimiter(REDIS_URL, prefix=prefix, timeout_seconds=PATIENT)
        left = await Service(limiter).left(caller(6000))
        await limiter.close()
        return left

    assert asyncio.run(left()) == 5000 - kept


async def test_while_redis_is_away_each_worker_keeps_to_its_share_of_what_is_left(
    closed_port: int,
) -> None:
    limiter = RedisLimiter(f"redis://127.0.0.1:{closed_port}", workers=4)
    service = Service(limiter)
    service.ledger.spoken[TODAY] = 200
    share = (1000 - 200) // 4
    for _ in range(share // 10):
        await service.quota.reserve(caller(1000), 10)
    await service.refused(caller(1000), 10)
    await limiter.close()


async def test_the_outage_alone_refuses_no_text_that_fits_what_is_left(closed_port: int) -> None:
    limiter = RedisLimiter(f"redis://127.0.0.1:{closed_port}", workers=4)
    service = Service(limiter)
    service.ledger.spoken[TODAY] = 200
    reserved = await service.quota.reserve(caller(1000), 800)
    await service.refused(caller(1000), 1)
    reserved.give_back()
    await service.quota.reserve(caller(1000), 799)
    await limiter.close()


@with_redis
async def test_what_was_spoken_during_an_outage_counts_after_it(
    prefix: str, relay: RelayToRedis
) -> None:
    limiter = RedisLimiter(relay.url, prefix=prefix, timeout_seconds=1.0, pause_seconds=0.05)
    service = Service(limiter)
    principal = caller(1000)
    for outage in range(1, 3):
        await service.quota.reserve(principal, 100)
        service.ledger.spoken[TODAY] = 400 * outage - 300
        await relay.stop()
        await service.quota.reserve(principal, 200)
        await service.quota.charge(principal, 100)
        assert await service.left(principal) == 1000 - 400 * outage
        service.ledger.spoken[TODAY] = 400 * outage
        await relay.start()
        await becomes(limiter, service, is_shared=True)
        assert await service.left(principal) == 1000 - 400 * outage
    await limiter.close()


@with_redis
async def test_what_is_given_back_during_an_outage_is_there_after_it(
    prefix: str, relay: RelayToRedis
) -> None:
    limiter = RedisLimiter(relay.url, prefix=prefix, timeout_seconds=1.0, pause_seconds=0.05)
    service = Service(limiter)
    first, second = [await service.quota.reserve(caller(1000), 300) for _ in range(2)]
    await relay.stop()
    # This one is the call that finds the store gone.
    first.give_back()
    await becomes(limiter, service, is_shared=False)
    second.give_back()
    await relay.start()
    await becomes(limiter, service, is_shared=True)
    assert await service.left(caller(1000)) == 1000
    await limiter.close()


@with_redis
async def test_a_request_whose_answer_was_lost_counts_once(
    prefix: str, relay: RelayToRedis
) -> None:
    limiter = RedisLimiter(relay.url, prefix=prefix, timeout_seconds=0.3, pause_seconds=0.05)
    service = Service(limiter)
    principal = caller(1000)
    await service.quota.reserve(principal, 100)
    relay.open.clear()
    await service.quota.reserve(principal, 250)
    assert not limiter.is_shared
    service.ledger.spoken[TODAY] = 350
    relay.open.set()
    await becomes(limiter, service, is_shared=True)
    assert await service.left(principal) == 650
    await limiter.close()
