"""One worker's share of the common limits while their store is down."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from svc_project.lib.limits.buckets import Charge, Granted, Refusal
from svc_project.lib.limits.memory import MemoryLimiter


class GrantedHere(Granted, kw_only=True):
    """A reservation ``taken`` from this worker's own buckets, each unit ``weight`` times."""

    taken: Granted
    weight: int


class WorkerShare:
    """Charges this worker's own buckets as if every live worker did the same."""

    def __init__(self) -> None:
        self._buckets = MemoryLimiter()

    def take(self, charges: Sequence[Charge], workers: int) -> Granted | Refusal:
        """Take every charge ``workers`` times, or none of them and return the refusal.

        A charge that fits the limit is never enlarged above it, nor above the rest of a window: the
        outage alone refuses no request. Raises ``WindowUnknown``.
        """
        taken = self._buckets.take([self._weighted(charge, workers) for charge in charges])
        if isinstance(taken, Granted):
            return GrantedHere(charges, taken=taken, weight=workers)
        asked = next(c for c in charges if c.bucket == taken.charge.bucket)
        return msgspec.structs.replace(taken, charge=asked)

    def settle(self, granted: GrantedHere, actual: Sequence[int]) -> None:
        """Correct each charge to its ``actual`` amount; only the first call counts."""
        taken = granted.taken
        self._buckets.settle(
            taken,
            [
                charged.amount if amount == asked.amount else amount * granted.weight
                for asked, charged, amount in zip(
                    granted.charges, taken.charges, actual, strict=True
                )
            ],
        )

    def forget_windows(self) -> None:
        """Drop every window, so that each begins again from ``used_before``."""
        self._buckets.forget_windows()

    def _weighted(self, charge: Charge, weight: int) -> Charge:
        most = charge.limit if charge.window is None else self._buckets.left_of(charge)
        amount = max(charge.amount, min(charge.amount * weight, most))
        return msgspec.structs.replace(charge, amount=amount)
