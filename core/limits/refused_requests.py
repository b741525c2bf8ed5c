"""The limit on refused requests, which were read and answered 400, 404, 409 or 413.

Such a request takes nothing from the ordinary limits, but reading it costs the server.
Rules: docs/explain/limits.md, Refused requests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

import msgspec

from core.errors import ApiError
from core.limits.buckets import MINUTE, Bucket, monotonic_milliseconds

BYTES_PER_UNIT: Final = 64 * 1024
MOST_UNITS: Final = 16
"""A refused request counts one unit for each begun ``BYTES_PER_UNIT`` of its body, at most
``MOST_UNITS``."""

_AT_FAULT: Final = frozenset({400, 404, 409, 413})
"""Statuses that blame the request."""

_UNLIMITED_FACTOR: Final = 10
"""Multiplies the least limit for an organization whose requests are unlimited."""
_KEYS_OF_AN_ORGANIZATION: Final = 4
"""An organization's limit is that of so many keys: one broken client does not stop the others."""
_MANY: Final = 10_000
"""Keys and organizations in memory above which empty buckets are evicted."""


_Owner = str | tuple[str, str]
"""An organization's id, or that of an organization and of its key: people at the consoles of all
organizations have one key id, that of no key."""


class TooManyRefused(msgspec.Struct, frozen=True):
    """A caller has to wait: the ``limit`` a minute of its ``scope``, the ``used`` units, the wait."""

    scope: Literal["key", "organization"]
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


class RefusedRequests:
    """Counts the refused requests of every key and organization in this process.

    ``per_minute`` is the least limit of a key, None for no limit at all. Where the organization
    has a larger limit of requests, each of its keys may have as many refused; all of its keys
    together ``_KEYS_OF_AN_ORGANIZATION`` times as many. Each process counts separately, because
    the limit protects the process. Buckets are counted in parts, as those of ``Charge`` are: a unit
    is ``MINUTE`` of them. ``clock``: milliseconds.
    """

    def __init__(
        self, per_minute: int | None, clock: Callable[[], int] = monotonic_milliseconds
    ) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._buckets: dict[_Owner, Bucket] = {}

    def too_many(
        self, organization_id: str, api_key_id: str, requests_per_minute: int | None
    ) -> TooManyRefused | None:
        """Return the wait of a key, or else an organization, over its limit. Takes nothing."""
        if self._per_minute is None or organization_id not in self._buckets:
            return None
        limit = self._limit(self._per_minute, requests_per_minute)
        return self._over((organization_id, api_key_id), "key", limit) or self._over(
            organization_id, "organization", limit * _KEYS_OF_AN_ORGANIZATION
        )

    def count(
        self,
        organization_id: str,
        api_key_id: str,
        requests_per_minute: int | None,
        error: ApiError,
        body_bytes: int = 0,
    ) -> None:
        """Count a request refused by ``error``, if the error blames the request."""
        if self._per_minute is None or error.status not in _AT_FAULT:
            return
        self.charge(organization_id, api_key_id, requests_per_minute, body_bytes)

    def charge(
        self,
        organization_id: str,
        api_key_id: str,
        requests_per_minute: int | None,
        body_bytes: int = 0,
    ) -> None:
        """Count a request that was read for nothing."""
        units = min(MOST_UNITS, max(1, -(-body_bytes // BYTES_PER_UNIT)))
        self.charge_units(organization_id, api_key_id, requests_per_minute, units)

    def charge_units(
        self, organization_id: str, api_key_id: str, requests_per_minute: int | None, units: int
    ) -> None:
        """Count what costs as much to read as ``units`` small requests. 0 counts nothing.

        What exceeds the key's limit, as requests that run at the same time may, is the key's alone.
        """
        if self._per_minute is None or not units:
            return
        limit = self._limit(self._per_minute, requests_per_minute)
        key = self._drained((organization_id, api_key_id), limit)
        parts = units * MINUTE
        rest = max(0, limit * MINUTE - key.used)
        key.used += parts
        organization = self._drained(organization_id, limit * _KEYS_OF_AN_ORGANIZATION)
        organization.used += min(parts, rest)

    def _over(
        self, owner: _Owner, scope: Literal["key", "organization"], limit: int
    ) -> TooManyRefused | None:
        bucket = self._buckets.get(owner)
        if bucket is None:
            return None
        over = bucket.drain(self._clock(), limit) + MINUTE - limit * MINUTE
        if over <= 0:
            return None
        return TooManyRefused(scope, limit, round(bucket.used / MINUTE), int(over // limit) + 1)

    def _drained(self, owner: _Owner, limit: int) -> Bucket:
        now = self._clock()
        bucket = self._buckets.get(owner)
        if bucket is None:
            self._evict_empty(now)
            bucket = self._buckets[owner] = Bucket(now, limit)
        bucket.drain(now, limit)
        return bucket

    @staticmethod
    def _limit(least: int, requests_per_minute: int | None) -> int:
        if requests_per_minute is None:
            return least * _UNLIMITED_FACTOR
        return max(least, requests_per_minute)

    def _evict_empty(self, now: int) -> None:
        """Evict buckets unused for two minutes: they are empty again, unless in deep debt."""
        if len(self._buckets) >= _MANY:
            self._buckets = {
                name: bucket
                for name, bucket in self._buckets.items()
                if now - bucket.at < 2 * MINUTE
            }
