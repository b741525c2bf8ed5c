"""The buckets that workers share in Redis, and failures of Redis."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import Sequence

import msgspec
import pytest
import redis.asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from core.limits.buckets import HOUR, Charge, Granted, Refusal, Window, WindowUnknown
from core.limits.memory import MemoryLimiter
from core.limits.redis import SCRIPT, Call, RedisLimiter, open_limiter
from tests.support.servers.redis_store import PATIENT, REDIS_URL, url_through
from tests.support.servers.tcp_proxy import FaultProxy, Way
from tests.support.until import until_async


def tokens(bucket: str, amount: int, limit: int) -> Charge:
    return Charge(bucket, "tokens", limit, amount)


def test_without_an_address_limits_are_kept_in_memory() -> None:
    assert isinstance(open_limiter(""), MemoryLimiter)
    assert isinstance(open_limiter("redis://127.0.0.1:1"), RedisLimiter)


# --- a store that is down -------------------------------------------------------------------


@pytest.mark.redis
async def test_a_store_that_lost_its_scripts_is_given_them_again(
    prefix: str, shared: RedisLimiter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "_pause", 0.0)
    assert isinstance(await shared.reserve([tokens("x", 1, 100)]), Granted)
    with monkeypatch.context() as patched:
        patched.setattr(shared._store, "digest", "0" * 40)
        await shared.reserve([tokens("x", 1, 100)])
    assert not shared.is_shared
    await shared.reserve([tokens("x", 1, 100)])
    await until_async(lambda: shared.is_shared)


# --- callers that are cancelled -------------------------------------------------------------


@pytest.mark.redis
async def test_cancelled_calls_never_leave_their_reply_to_another_caller(
    prefix: str, to_redis: FaultProxy
) -> None:
    limiter = RedisLimiter(url_through(to_redis), prefix=prefix, timeout_seconds=PATIENT)
    chance = random.Random(7)

    async def ask(number: int) -> bool:
        impossible = number % 2 == 1
        limit = 10 if impossible else 10**6
        charges = [tokens(f"{number}-{i}", 11, limit) for i in range(1 + number % 5)]
        outcome = await limiter.reserve(charges)
        return isinstance(outcome, Refusal) == impossible

    for _ in range(20):
        asked = [asyncio.create_task(ask(number)) for number in range(50)]
        to_redis.hold(Way.TO_CLIENT)
        for task in asked:
            if chance.random() < 0.5:
                task.cancel()
            if chance.random() < 0.1:
                await asyncio.sleep(0)
        to_redis.heal()
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert {answer for answer in answers if isinstance(answer, bool)} == {True}
    assert limiter.is_shared
    await limiter.close()


@pytest.mark.redis
async def test_a_cancelled_reservation_is_refunded(prefix: str, to_redis: FaultProxy) -> None:
    limiter = RedisLimiter(url_through(to_redis), prefix=prefix, timeout_seconds=PATIENT)
    await limiter.reserve([tokens("warm-up", 1, 100)])
    to_redis.hold(Way.TO_CLIENT)
    seen = to_redis.carried[Way.TO_CLIENT]
    call = asyncio.create_task(limiter.reserve([tokens("x", 100, 100)]))
    await until_async(lambda: to_redis.carried[Way.TO_CLIENT] > seen)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    to_redis.heal()

    # By refill alone 30 seconds would bring 50 of 100 back.
    async def is_refunded() -> bool:
        return isinstance(await limiter.reserve([tokens("x", 90, 100)]), Granted)

    await until_async(is_refunded, 30)
    await limiter.close()


@pytest.mark.redis
async def test_a_call_cancelled_as_its_reply_arrives_is_refunded_too(
    shared: RedisLimiter,
) -> None:
    call = asyncio.create_task(shared.reserve([tokens("x", 100, 100)]))
    await asyncio.sleep(0)
    while shared._task is not None:  # noqa: ASYNC110  # the very next step is the one to hit
        await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert isinstance(await shared.reserve([tokens("x", 90, 100)]), Granted)


# --- the shared store -----------------------------------------------------------------------


@pytest.mark.redis
async def test_reserve_and_settle_work_as_in_memory(shared: RedisLimiter) -> None:
    charges = [Charge("{o}:requests", "requests", 3, 1), tokens("{o}:tokens", 500, 600)]
    granted = await shared.reserve(charges)
    assert isinstance(granted, Granted)
    refusal = await shared.reserve(charges)
    assert isinstance(refusal, Refusal)
    assert refusal.charge.bucket == "{o}:tokens"
    assert 400 <= refusal.used <= 500
    assert [level.scope for level in refusal.levels] == ["tokens", "requests"]
    shared.settle(granted, [1, 100])
    shared.settle(granted, [0, 0])
    second = await shared.reserve(charges)
    assert isinstance(second, Granted)
    shared.settle(second, [0, 700])
    indebted = await shared.reserve(charges)
    assert isinstance(indebted, Refusal)
    assert indebted.used > 600
    assert indebted.wait_milliseconds > 60_000 * 500 // 600


@pytest.mark.redis
async def test_a_reservation_fits_after_the_announced_wait(shared: RedisLimiter) -> None:
    charge = tokens("x", 1000, 600_000)
    await shared.reserve([tokens("x", 600_000, 600_000)])
    for _ in range(5):
        while isinstance(refusal := await shared.reserve([charge]), Granted):
            pass  # a slow machine gives the bucket time to refill
        await asyncio.sleep(refusal.wait_milliseconds / 1000)
        assert isinstance(await shared.reserve([charge]), Granted)


@pytest.mark.redis
async def test_a_full_bucket_vanishes_from_the_store(prefix: str, shared: RedisLimiter) -> None:
    await shared.reserve([tokens("{o}:tokens", 20_000, 600_000)])
    client: redis.asyncio.Redis = redis.asyncio.from_url(REDIS_URL)
    key = f"{prefix}{{o}}:tokens"
    assert 0 < await client.pttl(key) <= 2000

    async def has_vanished() -> bool:
        return not await client.exists(key)

    await until_async(has_vanished)
    await client.aclose()


@pytest.mark.redis
async def test_a_store_whose_clock_went_back_refills_from_now_on(
    prefix: str, shared: RedisLimiter
) -> None:
    client: redis.asyncio.Redis = redis.asyncio.from_url(REDIS_URL)
    limit, in_an_hour = 600_000, round(time.time() * 1000) + 3_600_000
    await client.set(f"{prefix}x", f"{limit * 60_000} {in_an_hour} {limit}", ex=60)
    await client.aclose()
    refusal = await shared.reserve([tokens("x", 1000, limit)])
    assert isinstance(refusal, Refusal)
    assert refusal.wait_milliseconds == 100
    await asyncio.sleep(refusal.wait_milliseconds / 1000)
    assert isinstance(await shared.reserve([tokens("x", 1000, limit)]), Granted)


@pytest.mark.redis
async def test_live_workers_are_counted(prefix: str) -> None:
    workers = [RedisLimiter(REDIS_URL, prefix=prefix, timeout_seconds=PATIENT) for _ in range(3)]
    for worker in workers:
        await worker.reserve([tokens("x", 1, 10)])
    assert workers[-1]._workers == 3
    for worker in workers:
        await worker.close()


Step = tuple[bool, int, Sequence[int], int | None]
steps = st.lists(
    st.tuples(
        st.booleans(),
        st.integers(0, 30_000),
        st.lists(st.integers(0, 120), min_size=5, max_size=5),
        st.none() | st.integers(0, 300),
    ),
    max_size=30,
)


def _arithmetic_charges(
    prefix: str, amounts: Sequence[int], used_before: int | None
) -> list[Charge]:
    """Three buckets of a minute, one of an hour, and a window."""
    minutes = [
        tokens(f"{prefix}{limit}", amount, limit)
        for amount, limit in zip(amounts[:3], (1, 60, 100), strict=True)
    ]
    hour = Charge(f"{prefix}hour", "clones", 150, amounts[3], period=HOUR)
    window = Window(86_400_000, used_before)
    return [*minutes, hour, Charge(f"{prefix}day", "characters", 500, amounts[4], window=window)]


@pytest.mark.redis
@settings(max_examples=60, deadline=None)
@given(steps=steps)
def test_the_script_does_the_same_arithmetic_as_the_memory(steps: list[Step]) -> None:
    asyncio.run(_compare(steps))


async def _compare(steps: list[Step]) -> None:
    """Run ``steps`` against both; the script gets its time from us, and its keys do not expire."""
    script = SCRIPT
    for real, ours in (
        ("redis.call('TIME')", "{ARGV[#ARGV], 0}"),
        ("time[1] * 1000 +", "time[1] +"),
        (",\n    'PX', string.format('%.0f', milliseconds))", ")"),
    ):
        assert real in script
        script = script.replace(real, ours)
    now = 1_000_000
    memory = MemoryLimiter(lambda: now)
    client: redis.asyncio.Redis = redis.asyncio.from_url(REDIS_URL)
    prefix = f"svc-test:{uuid.uuid4().hex}:"
    keys: list[str] = []
    for settles, pause, amounts, used_before in steps:
        now += pause
        charges = _arithmetic_charges(prefix, amounts, used_before)
        keys = [charge.bucket for charge in charges]
        changes = [amount - 60 for amount in amounts] if settles else amounts
        step = "settle" if settles else "reserve"
        figures = Call(step, charges, changes, None).arguments()
        answer = await client.eval(script, len(keys), *keys, step, *figures, now)
        if settles:
            assert answer[1:] == _used(memory, charges, now)
            taken = [msgspec.structs.replace(charge, amount=60) for charge in charges]
            memory.settle(Granted(taken), amounts)
            continue
        try:
            outcome = memory.take(charges)
        except WindowUnknown:
            assert answer == [-1]
            continue
        assert bool(answer[0]) == isinstance(outcome, Granted)
        amounts_taken = amounts if answer[0] else [0] * len(amounts)
        used = [u + a * c.unit for u, a, c in zip(answer[1:], amounts_taken, charges, strict=True)]
        assert used == _used(memory, charges, now)
    if keys:
        await client.delete(*keys)
    await client.aclose()


def _used(memory: MemoryLimiter, charges: Sequence[Charge], now: int) -> list[float]:
    """The used parts in ``memory`` of each charge; -1 for a window that it does not know."""
    return [
        -1
        if charge.window is not None and charge.bucket not in memory._buckets
        else memory._bucket(charge, now).drain(now, charge.limit)
        for charge in charges
    ]
