"""How many CSV downloads run at once: in all, and of one organization.

Each holds a thread and a database connection for as long as its reader takes. The bounds are those
of a whole host: its workers divide them, so that they need no word with each other.
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
    """A place that an organization holds, until it is given back or nothing refers to it."""

    def __init__(self, places: DownloadPlaces, organization_id: str) -> None:
        self.organization_id = organization_id
        self._places = places

    def give_back(self) -> None:
        """Let go of the place; twice does no harm."""
        self._places._let_go(self)


class DownloadPlaces:
    """The places of one worker, for any number of threads."""

    def __init__(self) -> None:
        # Weak: an answer that was thrown away before it began is never closed by anybody.
        self._taken: WeakSet[Place] = WeakSet()
        self._lock = threading.Lock()

    @property
    def taken(self) -> int:
        """Places that are held."""
        return len(self._taken)

    def take(self, organization_id: str) -> Place:
        """A place for ``organization_id``.

        Raises ``RateLimitExceeded`` when the organization has as many as it may, and
        ``ServerOverloaded`` when all are taken.
        """
        own_most = _part(settings.SVC_EXPORT_DOWNLOADS_PER_ORGANIZATION)
        with self._lock:
            own = sum(place.organization_id == organization_id for place in self._taken)
            if own >= own_most:
                raise RateLimitExceeded(
                    f"This organization has as many CSV downloads running as it may ({own_most} on "
                    "this server process). Try again when one of them has ended, or read the pages "
                    "of format=json.",
                    headers=_RETRY,
                )
            if len(self._taken) >= _part(settings.SVC_EXPORT_DOWNLOADS):
                raise ServerOverloaded(
                    "Too many CSV downloads run at once. Try again shortly, or read the pages of "
                    "format=json.",
                    headers={"retry-after": str(RETRY_SECONDS)},
                )
            place = Place(self, organization_id)
            self._taken.add(place)
            return place

    def _let_go(self, place: Place) -> None:
        with self._lock:
            self._taken.discard(place)


def _part(of_all_workers: int) -> int:
    """What one worker has of it: at least one."""
    workers: int = settings.SVC_WORKERS
    return max(1, of_all_workers // workers)


places = DownloadPlaces()
"""The places of this process."""
