"""The limit on refused requests, which were read and answered 400, 404, 409 or 413.

Such a request takes nothing from the ordinary limits, but reading it costs the server.
Rules: docs/explain/limits.md, Refused requests.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import msgspec

from svc_project.lib.errors import ApiError

BYTES_PER_UNIT: Final = 64 * 1024
MOST_UNITS: Final = 16
"""A refused request counts one unit for each begun ``BYTES_PER_UNIT`` of its body, at most
``MOST_UNITS``."""

_AT_FAULT: Final = frozenset({400, 404, 409, 413})
"""Statuses that blame the request."""

_UNLIMITED_FACTOR: Final = 10
"""Multiplies the least limit for an organization whose requests are unlimited."""
_MANY: Final = 10_000
"""Organizations in memory above which empty buckets are evicted."""


class TooManyRefused(msgspec.Struct, frozen=True):
    """An organization has to wait: its ``limit`` a minute, the ``used`` units, and the wait."""

    limit: int
    used: int
    wait_milliseconds: int

    @property
    def headers(self) -> dict[str, str]:
        """``retry-after`` headers, as for every 429."""
        return {
            "retry-after": str(-(-self.wait_milliseconds // 1000)),
            "retry-after-ms": str(self.wait_milliseconds),
        }


class _Bucket:
    __slots__ = ("at", "used")

    def __init__(self, at: float) -> None:
        self.at = at
        self.used = 0.0

    def drain(self, now: float, limit: int) -> float:
        self.used = max(0.0, self.used - (now - self.at) * limit / 60)
        self.at = now
        return self.used


class RefusedRequests:
    """Counts the refused requests of every organization in this process.

    ``per_minute`` is the least limit, None for no limit at all. An organization with a larger
    limit of requests may have as many refused. Each process counts separately, because the limit
    protects the process.
    """

    def __init__(self, per_minute: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._buckets: dict[str, _Bucket] = {}

    def too_many(
        self, organization_id: str, requests_per_minute: int | None
    ) -> TooManyRefused | None:
        """Return the wait of an organization over its limit, else None. Takes nothing."""
        bucket = self._buckets.get(organization_id)
        if bucket is None or self._per_minute is None:
            return None
        limit = self._limit(self._per_minute, requests_per_minute)
        over = bucket.drain(self._clock(), limit) + 1 - limit
        if over <= 0:
            return None
        return TooManyRefused(limit, round(bucket.used), max(1, int(over * 60_000 / limit) + 1))

    def count(
        self,
        organization_id: str,
        requests_per_minute: int | None,
        error: ApiError,
        body_bytes: int = 0,
    ) -> None:
        """Count a request refused by ``error``, if the error blames the request."""
        if self._per_minute is None or error.status not in _AT_FAULT:
            return
        self.charge(organization_id, requests_per_minute, body_bytes)

    def charge(
        self, organization_id: str, requests_per_minute: int | None, body_bytes: int = 0
    ) -> None:
        """Count a request that was read for nothing."""
        units = min(MOST_UNITS, max(1, -(-body_bytes // BYTES_PER_UNIT)))
        self.charge_units(organization_id, requests_per_minute, units)

    def charge_units(
        self, organization_id: str, requests_per_minute: int | None, units: int
    ) -> None:
        """Count what costs as much to read as ``units`` small requests. 0 counts nothing."""
        if self._per_minute is None or not units:
            return
        now = self._clock()
        bucket = self._buckets.get(organization_id)
        if bucket is None:
            self._evict_empty(now)
            bucket = self._buckets[organization_id] = _Bucket(now)
        bucket.drain(now, self._limit(self._per_minute, requests_per_minute))
        bucket.used += units

    @staticmethod
    def _limit(least: int, requests_per_minute: int | None) -> int:
        if requests_per_minute is None:
            return least * _UNLIMITED_FACTOR
        return max(least, requests_per_minute)

    def _evict_empty(self, now: float) -> None:
        """Evict buckets unused for two minutes: they are empty again, unless in deep debt."""
        if len(self._buckets) >= _MANY:
            self._buckets = {
                name: bucket for name, bucket in self._buckets.items() if now - bucket.at < 120
            }
