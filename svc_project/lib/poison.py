"""Requests that were there whenever a model server died.

What is kept is a keyed digest, in this process's memory, for a limited time. A request is only
suspected when a connection was lost while it ran, or when it was answered with a server error by a
backend that could not be reached right after; and one death of one backend counts once, however
many copies of the request it took with it. A success clears a request at once, so a common one
that happened to run when something broke is not held up.
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
"""Losses on one backend within this time are one death: a server takes longer to come back."""
AFTERMATH_SECONDS: Final = 30.0
"""A server error is a crash when the backend cannot be reached within this time after it."""
MOST_IN_AFTERMATH: Final = 64


@dataclass(slots=True)
class _Suspect:
    last: float
    deaths: int = 0
    seen: dict[str, float] = field(default_factory=dict)
    """The last death that counted, by backend."""


class Poison:
    """``deaths`` after which a request is refused, 0: never; for ``seconds`` after the last."""

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
        """Requests that were refused so far."""

    def fingerprint(self, caller: str, body: bytes) -> Fingerprint:
        """Of a request; ``caller`` is who sent it, so that nobody's requests taint another's."""
        digest = blake2b(caller.encode(), key=self._key, digest_size=16)
        digest.update(b"\0")
        digest.update(body)
        return digest.digest()

    @property
    def has_suspects(self) -> bool:
        """Whether a fingerprint is worth making."""
        return bool(self._suspects)

    def is_poison(self, request: Fingerprint) -> bool:
        """Whether the request must not reach a backend now."""
        self._forget_old()
        suspect = self._suspects.get(request)
        if suspect is None or suspect.deaths < self._deaths:
            return False
        self.refused += 1
        return True

    def lost(self, backend: str, request: Fingerprint) -> None:
        """The connection to ``backend`` was lost while it worked on ``request``."""
        if not self._deaths:
            return
        self._forget_old()
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
        """``backend`` answered ``request`` with a server error: it may be about to die."""
        if self._deaths:
            recent = self._aftermath.setdefault(backend, deque(maxlen=MOST_IN_AFTERMATH))
            recent.append((self._clock(), request))

    def unreachable(self, backend: str) -> None:
        """``backend`` cannot be reached: what it erred on just before is what it died of."""
        since = self._clock() - AFTERMATH_SECONDS
        for moment, request in self._aftermath.pop(backend, ()):
            if moment >= since:
                self.lost(backend, request)

    def cleared(self, request: Fingerprint) -> None:
        """The request was answered well."""
        self._suspects.pop(request, None)

    def _forget_old(self) -> None:
        since = self._clock() - self._seconds
        while self._suspects:
            first = next(iter(self._suspects))
            if self._suspects[first].last >= since:
                return
            del self._suspects[first]
