"""Which backends close a connection after each streamed answer, as far as a worker has seen it.

docs/explain/backends.md, "Kept connections", has the rules and their reasons.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import aiohttp

from inference.snapshot import BackendRef

REMEMBERED_SECONDS: Final = 600.0
"""What was learnt holds for ten minutes. A server that was restarted three times in a row, or that
an update has mended, costs each stream a connection for no longer than that; one that does close is
learnt again by three streams, which costs three retries at most."""

_CLOSED_IN_A_ROW: Final = 3
_KEEPS: Final = -1


@dataclass(frozen=True, slots=True)
class _Seen:
    closed: int
    """How often in a row a streamed answer's end was its connection's; ``_KEEPS`` once one was
    still open."""
    until: float


class StreamCloses:
    """What the ends of streams have taught about each backend; it belongs to the backend at its
    address, and lapses ``REMEMBERED_SECONDS`` after it was seen.

    ``clock`` gives seconds and never goes back.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._seen: dict[tuple[str, str], _Seen] = {}

    def is_expected(self, backend: BackendRef) -> bool:
        """Whether the backend is known to close its connections after streams."""
        return self._closed(backend) >= _CLOSED_IN_A_ROW

    def is_unknown(self, backend: BackendRef) -> bool:
        """Whether the end of another stream would teach anything."""
        return 0 <= self._closed(backend) < _CLOSED_IN_A_ROW

    def take_closed(self, backend: BackendRef) -> bool:
        """A stream's end was its connection's; returns whether that made it expected."""
        if not self.is_unknown(backend):
            return False
        self._remember(backend, self._closed(backend) + 1)
        return self.is_expected(backend)

    def take_kept(self, backend: BackendRef) -> None:
        """A connection was still open after a stream."""
        if self.is_unknown(backend):
            self._remember(backend, _KEEPS)

    def take_stale(self, backend: BackendRef) -> None:
        """A kept connection turned out to be closed: that one was once kept says nothing now."""
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


def is_announced(response: aiohttp.ClientResponse) -> bool:
    """Whether the answer itself says that its connection ends with it (RFC 9112, 9.3 and 6.3)."""
    headers, version = response.headers, response.version
    options = {option.strip() for option in headers.get("Connection", "").lower().split(",")}
    if "close" in options:
        return True
    if version is not None and version < aiohttp.HttpVersion11:
        return "keep-alive" not in options
    return "Content-Length" not in headers and "Transfer-Encoding" not in headers


def _key(backend: BackendRef) -> tuple[str, str]:
    return backend.id, backend.base_url
