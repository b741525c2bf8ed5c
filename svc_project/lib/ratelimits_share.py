"""One worker's share of limits that all workers have together, while their store is away."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from svc_project.lib.ratelimits import Charge, Granted, MemoryLimiter, Refusal


class GrantedHere(Granted, kw_only=True):
    """A reservation that was ``taken`` from this worker's own buckets, each unit ``weight`` times."""

    taken: Granted
    weight: int


class WorkerShare:
    """Charges this worker's own buckets as if every live worker did the same."""

    def __init__(self) -> None:
        self._buckets = MemoryLimiter()

    def take(self, charges: Sequence[Charge], workers: int) -> Granted | Refusal:
        """Take every charge ``workers`` times, or none of them and say why.

        A charge that fits the limit is never made larger than it, nor than what is left of a
        window: the outage alone refuses nobody. Raises ``WindowUnknown``.
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
        """Have every window begin again from what the records say."""
        self._buckets.forget_windows()

    def _weighted(self, charge: Charge, weight: int) -> Charge:
        most = charge.limit if charge.window is None else self._buckets.left_of(charge)
        amount = max(charge.amount, min(charge.amount * weight, most))
        return msgspec.structs.replace(charge, amount=amount)
