"""What one worker process holds at once: a bound for each kind of it, and each organization's share.

A request is in one place at a time: it arrives, is in flight once it was admitted, or lingers after
it was refused. So ``SVC_MAX_INFLIGHT`` bounds admitted requests alone, and whoever sends bodies
slowly or keys that open nothing fills places that nobody else needs.
"""

from __future__ import annotations

from typing import Final

from django.conf import settings

from svc_project.lib.errors import ServerOverloaded

NOBODY: Final = ""
"""Owns what is held for callers without a key: together they have the share of one organization."""


class Places:
    """A bound, and the part of it that one owner may hold; used from one event loop.

    ``kind`` names it in the metrics, ``what`` is what its places are called to callers.
    """

    __slots__ = (
        "_by_owner",
        "held",
        "kind",
        "most",
        "refused_full",
        "refused_share",
        "share",
        "what",
    )

    def __init__(self, kind: str, what: str, most: int) -> None:
        self.kind = kind
        self.what = what
        self.most = most
        self.share = max(1, int(most * settings.SVC_ORGANIZATION_SHARE))
        self.held = 0
        self.refused_full = 0
        """Refusals because all places were taken."""
        self.refused_share = 0
        """Refusals because the owner held its share."""
        self._by_owner: dict[str, int] = {}

    def check(self, size: int = 1, owner: str = NOBODY) -> None:
        """Raise ``ServerOverloaded`` when ``size`` more are too many; takes nothing."""
        if self.held + size > self.most:
            self.refused_full += 1
            raise ServerOverloaded
        if self._by_owner.get(owner, 0) + size > self.share:
            self.refused_share += 1
            if owner == NOBODY:
                raise ServerOverloaded
            raise ServerOverloaded(
                f"Your organization holds its share of this server's {self.what} ({self.share}). "
                "Try again when some of them have ended."
            )

    def take(self, size: int = 1, owner: str = NOBODY) -> None:
        """Hold ``size`` more. Raises ``ServerOverloaded``; then nothing is taken."""
        mine = self._by_owner.get(owner, 0) + size
        if mine > self.share or self.held + size > self.most:
            self.check(size, owner)
        self._by_owner[owner] = mine
        self.held += size

    def give_back(self, size: int = 1, owner: str = NOBODY) -> None:
        """Let go of what ``owner`` took."""
        left = self._by_owner.get(owner, 0) - size
        if left > 0:
            self._by_owner[owner] = left
        else:
            self._by_owner.pop(owner, None)
        self.held -= size


class Holder:
    """Whatever answers a caller, in at most one place at a time."""

    owner: str = NOBODY
    """The caller's organization, once its key was checked."""
    _place: Places | None = None

    def hold(self, places: Places) -> None:
        """Move to ``places``. Raises ``ServerOverloaded``; then it stays where it was."""
        places.take(1, self.owner)
        self.let_go()
        self._place = places

    def let_go(self) -> None:
        """Hold no place any more."""
        if self._place is not None:
            self._place.give_back(1, self.owner)
            self._place = None


arriving = Places("arriving", "requests that arrive", settings.SVC_MAX_ARRIVING)
"""Requests with a key, until they are admitted: the body is read, checks and limits are looked at."""
in_flight = Places("requests", "requests in flight", settings.SVC_MAX_INFLIGHT)
"""Admitted requests of both surfaces."""
lingering = Places("lingering", "refused requests", settings.SVC_MAX_LINGERING)
"""Refused requests whose unread body is let pass for a moment."""
unstarted = Places("unstarted", "WebSockets without 'start'", settings.SVC_MAX_UNSTARTED_SESSIONS)
sessions = Places("sessions", "speech sessions", settings.SVC_MAX_SPEECH_SESSIONS)
"""Admitted WebSocket sessions, speaking or idle."""
clones = Places("clones", "creations of voices", settings.SVC_MAX_CLONE_CREATIONS)
"""Creations of clones whose body has arrived; each holds one of up to 16 MB and what it becomes."""
ALL: Final = (arriving, in_flight, lingering, unstarted, sessions, clones)
