"""The store of buckets and windows of one process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from core.limits.buckets import (
    WINDOW_KEPT,
    Bucket,
    Charge,
    Granted,
    Refusal,
    Window,
    WindowUnknown,
    monotonic_milliseconds,
    refusal,
)


class _Window:
    """``used`` parts, which never refill, kept until ``kept_until``; stands for a ``Bucket``."""

    __slots__ = ("kept_until", "used")

    def __init__(self, now: int, window: Window) -> None:
        self.kept_until = now + window.ends_in + WINDOW_KEPT
        self.used: float = 0

    def drain(self, now: float, refill: float) -> float:
        return self.used

    def is_evictable(self, now: float) -> bool:
        return now > self.kept_until


class MemoryLimiter:
    """Buckets and windows of one process.

    Each reservation also checks a few of them in turn and evicts full buckets and expired windows:
    memory follows the number in use, with no job and no pause.
    """

    def __init__(self, clock: Callable[[], int] = monotonic_milliseconds) -> None:
        self._clock = clock
        self._buckets: dict[str, Bucket | _Window] = {}
        self._turn: deque[str] = deque()

    def __len__(self) -> int:
        """How many buckets and windows are in memory."""
        return len(self._buckets)

    async def reserve(self, charges: Sequence[Charge]) -> Granted | Refusal:
        return self.take(charges)

    def take(self, charges: Sequence[Charge]) -> Granted | Refusal:
        """``reserve`` for synchronous callers."""
        for charge in charges:
            window = charge.window
            if window is None:
                continue
            if window.used_before is None and charge.bucket not in self._buckets:
                raise WindowUnknown
        now = self._clock()
        known = len(self._turn)
        taken = []
        fits = True
        for charge in charges:
            bucket, unit = self._bucket(charge, now), charge.unit
            window = charge.window
            if window is not None and window.used_before is not None:
                bucket.used = max(bucket.used, window.used_before)
            parts = charge.amount * unit
            if bucket.drain(now, charge.limit) + parts > charge.limit * unit:
                fits = False
            taken.append((bucket, parts))
        if fits:
            for bucket, parts in taken:
                bucket.used += parts
        # Only now: evicting earlier could drop a full bucket that this very call takes from.
        self._evict_idle(now, 1 + 2 * (len(self._turn) - known))
        if fits:
            return Granted(charges)
        return refusal(charges, [int(bucket.used) for bucket, _ in taken])

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
        """How much is left of the limit of ``charge``, which is for a window."""
        window = self._buckets.get(charge.bucket)
        before = (charge.window and charge.window.used_before) or 0
        return charge.limit - max(before, int(window.used) if window is not None else 0)

    def forget_windows(self) -> None:
        """Drop every window, so that each begins again from ``used_before``."""
        for name in [n for n, bucket in self._buckets.items() if isinstance(bucket, _Window)]:
            del self._buckets[name]
        self._turn = deque(self._buckets)

    async def close(self) -> None:
        self._buckets.clear()
        self._turn.clear()

    def _bucket(self, charge: Charge, now: int) -> Bucket | _Window:
        bucket = self._buckets.get(charge.bucket)
        window = charge.window
        if bucket is None:
            bucket = Bucket(now, charge.limit) if window is None else _Window(now, window)
            self._buckets[charge.bucket] = bucket
            self._turn.append(charge.bucket)
        return bucket

    def _evict_idle(self, now: int, count: int) -> None:
        turn = self._turn
        for _ in range(min(count, len(turn))):
            name = turn.popleft()
            if self._buckets[name].is_evictable(now):
                del self._buckets[name]
            else:
                turn.append(name)
