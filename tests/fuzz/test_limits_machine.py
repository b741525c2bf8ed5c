"""Live limiters on their own clocks, with two workers on one store, against bounds.

``tests/core/limits/test_buckets.py`` compares exact values with a stopped clock. Here time
passes by itself, so the model knows each bucket's level as an interval: no caller may get more than its
upper end, and no caller within its lower end may be refused.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
)

from core.limits.buckets import Charge, Granted
from core.limits.memory import MemoryLimiter
from core.limits.redis import RedisLimiter
from tests.support.fuzzing.state_machines import run_state_machine
from tests.support.servers.redis_store import PATIENT, REDIS_URL

LIMITS = {"a": 1, "b": 7, "c": 60, "d": 6000}
GRAIN = Fraction(1, 500)
"""Clocks count whole milliseconds, so two readings may be off by this many seconds."""

Limiter = MemoryLimiter | RedisLimiter


@dataclass
class Level:
    """A bucket's level, between ``low`` and ``high``; ``asked`` is the time of the last reading."""

    limit: int
    low: Fraction
    high: Fraction
    asked: tuple[float, float] = field(default=(0.0, 0.0))

    def pass_time(self, before: float, after: float) -> None:
        """Advance the level for a call of the store between ``before`` and ``after``."""
        rate = Fraction(self.limit, 60)
        shortest = max(Fraction(0), Fraction(before - self.asked[1]) - GRAIN)
        longest = Fraction(after - self.asked[0]) + GRAIN
        self.low = min(Fraction(self.limit), self.low + rate * shortest)
        self.high = min(Fraction(self.limit), self.high + rate * longest)
        self.asked = (before, after)

    def change(self, amount: int) -> None:
        self.low = min(Fraction(self.limit), self.low + amount)
        self.high = min(Fraction(self.limit), self.high + amount)


class LiveLimits(RuleBasedStateMachine):
    """Reservations and settlements by any of the workers, with pauses in between."""

    def __init__(self, make: Callable[[str], list[Limiter]]) -> None:
        super().__init__()
        self.make = make
        self.loop = asyncio.new_event_loop()
        self.open: list[tuple[Limiter, Granted]] = []

    @initialize()
    def start(self) -> None:
        self.workers = self.make(uuid.uuid4().hex)
        now = time.monotonic()
        self.levels = {
            bucket: Level(limit, Fraction(limit), Fraction(limit), (now, now))
            for bucket, limit in LIMITS.items()
        }

    def teardown(self) -> None:
        for worker in self.workers:
            if isinstance(worker, RedisLimiter):
                assert worker.is_shared, "the store was lost, so nothing was tested"
            self.loop.run_until_complete(worker.close())
        self.loop.close()

    @rule(milliseconds=st.integers(0, 30))
    def wait(self, milliseconds: int) -> None:
        time.sleep(milliseconds / 1000)

    @rule(
        worker=st.integers(0, 1),
        shares=st.dictionaries(
            st.sampled_from(sorted(LIMITS)), st.fractions(0, Fraction(9, 8)), min_size=1
        ),
    )
    def reserve(self, worker: int, shares: dict[str, Fraction]) -> None:
        charges = [
            Charge(bucket, "tokens", LIMITS[bucket], round(share * LIMITS[bucket]))
            for bucket, share in shares.items()
        ]
        limiter = self.workers[worker % len(self.workers)]
        before = time.monotonic()
        outcome = self.loop.run_until_complete(limiter.reserve(charges))
        after = time.monotonic()
        levels = [self.levels[charge.bucket] for charge in charges]
        for level in levels:
            level.pass_time(before, after)
        amounts = [charge.amount for charge in charges]
        if isinstance(outcome, Granted):
            for level, amount in zip(levels, amounts, strict=True):
                assert amount <= level.high, "more was given than there can be"
                level.low = max(level.low, Fraction(amount))
                level.change(-amount)
            self.open.append((limiter, outcome))
            return
        assert any(amount > level.low for level, amount in zip(levels, amounts, strict=True)), (
            "all of it was there for sure"
        )

    @rule(choice=st.integers(0), factor=st.fractions(0, 2), again=st.booleans())
    def settle(self, choice: int, factor: Fraction, again: bool) -> None:
        # No precondition: what is open depends on the time that it took, which no replay repeats.
        if not self.open:
            return
        limiter, granted = self.open.pop(choice % len(self.open))
        actual = [round(charge.amount * factor) for charge in granted.charges]
        before = time.monotonic()
        self.loop.run_until_complete(self._settle(limiter, granted, actual))
        if again:
            self.loop.run_until_complete(self._settle(limiter, granted, [0] * len(actual)))
        after = time.monotonic()
        for charge, amount in zip(granted.charges, actual, strict=True):
            self.levels[charge.bucket].pass_time(before, after)
            self.levels[charge.bucket].change(charge.amount - amount)

    async def _settle(self, limiter: Limiter, granted: Granted, actual: list[int]) -> None:
        limiter.settle(granted, actual)
        # What was sent before it has arrived when this is answered.
        await limiter.reserve([Charge("beside", "tokens", 10**9, 1)])


@pytest.mark.long
def test_a_single_worker_keeps_to_the_bounds() -> None:
    run_state_machine(lambda: LiveLimits(lambda name: [MemoryLimiter()]), runs=40, steps=40)


@pytest.mark.redis
def test_two_workers_on_one_store_keep_to_the_bounds() -> None:
    def workers(name: str) -> list[Limiter]:
        return [
            RedisLimiter(REDIS_URL, prefix=f"svc-test:{name}:", timeout_seconds=PATIENT)
            for _ in range(2)
        ]

    run_state_machine(lambda: LiveLimits(workers), runs=40, steps=40)
