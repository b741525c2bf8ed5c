"""Quarantines requests that crash model servers.

A request is known by a keyed digest, in this process's memory, for a limited time. It becomes a
suspect when a connection was lost while it ran, or when a backend answered it with a server error
and could not be reached right after. One crash of one backend counts once, however many copies of
the request were running. A success clears a request at once, so a common request that happened to
run during a crash is not refused.
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

Fingerprint = bytes

MOST_SUSPECTS: Final = 1024
SAME_DEATH_SECONDS: Final = 5.0
"""Losses on one backend within this time are one crash: a server takes longer to restart."""
AFTERMATH_SECONDS: Final = 30.0
"""A server error is a crash when the backend cannot be reached within this time after it."""
MOST_IN_AFTERMATH: Final = 64


@dataclass(slots=True)
class _Suspect:
    last: float
    deaths: int = 0
    seen: dict[str, float] = field(default_factory=dict)
    """The time of the last counted crash, by backend."""


class Quarantine:
    """Refuses a request after ``deaths`` crashes (0: never), for ``seconds`` after the last one."""

    def __init__(
        self, deaths: int, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._deaths = deaths
        self._seconds = seconds
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._suspects: OrderedDict[Fingerprint, _Suspect] = OrderedDict()
        self._aftermath: dict[str, deque[tuple[float, Fingerprint]]] = {}
        self.refused = 0
        """How many requests were refused so far."""

    def fingerprint(self, caller: str, body: bytes) -> Fingerprint:
        """Fingerprint of a request, keyed by ``caller`` so that none can quarantine another's."""
        digest = blake2b(caller.encode(), key=self._key, digest_size=16)
        digest.update(b"\0")
        digest.update(body)
        return digest.digest()

    @property
    def has_suspects(self) -> bool:
        """Whether there are suspects, so that a fingerprint is worth its cost."""
        return bool(self._suspects)

    def is_quarantined(self, request: Fingerprint) -> bool:
        """Whether the request must not reach a backend now."""
        self._drop_expired()
        suspect = self._suspects.get(request)
        if suspect is None or suspect.deaths < self._deaths:
            return False
        self.refused += 1
        return True

    def lost(self, backend: str, request: Fingerprint) -> None:
        """Record that the connection to ``backend`` was lost while ``request`` ran."""
        if not self._deaths:
            return
        self._drop_expired()
        now = self._clock()
        suspect = self._suspects.setdefault(request, _Suspect(now))
        if now - suspect.seen.get(backend, float("-inf")) > SAME_DEATH_SECONDS:
            suspect.seen[backend] = now
            suspect.deaths += 1
        suspect.last = now
        self._suspects.move_to_end(request)
        if len(self._suspects) > MOST_SUSPECTS:
            self._suspects.popitem(last=False)

    def erred(self, backend: str, request: Fingerprint) -> None:
        """Record that ``backend`` answered ``request`` with a server error: it may have crashed."""
        if self._deaths:
            recent = self._aftermath.setdefault(backend, deque(maxlen=MOST_IN_AFTERMATH))
            recent.append((self._clock(), request))

    def unreachable(self, backend: str) -> None:
        """Record that ``backend`` cannot be reached: its recent server errors count as a crash."""
        since = self._clock() - AFTERMATH_SECONDS
        for moment, request in self._aftermath.pop(backend, ()):
            if moment >= since:
                self.lost(backend, request)

    def cleared(self, request: Fingerprint) -> None:
        """Clear a request that was answered successfully."""
        self._suspects.pop(request, None)

    def _drop_expired(self) -> None:
        since = self._clock() - self._seconds
        while self._suspects:
            first = next(iter(self._suspects))
            if self._suspects[first].last >= since:
                return
            del self._suspects[first]
