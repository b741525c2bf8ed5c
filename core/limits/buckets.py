"""Limits: token buckets that refill continuously, and windows that count until they end.

A bucket holds one period's limit, a minute's by default. The store keeps the *used* amount, so
that an unknown bucket equals a full one and an idle one can be evicted. ``reserve`` takes several
charges at once or none of them; ``settle`` corrects them to the actual amounts, and may leave a
bucket in debt, which delays the next request and never cuts off a running one.

A window counts the used amount until a fixed moment and does not refill: a day's quota. An unknown
window is not an empty one, since a store can lose its data; so it begins from the amount in the
ledger (``Window.used_before``).

The store is ``MemoryLimiter`` (in ``limits.memory``) for one process and ``RedisLimiter`` (in
``limits.redis``) for several; both do the same integer arithmetic.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final, Literal, Protocol

import msgspec

LimitScope = Literal["requests", "tokens", "characters", "clones"]

MINUTE: Final = 60_000
HOUR: Final = 3_600_000
"""Periods of buckets, in milliseconds."""

WINDOW_KEPT: Final = 48 * HOUR
"""How long a window is kept after its end, for late refunds."""


def monotonic_milliseconds() -> int:
    return time.monotonic_ns() // 1_000_000


class Bucket:
    """``used`` of a capacity at the moment ``at``; each unit of time refills ``refill`` of it.

    The units are the owner's, who compares ``used`` with the capacity and adds to it. Whole numbers
    stay whole.
    """

    __slots__ = ("at", "refill", "used")

    def __init__(self, at: float, refill: float) -> None:
        self.at = at
        self.refill = refill
        self.used: float = 0

    def drain(self, now: float, refill: float) -> float:
        """Refill the bucket up to ``now`` and return its used amount.

        When ``refill`` was changed, and the capacity with it, the used amount keeps its proportion,
        so that a smaller limit does not turn ordinary use into hours of debt.
        """
        if refill != self.refill:
            self.used = self.used * refill // max(self.refill, 1)
            self.refill = refill
        used = self.used - (now - self.at) * refill
        self.used = used = used if used > 0 else 0
        self.at = now
        return used

    def is_evictable(self, now: float) -> bool:
        """Whether the bucket is full, so that evicting it changes nothing."""
        return not self.drain(now, self.refill)


class Window(msgspec.Struct, frozen=True):
    """A fixed window: the bucket does not refill and expires in ``ends_in`` milliseconds.

    ``used_before`` is the used amount by another source: the window counts at least that. The
    store opens an unknown window only with it.
    """

    ends_in: int
    used_before: int | None = None


class Charge(msgspec.Struct, frozen=True):
    """Takes ``amount`` (requests or tokens, by ``scope``) from ``bucket``, which holds ``limit``.

    The limit refills within ``period`` milliseconds, or not at all in a ``window``. The buckets of
    one reservation are distinct. ``owner`` names the limit's owner in messages.
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
        """How many parts one of ``amount`` is counted as.

        One for each millisecond of the period, so that a bucket refills by exactly ``limit`` parts
        a millisecond: all numbers are whole, nothing is ever rounded away.
        """
        return self.period if self.window is None else 1

    @property
    def is_unseeded(self) -> bool:
        """Whether the charge is for a window and has no ``used_before``."""
        return self.window is not None and self.window.used_before is None


class WindowUnknown(Exception):
    """A charge without ``used_before`` named a window that the store does not know, or may have
    lost count of. Nothing was taken; read the ledger and charge again.
    """


class Level(msgspec.Struct, frozen=True):
    """The rest of a limit, and when the whole limit will be available again."""

    scope: LimitScope
    limit: int
    remaining: int
    reset_milliseconds: int


class Refusal(msgspec.Struct, frozen=True):
    """A refused reservation; nothing was taken.

    ``charge`` is the one with the longest wait, so after ``wait_milliseconds`` all of them fit
    unless other callers take more. ``used`` is in whole requests or tokens, rounded up. ``levels``
    has the refusing bucket's level, and the tightest level of another scope.
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
    """A reservation, to be settled once."""

    charges: Sequence[Charge]
    settled: bool = False


class Limiter(Protocol):
    """A store of buckets and windows, used from one event loop."""

    async def reserve(self, charges: Sequence[Charge]) -> Granted | Refusal:
        """Take every charge, or none of them and return the refusal.

        Raises ``WindowUnknown``; never when every window has its ``used_before``.
        """
        ...

    def settle(self, granted: Granted, actual: Sequence[int]) -> None:
        """Correct each charge of ``granted`` to its ``actual`` amount; returns at once.

        Corrects the buckets that the reservation was taken from; a window that is unknown by now
        stays unknown. Only the first call counts.
        """
        ...

    async def close(self) -> None:
        """Finish the calls under way and close connections."""
        ...


def refusal(charges: Sequence[Charge], used: Sequence[int]) -> Refusal:
    """The refusal of ``charges`` that do not all fit; ``used`` holds each bucket's used parts."""
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
    """Milliseconds until ``parts`` have refilled, rounded up."""
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
