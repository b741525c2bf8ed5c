"""Limits that are known to be used up, so that a large body is refused without parsing it.

A refusal by the limit store is remembered for one second. So no request waits for the store twice,
refunds and raised limits take effect at most a second later, and a caller that keeps sending costs
one parsed body a second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from svc_project.lib.limits.buckets import Charge, Refusal, refusal
from svc_project.lib.limits.memory import monotonic_milliseconds

REMEMBERED: Final = 1000
"""Milliseconds."""

_MANY: Final = 10_000


class _Spent(msgspec.Struct, frozen=True):
    """``used`` units of a bucket at ``at`` (milliseconds), while its limit was ``limit``."""

    at: int
    used: int
    limit: int


class SpentLimits:
    """The latest refusals, by bucket."""

    def __init__(self, clock: Callable[[], int] = monotonic_milliseconds) -> None:
        self._clock = clock
        self._spent: dict[str, _Spent] = {}

    def __bool__(self) -> bool:
        return bool(self._spent)

    def note(self, refused: Refusal) -> None:
        """Remember a refusal, unless the request can never fit."""
        charge = refused.charge
        if refused.is_final:
            return
        if len(self._spent) >= _MANY:
            self._spent.clear()
        used = (
            refused.wait_milliseconds * charge.limit + (charge.limit - charge.amount) * charge.unit
        )
        self._spent[charge.bucket] = _Spent(self._clock(), used, charge.limit)

    def refusal(self, charges: Sequence[Charge]) -> Refusal | None:
        """Return the refusal of a request that needs at least ``charges``, or None if they may fit."""
        now = self._clock()
        for charge in charges:
            known = self._spent.get(charge.bucket)
            if known is None:
                continue
            if now - known.at >= REMEMBERED or known.limit != charge.limit:
                del self._spent[charge.bucket]
                continue
            used = known.used - (now - known.at) * charge.limit
            if used + charge.amount * charge.unit > charge.limit * charge.unit:
                return refusal([charge], [used])
        return None
