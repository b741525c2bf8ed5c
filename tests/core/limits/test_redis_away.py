"""Limits while Redis is away: no call is refused because of it, and each worker has its share."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence

import pytest

from core.limits.buckets import Granted, Refusal
from core.limits.redis import Call, RedisLimiter
from core.monitoring.logs import Outages
from tests.core.limits.test_redis import tokens
from tests.support.servers.redis_store import PATIENT, url_through
from tests.support.servers.tcp_proxy import FaultProxy
from tests.support.until import until_async

HOUR = 3600.0
CLOSED = "redis://127.0.0.1:1"
"""Nothing listens on port 1."""


def count_tries(limiter: RedisLimiter, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record how many calls each exchange with the store carries."""
    exchange, tries = limiter._exchange, list[int]()

    async def counted(calls: Sequence[Call]) -> list[list[int]]:
        tries.append(len(calls))
        return await exchange(calls)

    monkeypatch.setattr(limiter, "_exchange", counted)
    return tries


async def test_a_store_that_never_answers_delays_one_call_and_refuses_none(
    silent_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Callers that arrive together wait for the same call, and those after them for none."""
    limiter = RedisLimiter(f"redis://127.0.0.1:{silent_port}", pause_seconds=HOUR)
    tries = count_tries(limiter, monkeypatch)
    together = [limiter.reserve([tokens("x", 1, 1000)]) for _ in range(500)]
    for outcome in await asyncio.gather(*together):
        assert isinstance(outcome, Granted)
    assert len(tries) == 1
    for _ in range(100):
        assert isinstance(await limiter.reserve([tokens("x", 1, 1000)]), Granted)
    assert len(tries) == 1
    assert not limiter.is_shared
    assert isinstance(await limiter.reserve([tokens("x", 900, 1000)]), Refusal)
    await limiter.close()


async def test_while_the_store_is_down_each_worker_keeps_its_share() -> None:
    limiter = RedisLimiter(CLOSED, workers=4)
    outcomes = [await limiter.reserve([tokens("x", 1, 100)]) for _ in range(30)]
    assert sum(isinstance(outcome, Granted) for outcome in outcomes) == 25
    refusal = outcomes[-1]
    assert isinstance(refusal, Refusal)
    assert (refusal.charge.amount, refusal.charge.limit) == (1, 100)
    await limiter.close()


async def test_a_request_above_the_share_but_within_the_limit_is_served_meanwhile() -> None:
    limiter = RedisLimiter(CLOSED, workers=4)
    granted = await limiter.reserve([tokens("x", 80, 100)])
    assert isinstance(granted, Granted)
    limiter.settle(granted, [5])
    limiter.settle(granted, [500])
    outcomes = [await limiter.reserve([tokens("x", 20, 100)]) for _ in range(2)]
    assert [isinstance(outcome, Granted) for outcome in outcomes] == [True, False]
    too_large = await limiter.reserve([tokens("y", 101, 100)])
    assert isinstance(too_large, Refusal)
    assert too_large.is_final
    await limiter.close()


@pytest.mark.redis
async def test_the_store_is_used_again_when_it_is_back(prefix: str, to_redis: FaultProxy) -> None:
    limiter = RedisLimiter(
        url_through(to_redis), prefix=prefix, timeout_seconds=PATIENT, pause_seconds=0.05
    )
    charge = tokens("x", 1, 100)
    states: list[bool] = []
    for away in (False, True, False):
        if away:
            to_redis.refuse()
        elif states:
            to_redis.heal()

        async def is_noticed(away: bool = away) -> bool:
            assert isinstance(await limiter.reserve([charge]), Granted)
            states.append(limiter.is_shared)
            return limiter.is_shared != away

        await until_async(is_noticed)
    assert states[0]
    assert False in states
    assert limiter.is_shared
    await limiter.close()


@pytest.mark.redis
async def test_time_in_which_this_process_did_not_run_is_not_the_stores(
    prefix: str, to_redis: FaultProxy
) -> None:
    """On a busy host the answer has arrived when the timeout expires, and was only not read yet."""
    limiter = RedisLimiter(
        url_through(to_redis), prefix=prefix, timeout_seconds=0.5, pause_seconds=HOUR
    )
    assert isinstance(await limiter.reserve([tokens("x", 1, 1000)]), Granted)
    to_redis.delay(0.1)
    asyncio.get_running_loop().call_later(0.02, time.sleep, 0.6)
    assert isinstance(await limiter.reserve([tokens("x", 1, 1000)]), Granted)

    assert limiter.is_shared
    await limiter.close()


async def test_a_store_that_fails_every_moment_is_in_the_log_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = 1000.0
    caplog.set_level(logging.INFO)
    outages = Outages(logging.getLogger("test"), lambda: now)
    for _ in range(50):
        outages.failed(logging.WARNING, "away: %s", "x")
        outages.failed(logging.WARNING, "away: %s", "x")
        outages.ended("back")
        now += 1
    now += 60
    outages.failed(logging.WARNING, "away: %s", "x")
    now += 3600
    outages.failed(logging.WARNING, "away: %s", "x")
    outages.ended("back")

    assert [each.getMessage() for each in caplog.records] == [
        "away: x",
        "back",
        "away: x (49 more like it before)",
        "back",
    ]


async def test_an_outage_that_lasts_is_logged_once_the_minute_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = 1000.0
    caplog.set_level(logging.INFO)
    outages = Outages(logging.getLogger("test"), lambda: now)
    outages.failed(logging.WARNING, "away")
    outages.ended("back")
    for _ in range(100):
        now += 1
        outages.failed(logging.WARNING, "away")

    assert [each.getMessage() for each in caplog.records] == ["away", "back", "away"]
