"""Limits: token buckets that refill continuously, and windows that count until they end.

A bucket holds one period's limit, a minute's unless the charge says otherwise. It is kept as what
is *used* of it, so that an unknown bucket and a full one are the same and an idle one can be
forgotten. ``reserve`` takes several charges at once or none of them; ``settle`` corrects them to
what they came to, and may leave a bucket in debt, which delays the next request and never cuts off
a running one.

A window counts what is used of a limit until a fixed moment and does not refill: a day's quota. An
unknown window is not an empty one, since a store can lose what it knew; so it begins from what its
user's own records say (``Window.used_before``).

The store is ``MemoryLimiter`` for one process and ``RedisLimiter`` (in ``ratelimits_redis``) for
several; both do the same integer arithmetic.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Literal, Protocol

import msgspec

LimitScope = Literal["requests", "tokens", "characters", "clones"]

MINUTE: Final = 60_000
HOUR: Final = 3_600_000
"""Periods of buckets, in milliseconds."""

WINDOW_KEPT: Final = 48 * HOUR
"""How long a window is remembered after its end, for what is given back late."""


class Window(msgspec.Struct, frozen=True):
    """That a charge's bucket does not refill, and ends in ``ends_in`` milliseconds.

    ``used_before`` is what is known to be used of it from elsewhere: the window then counts at
    least that. A window that the store does not know is only opened with it.
    """

    ends_in: int
    used_before: int | None = None


class Charge(msgspec.Struct, frozen=True):
    """``amount`` of what ``scope`` counts, to be taken from ``bucket``, which holds ``limit``.

    The limit refills within ``period`` milliseconds, or not at all in a ``window``. The buckets of
    one reservation are distinct. ``owner`` says for people whose limit it is.
    """

    bucket: str
    scope: LimitScope
    limit: int
    amount: int
    owner: str = ""
    period: int = MINUTE
    window: Window | None = None

    @property
    def unit(self) -> int:
        """Parts that one of ``amount`` is counted in.

        As many as the period has milliseconds, so that a bucket refills by exactly ``limit`` parts
        each millisecond: whole numbers everywhere, nothing is ever rounded away.
        """
        return self.period if self.window is None else 1

    @property
    def is_unseeded(self) -> bool:
        """Whether it is for a window, and does not say what was used of it before."""
        return self.window is not None and self.window.used_before is None


class WindowUnknown(Exception):
    """A window that the store does not know, or may have lost count of, was charged without
    ``used_before``. Nothing was taken; ask the records and charge again.
    """


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
    has the refusing bucket's entry, and the tightest one of those of another scope.
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
    """A store of buckets and windows, used from one event loop."""

    async def reserve(self, charges: Sequence[Charge]) -> Granted | Refusal:
        """Take every charge, or none of them and say why.

        Raises ``WindowUnknown``; never when every window has its ``used_before``.
        """
        ...

    def settle(self, granted: Granted, actual: Sequence[int]) -> None:
        """Correct each charge of ``granted`` to its ``actual`` amount; returns at once.

        Goes to the buckets that the reservation was taken from; a window that is unknown by now
        stays so. Only the first call counts.
        """
        ...

    async def close(self) -> None:
        """Finish what is under way and let go of connections."""
        ...


def refusal(charges: Sequence[Charge], used: Sequence[int]) -> Refusal:
    """The answer to ``charges`` that do not all fit; ``used`` holds each bucket's used parts."""
    pairs = list(zip(charges, used, strict=True))
    waits = [_wait(charge, parts) for charge, parts in pairs]
    worst = max(range(len(charges)), key=lambda i: (charges[i].amount > charges[i].limit, waits[i]))
    levels = [_level(charge, parts) for charge, parts in pairs]
    refused = levels[worst]
    others = [level for level in levels if level.scope != refused.scope]
    return Refusal(
        charge=charges[worst],
        used=-(-used[worst] // charges[worst].unit),
        wait_milliseconds=max(1, waits[worst]),
        levels=(refused, *sorted(others, key=lambda level: level.remaining)[:1]),
    )


def _wait(charge: Charge, used: int) -> int:
    """Milliseconds until ``charge`` fits."""
    return _milliseconds(charge, used + (charge.amount - charge.limit) * charge.unit)


def _milliseconds(charge: Charge, parts: int) -> int:
    """How long it takes until ``parts`` are there again, rounded up."""
    if charge.window is not None:
        return charge.window.ends_in if parts > 0 else 0
    return max(0, -(-parts // max(charge.limit, 1)))


def _level(charge: Charge, used: int) -> Level:
    return Level(
        scope=charge.scope,
        limit=charge.limit,
        remaining=max(0, charge.limit * charge.unit - used) // charge.unit,
        reset_milliseconds=_milliseconds(charge, used),
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

    def is_over(self, now: int) -> bool:
        """Whether forgetting it changes nothing."""
        return not self.drain(now, self.limit)


class _Window:
    """``used`` parts of whatever the limit is, until after ``kept_until``."""

    __slots__ = ("kept_until", "used")

    def __init__(self, now: int, window: Window) -> None:
        self.kept_until = now + window.ends_in + WINDOW_KEPT
        self.used = 0

    def drain(self, now: int, limit: int) -> int:
        return self.used

    def is_over(self, now: int) -> bool:
        return now > self.kept_until


class MemoryLimiter:
    """Buckets and windows of one process.

    Each reservation also looks at a few of them in turn and forgets those that are full again or
    over: memory follows the number in use, with no job and no pause.
    """

    def __init__(self, clock: Callable[[], int] = monotonic_milliseconds) -> None:
        self._clock = clock
        self._buckets: dict[str, _Bucket | _Window] = {}
        self._turn: deque[str] = deque()

    def __len__(self) -> int:
        """How many buckets and windows are remembered."""
        return len(self._buckets)

    async def reserve(self, charges: Sequence[Charge]) -> Granted | Refusal:
        return self.take(charges)

    def take(self, charges: Sequence[Charge]) -> Granted | Refusal:
        """``reserve`` for callers that cannot wait."""
        for charge in charges:
            if charge.is_unseeded and charge.bucket not in self._buckets:
                raise WindowUnknown
        now = self._clock()
        known = len(self._turn)
        buckets = [self._bucket(charge, now) for charge in charges]
        fits = True
        for bucket, charge in zip(buckets, charges, strict=True):
            if charge.window is not None and charge.window.used_before is not None:
                bucket.used = max(bucket.used, charge.window.used_before)
            used = bucket.drain(now, charge.limit)
            if used + charge.amount * charge.unit > charge.limit * charge.unit:
                fits = False
        if fits:
            for bucket, charge in zip(buckets, charges, strict=True):
                bucket.used += charge.amount * charge.unit
        # Only now: forgetting earlier could drop a full bucket that this very call takes from.
        self._forget_over(now, 1 + 2 * (len(self._turn) - known))
        if fits:
            return Granted(charges)
        return refusal(charges, [bucket.used for bucket in buckets])

    def settle(self, granted: Granted, actual: Sequence[int]) -> None:
        if granted.settled:
            return
        granted.settled = True
        now = self._clock()
        for charge, amount in zip(granted.charges, actual, strict=True):
            if charge.window is not None and charge.bucket not in self._buckets:
                continue
            if amount != charge.amount:
                bucket = self._bucket(charge, now)
                change = (amount - charge.amount) * charge.unit
                used = bucket.drain(now, charge.limit) + change
                bucket.used = used if used > 0 else 0

    def left_of(self, charge: Charge) -> int:
        """How much of the limit of ``charge``, a window's, is left."""
        window = self._buckets.get(charge.bucket)
        before = (charge.window and charge.window.used_before) or 0
        return charge.limit - max(before, window.used if window is not None else 0)

    def forget_windows(self) -> None:
        """Forget every window, so that each begins again from what the records say."""
        for name in [n for n, bucket in self._buckets.items() if isinstance(bucket, _Window)]:
            del self._buckets[name]
        self._turn = deque(self._buckets)

    async def close(self) -> None:
        self._buckets.clear()
        self._turn.clear()

    def _bucket(self, charge: Charge, now: int) -> _Bucket | _Window:
        bucket = self._buckets.get(charge.bucket)
        window = charge.window
        if bucket is None:
            bucket = _Bucket(now, charge.limit) if window is None else _Window(now, window)
            self._buckets[charge.bucket] = bucket
            self._turn.append(charge.bucket)
        return bucket

    def _forget_over(self, now: int, count: int) -> None:
        turn = self._turn
        for _ in range(min(count, len(turn))):
            name = turn.popleft()
            if self._buckets[name].is_over(now):
                del self._buckets[name]
            else:
                turn.append(name)
