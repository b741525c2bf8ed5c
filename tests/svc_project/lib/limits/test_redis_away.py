"""Limits while Redis is away: no call is refused because of it, and each worker has its share."""

from __future__ import annotations

import asyncio
import time

import pytest

from svc_project.lib.limits.buckets import Granted, Refusal
from svc_project.lib.limits.redis import RedisLimiter
from tests.support.servers.redis_store import url_through
from tests.support.servers.tcp_proxy import FaultProxy
from tests.svc_project.lib.limits.test_redis import tokens


async def test_a_store_that_never_answers_delays_one_call_and_refuses_none(
    silent_port: int,
) -> None:
    limiter = RedisLimiter(f"redis://127.0.0.1:{silent_port}")
    began = time.monotonic()
    for _ in range(100):
        assert isinstance(await limiter.reserve([tokens("x", 1, 100)]), Granted)
    # A hundred time-outs of 50 ms would be five seconds.
    assert time.monotonic() - began < 1
    assert not limiter.is_shared
    assert isinstance(await limiter.reserve([tokens("x", 90, 100)]), Refusal)
    await limiter.close()


async def test_callers_that_arrive_together_all_go_on_when_the_store_hangs(
    silent_port: int,
) -> None:
    limiter = RedisLimiter(f"redis://127.0.0.1:{silent_port}")
    began = time.monotonic()
    outcomes = await asyncio.gather(*[limiter.reserve([tokens("x", 1, 1000)]) for _ in range(500)])
    assert all(isinstance(outcome, Granted) for outcome in outcomes)
    assert time.monotonic() - began < 1
    await limiter.close()


async def test_a_closed_port_refuses_no_request(closed_port: int) -> None:
    limiter = RedisLimiter(f"redis://127.0.0.1:{closed_port}")
    granted = await limiter.reserve([tokens("x", 60, 100)])
    assert isinstance(granted, Granted)
    limiter.settle(granted, [10])
    assert isinstance(await limiter.reserve([tokens("x", 90, 100)]), Granted)
    await limiter.close()


async def test_while_the_store_is_down_each_worker_keeps_its_share(closed_port: int) -> None:
    limiter = RedisLimiter(f"redis://127.0.0.1:{closed_port}", workers=4)
    outcomes = [await limiter.reserve([tokens("x", 1, 100)]) for _ in range(30)]
    assert sum(isinstance(outcome, Granted) for outcome in outcomes) == 25
    refusal = outcomes[-1]
    assert isinstance(refusal, Refusal)
    assert (refusal.charge.amount, refusal.charge.limit) == (1, 100)
    await limiter.close()


async def test_a_request_above_the_share_but_within_the_limit_is_served_meanwhile(
    closed_port: int,
) -> None:
    limiter = RedisLimiter(f"redis://127.0.0.1:{closed_port}", workers=4)
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
        url_through(to_redis), prefix=prefix, timeout_seconds=1.0, pause_seconds=0.05
    )
    charge = tokens("x", 1, 100)
    states: list[bool] = []
    for away in (False, True, False):
        if away:
            to_redis.refuse()
        elif states:
            to_redis.heal()
        deadline = time.monotonic() + 10
        while limiter.is_shared == away or not states:
            assert isinstance(await limiter.reserve([charge]), Granted)
            states.append(limiter.is_shared)
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)
    assert (states[0], states[-1]) == (True, False)
    assert limiter.is_shared
    await limiter.close()
