"""The quota of several workers, also while Redis is unreachable."""

from __future__ import annotations

import asyncio
import multiprocessing
import socket
from collections.abc import AsyncIterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager

import django
import pytest

from core.limits.redis import RedisLimiter
from speech.errors import QuotaExceeded
from tests.support.builders.quota_service import Service, caller
from tests.support.servers.redis_store import PATIENT, REDIS_URL, proxy_to_redis, url_through
from tests.support.servers.tcp_proxy import FaultProxy, Way
from tests.support.until import until_async

TODAY = ("org-1", "2026-11-20")


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@asynccontextmanager
async def behind_a_proxy(
    prefix: str, timeout_seconds: float = 30.0
) -> AsyncIterator[tuple[FaultProxy, RedisLimiter, Service]]:
    """A quota on Redis, and the proxy in front of it."""
    with proxy_to_redis() as proxy:
        limiter = RedisLimiter(
            url_through(proxy), prefix=prefix, timeout_seconds=timeout_seconds, pause_seconds=0.05
        )
        yield proxy, limiter, Service(limiter)
        await limiter.close()


async def becomes(limiter: RedisLimiter, service: Service, *, is_shared: bool) -> None:
    """Open sessions, which reserve no characters, until the store is used or not used."""

    async def has_become() -> bool:
        if limiter.is_shared != is_shared:
            await service.quota.open_session(caller(requests=10**9))
        return limiter.is_shared == is_shared

    await until_async(has_become)


def _speak_as_much_as_possible(url: str, prefix: str) -> tuple[int, bool]:
    """A worker process with twenty tasks that refund every third sentence, until all are refused."""

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
                    reserved.refund_characters()

        await asyncio.gather(*[speak() for _ in range(20)])
        await limiter.close()
        return kept, limiter.is_shared

    return asyncio.run(work())


@pytest.mark.redis
def test_several_processes_never_exceed_the_quota(prefix: str) -> None:
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


async def test_without_redis_each_worker_keeps_to_its_share_and_refuses_no_text_that_fits_the_rest(
    closed_port: int,
) -> None:
    for texts in ([10] * ((1000 - 200) // 4 // 10), [800]):
        limiter = RedisLimiter(f"redis://127.0.0.1:{closed_port}", workers=4)
        service = Service(limiter)
        service.ledger.spoken[TODAY] = 200
        for text in texts:
            reserved = await service.quota.reserve(caller(1000), text)
        await service.refused(caller(1000), 10)
        reserved.refund_characters()
        await service.quota.reserve(caller(1000), texts[0])
        await limiter.close()


@pytest.mark.redis
async def test_characters_spoken_during_an_outage_count_after_it(prefix: str) -> None:
    principal = caller(1000)
    async with behind_a_proxy(prefix) as (to_redis, limiter, service):
        for outage in range(1, 3):
            await service.quota.reserve(principal, 100)
            service.ledger.spoken[TODAY] = 400 * outage - 300
            to_redis.refuse()
            await service.quota.reserve(principal, 200)
            await service.quota.charge(principal, 100)
            assert await service.left(principal) == 1000 - 400 * outage
            service.ledger.spoken[TODAY] = 400 * outage
            to_redis.heal()
            await becomes(limiter, service, is_shared=True)
            assert await service.left(principal) == 1000 - 400 * outage


@pytest.mark.redis
async def test_characters_refunded_during_an_outage_can_be_used_after_it(prefix: str) -> None:
    async with behind_a_proxy(prefix) as (to_redis, limiter, service):
        first, second = [await service.quota.reserve(caller(1000), 300) for _ in range(2)]
        to_redis.refuse()
        # This call is the first that cannot reach the store.
        first.refund_characters()
        await becomes(limiter, service, is_shared=False)
        second.refund_characters()
        to_redis.heal()
        await becomes(limiter, service, is_shared=True)
        assert await service.left(caller(1000)) == 1000


@pytest.mark.redis
async def test_a_reservation_whose_reply_was_lost_counts_once(prefix: str) -> None:
    principal = caller(1000)
    async with behind_a_proxy(prefix, timeout_seconds=0.3) as (to_redis, limiter, service):
        await service.quota.reserve(principal, 100)
        to_redis.hold(Way.TO_CLIENT)
        await service.quota.reserve(principal, 250)
        assert not limiter.is_shared
        service.ledger.spoken[TODAY] = 350
        to_redis.heal()
        await becomes(limiter, service, is_shared=True)
        assert await service.left(principal) == 650
