"""Token buckets: limits per minute that refill continuously.

A bucket holds one minute's limit. It is kept as what is *used* of it, so that an unknown bucket
and a full one are the same and an idle one can be forgotten. ``reserve`` takes several charges at
once or none of them; ``settle`` corrects them to what they came to, and may leave a bucket in
debt, which delays the next request and never cuts off a running one.

The store is ``MemoryLimiter`` for one process and ``RedisLimiter`` (in ``ratelimits_redis``) for
several; both do the same integer arithmetic.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Literal, Protocol

import msgspec

LimitScope = Literal["requests", "tokens"]

UNITS: Final = 60_000
"""Parts that one request or token is counted in. A limit per minute then refills by exactly
``limit`` parts each millisecond: whole numbers everywhere, nothing is ever rounded away."""


class Charge(msgspec.Struct, frozen=True):
    """``amount`` requests or tokens, to be taken from ``bucket``, which holds ``limit`` a minute.

    The buckets of one reservation are distinct. ``owner`` says for people whose limit it is.
    """

    bucket: str
    scope: LimitScope
    limit: int
    amount: int
    owner: str = ""


class Level(msgspec.Struct, frozen=True):
    """What is left of a limit, and when all of it will be there again."""

    scope: LimitScope
    limit: int
    remaining: int
    reset_milliseconds: int


class Refusal(msgspec.Struct, frozen=True):
    """A reservation that was not made; nothing was taken.

    ``charge`` is the one that has to wait longest, so that after ``wait_milliseconds`` all of
    them fit, other callers aside. ``used`` is in whole requests or tokens, rounded up. ``levels``
    has one entry per scope: the refusing bucket's, and the tightest one of the other scope.
    """

    charge: Charge
    used: int
    wait_milliseconds: int
    levels: tuple[Level, ...]

    @property
    def is_final(self) -> bool:
        """Whether the charge is larger than the whole limit, so that waiting does not help."""
        return self.charge.amount > self.charge.limit


class Granted(msgspec.Struct):
    """A reservation that was made, to be settled once."""

    charges: Sequence[Charge]
    settled: bool = False


class Limiter(Protocol):
    """A store of token buckets, used from one event loop."""

    async def reserve(self, charges: Sequence[Charge]) -> Granted | Refusal:
        """Take every charge, or none of them and say why."""
        ...

    def settle(self, granted: Granted, actual: Sequence[int]) -> None:
        """Correct each charge of ``granted`` to its ``actual`` amount; returns at once.

        Goes to the buckets that the reservation was taken from. Only the first call counts.
        """
        ...

    async def close(self) -> None:
        """Finish what is under way and let go of connections."""
        ...


def refusal(charges: Sequence[Charge], used: Sequence[int]) -> Refusal:
    """The answer to ``charges`` that do not all fit; ``used`` holds each bucket's used parts."""
    waits = [
        _milliseconds(parts + (charge.amount - charge.limit) * UNITS, charge.limit)
        for charge, parts in zip(charges, used, strict=True)
    ]
    worst = max(range(len(charges)), key=lambda i: (charges[i].amount > charges[i].limit, waits[i]))
    levels = [_level(charge, parts) for charge, parts in zip(charges, used, strict=True)]
    refused = levels[worst]
    others = [level for level in levels if level.scope != refused.scope]
    return Refusal(
        charge=charges[worst],
        used=-(-used[worst] // UNITS),
        wait_milliseconds=max(1, waits[worst]),
        levels=(refused, *sorted(others, key=lambda level: level.remaining)[:1]),
    )


def _milliseconds(parts: int, limit: int) -> int:
    """How long a bucket of ``limit`` takes to refill ``parts``, rounded up."""
    return max(0, -(-parts // max(limit, 1)))


def _level(charge: Charge, used: int) -> Level:
    return Level(
        scope=charge.scope,
        limit=charge.limit,
        remaining=max(0, charge.limit * UNITS - used) // UNITS,
        reset_milliseconds=_milliseconds(used, charge.limit),
    )


def monotonic_milliseconds() -> int:
    return time.monotonic_ns() // 1_000_000


class _Bucket:
    """``used`` parts at the moment ``at``, counted against ``limit``."""

    __slots__ = ("at", "limit", "used")

    def __init__(self, at: int, limit: int) -> None:
        self.at = at
        self.limit = limit
        self.used = 0

    def drain(self, now: int, limit: int) -> int:
        """Bring the bucket to ``now`` and return what is used of it.

        When the limit was changed, what is used keeps its share of the limit, so that a smaller
        limit does not turn ordinary use into hours of debt.
        """
        if limit != self.limit:
            self.used = self.used * limit // max(self.limit, 1)
            self.limit = limit
        used = self.used - (now - self.at) * limit
        self.used = used = used if used > 0 else 0
        self.at = now
        return used


class MemoryLimiter:
    """Buckets of one process.

    Each reservation also looks at a few buckets in turn and forgets the ones that are full
    again: memory follows the number of buckets in use, with no job and no pause.
    """

    def __init__(self, clock: Callable[[], int] = monotonic_milliseconds) -> None:
        self._clock = clock
        self._buckets: dict[str, _Bucket] = {}
        self._turn: deque[str] = deque()

    def __len__(self) -> int:
        """How many buckets are remembered."""
        return len(self._buckets)

    async def reserve(self, charges: Sequence[Charge]) -> Granted | Refusal:
        return self.take(charges)

    def take(self, charges: Sequence[Charge]) -> Granted | Refusal:
        """``reserve`` for callers that cannot wait."""
        now = self._clock()
        known = len(self._turn)
        buckets = [self._bucket(charge, now) for charge in charges]
        fits = True
        for bucket, charge in zip(buckets, charges, strict=True):
            used = bucket.drain(now, charge.limit)
            if used + charge.amount * UNITS > charge.limit * UNITS:
                fits = False
        if fits:
            for bucket, charge in zip(buckets, charges, strict=True):
                bucket.used += charge.amount * UNITS
        # Only now: forgetting earlier could drop a full bucket that this very call takes from.
        self._forget_full(now, 1 + 2 * (len(self._turn) - known))
        if fits:
            return Granted(charges)
        return refusal(charges, [bucket.used for bucket in buckets])

    def settle(self, granted: Granted, actual: Sequence[int]) -> None:
        if granted.settled:
            return
        granted.settled = True
        now = self._clock()
        for charge, amount in zip(granted.charges, actual, strict=True):
            if amount != charge.amount:
                bucket = self._bucket(charge, now)
                used = bucket.drain(now, charge.limit) + (amount - charge.amount) * UNITS
                bucket.used = used if used > 0 else 0

    async def close(self) -> None:
        self._buckets.clear()
        self._turn.clear()

    def _bucket(self, charge: Charge, now: int) -> _Bucket:
        bucket = self._buckets.get(charge.bucket)
        if bucket is None:
            bucket = self._buckets[charge.bucket] = _Bucket(now, charge.limit)
            self._turn.append(charge.bucket)
        return bucket

    def _forget_full(self, now: int, count: int) -> None:
        turn = self._turn
        for _ in range(min(count, len(turn))):
            name = turn.popleft()
            bucket = self._buckets[name]
            if bucket.drain(now, bucket.limit):
                turn.append(name)
            else:
                del self._buckets[name]
