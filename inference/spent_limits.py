"""Limits that are known to be used up, so that a large body need not be read to refuse it.

What the store of the limits answered is remembered for a second. So no request waits for the store
twice, tokens that are given back and limits that are raised are seen a second later at most, and
whoever asks on costs one reading a second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from svc_project.lib.ratelimits import Charge, Refusal, monotonic_milliseconds, refusal

REMEMBERED: Final = 1000
"""Milliseconds."""

_MANY: Final = 10_000


class _Spent(msgspec.Struct, frozen=True):
    """``used`` parts of a bucket at the moment ``at``, counted against ``limit``."""

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
        """Remember a refusal of something that would fit later."""
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
        """The refusal of a request that takes ``charges`` or more, if one of them is known not to fit."""
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
