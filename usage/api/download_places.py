"""Bounds on concurrent CSV downloads: in all, and of one organization.

Each holds a thread and a database connection for as long as its reader takes. The bounds are those
of a whole host, since one process runs the views of all its workers.
"""

from __future__ import annotations

import threading
from typing import Final
from weakref import WeakSet

from django.conf import settings

from svc_project.lib.errors import RateLimitExceeded, ServerOverloaded

RETRY_SECONDS: Final = 5
_RETRY: Final = {"retry-after": str(RETRY_SECONDS), "retry-after-ms": str(RETRY_SECONDS * 1000)}


class Place:
    """A place that an organization holds until it is released or garbage collected."""

    def __init__(self, places: DownloadPlaces, organization_id: str) -> None:
        self.organization_id = organization_id
        self._places = places

    def release(self) -> None:
        """Release the place; idempotent."""
        self._places._discard(self)


class DownloadPlaces:
    """The places of one process, for any number of threads."""

    def __init__(self) -> None:
        # Weak: nothing closes an answer that was discarded before it began.
        self._taken: WeakSet[Place] = WeakSet()
        self._lock = threading.Lock()

    @property
    def taken(self) -> int:
        """How many places are held."""
        return len(self._taken)

    def take(self, organization_id: str) -> Place:
        """Return a place for ``organization_id``.

        Raises ``RateLimitExceeded`` when the organization holds as many as it may, and
        ``ServerOverloaded`` when all are taken.
        """
        own_most = settings.SVC_EXPORT_DOWNLOADS_PER_ORGANIZATION
        with self._lock:
            own = sum(place.organization_id == organization_id for place in self._taken)
            if own >= own_most:
                raise RateLimitExceeded(
                    f"This organization already runs its maximum of CSV downloads ({own_most} at "
                    "once). Try again when one of them has ended, or read the pages "
                    "of format=json.",
                    headers=_RETRY,
                )
            if len(self._taken) >= settings.SVC_EXPORT_DOWNLOADS:
                raise ServerOverloaded(
                    "Too many CSV downloads are running. Try again shortly, or read the pages of "
                    "format=json.",
                    headers={"retry-after": str(RETRY_SECONDS)},
                )
            place = Place(self, organization_id)
            self._taken.add(place)
            return place

    def _discard(self, place: Place) -> None:
        with self._lock:
            self._taken.discard(place)


places = DownloadPlaces()
"""The places of this process."""
