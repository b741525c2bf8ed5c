"""Learns which backends close a connection after each streamed answer, in each worker.

docs/explain/backends.md, "Kept connections", has the rules and their reasons.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from inference.catalog.snapshot import BackendRef

REMEMBERED_SECONDS: Final = 600.0
"""An observation expires after ten minutes. A server that was restarted three times in a row, or
fixed by an update, costs each stream a new connection for no longer than that; one that does close
is learnt again from three streams, which costs three retries at most."""

_CLOSED_IN_A_ROW: Final = 3
_KEEPS: Final = -1


@dataclass(frozen=True, slots=True)
class _Seen:
    closed: int
    """Consecutive streams after which the connection was closed; ``_KEEPS`` once one stayed open."""
    until: float


class StreamCloses:
    """Remembers for each backend and address whether connections stay open after streams.

    Observations expire after ``REMEMBERED_SECONDS``. ``clock`` is in seconds and monotonic.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._seen: dict[tuple[str, str], _Seen] = {}

    def is_expected(self, backend: BackendRef) -> bool:
        """Whether the backend is known to close its connections after streams."""
        return self._closed(backend) >= _CLOSED_IN_A_ROW

    def is_unknown(self, backend: BackendRef) -> bool:
        """Whether more observations are needed for this backend."""
        return 0 <= self._closed(backend) < _CLOSED_IN_A_ROW

    def record_closed(self, backend: BackendRef) -> bool:
        """Record a connection that closed with its stream; return whether closes are now expected."""
        if not self.is_unknown(backend):
            return False
        self._remember(backend, self._closed(backend) + 1)
        return self.is_expected(backend)

    def record_kept(self, backend: BackendRef) -> None:
        """Record a connection that was still open after a stream."""
        if self.is_unknown(backend):
            self._remember(backend, _KEEPS)

    def record_stale(self, backend: BackendRef) -> None:
        """Record a kept connection that was closed: an earlier ``record_kept`` no longer holds."""
        if self._closed(backend) == _KEEPS:
            del self._seen[_key(backend)]

    def _closed(self, backend: BackendRef) -> int:
        seen = self._seen.get(_key(backend))
        if seen is None:
            return 0
        if seen.until <= self._clock():
            del self._seen[_key(backend)]
            return 0
        return seen.closed

    def _remember(self, backend: BackendRef, closed: int) -> None:
        self._seen[_key(backend)] = _Seen(closed, self._clock() + REMEMBERED_SECONDS)


def _key(backend: BackendRef) -> tuple[str, str]:
    return backend.id, backend.base_url
