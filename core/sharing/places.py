"""Bounds on what callers hold at once, and the share of them that one caller may hold.

A request holds one place at a time: it is arriving, in flight once admitted, or lingering after a
refusal. So ``SVC_MAX_INFLIGHT`` bounds admitted requests alone, and clients that send bodies slowly
or invalid keys take no places of admitted requests.
"""

from __future__ import annotations

from typing import Final

from django.conf import settings

from core.errors import ServerOverloaded

WITHOUT_KEY: Final = ""
"""The owner for callers without a key: together they have the share of one organization."""


class Share:
    """A bound on what all owners hold, and the share of it that one owner may hold.

    It counts places or bytes: ``most`` in all, ``most_each`` of one owner. ``what`` names them to an
    owner that is refused because of its share. Used from one event loop; users in several threads
    lock it.
    """

    __slots__ = (
        "_by_owner",
        "held",
        "most",
        "most_each",
        "refused_full",
        "refused_share",
        "what",
    )

    def __init__(self, most: int, most_each: int, what: str = "") -> None:
        self.most = most
        self.most_each = most_each
        self.what = what
        self.held = 0
        self.refused_full = 0
        """Refusals because all was taken."""
        self.refused_share = 0
        """Refusals because the owner held its whole share."""
        self._by_owner: dict[str, int] = {}

    def check(self, size: int = 1, owner: str = WITHOUT_KEY, before: int | None = None) -> None:
        """Raise ``ServerOverloaded`` when ``size`` more are too many; take nothing.

        ``before``: what the same request holds already, where an owner's only request may exceed
        the share, so that a large one can run alone.
        """
        if self.held + size > self.most:
            self.refused_full += 1
            raise ServerOverloaded().because(f"{self.what or 'places'}: full")
        own = self._by_owner.get(owner, 0)
        if own + size > self.most_each and own != before:
            self.refused_share += 1
            if owner == WITHOUT_KEY or not self.what:
                raise ServerOverloaded().because(f"{self.what or 'places'}: share")
            raise ServerOverloaded(
                f"Your organization holds its share of this server's {self.what} "
                f"({self.most_each}). Try again when some of them have ended."
            ).because(f"{self.what}: share")

    def take(self, size: int = 1, owner: str = WITHOUT_KEY, before: int | None = None) -> None:
        """Hold ``size`` more. Raises as ``check`` does; then nothing is taken."""
        mine = self._by_owner.get(owner, 0) + size
        if mine > self.most_each or self.held + size > self.most:
            self.check(size, owner, before)
        self._by_owner[owner] = mine
        self.held += size

    def release(self, size: int = 1, owner: str = WITHOUT_KEY) -> None:
        """Release ``size`` of what ``owner`` holds."""
        left = self._by_owner.get(owner, 0) - size
        if left > 0:
            self._by_owner[owner] = left
        else:
            self._by_owner.pop(owner, None)
        self.held -= size


class Holder:
    """A request or session that holds at most one place at a time."""

    owner: str = WITHOUT_KEY
    """The caller's organization, once its key was checked."""
    _place: Share | None = None

    def hold(self, places: Share) -> None:
        """Move to ``places``. Raises ``ServerOverloaded``, and then keeps its earlier place."""
        places.take(1, self.owner)
        if self._place is not None:
            self._place.release(1, self.owner)
        self._place = places

    def release_place(self) -> None:
        """Release the place that is held, if any."""
        if self._place is not None:
            self._place.release(1, self.owner)
            self._place = None


def of_organizations(most: int, what: str) -> Share:
    """A bound whose owners are organizations: each has the share ``SVC_ORGANIZATION_SHARE``."""
    return Share(most, max(1, int(most * settings.SVC_ORGANIZATION_SHARE)), what)


arriving: Final = of_organizations(settings.SVC_MAX_ARRIVING, "requests that arrive")
"""Requests with a key that are not admitted yet: body, checks and limits are under way."""
in_flight: Final = of_organizations(settings.SVC_MAX_INFLIGHT, "requests in flight")
"""Admitted requests of both surfaces."""
lingering: Final = of_organizations(settings.SVC_MAX_LINGERING, "refused requests")
"""Refused requests whose rest of the body is read briefly."""
unstarted: Final = of_organizations(
    settings.SVC_MAX_UNSTARTED_SESSIONS, "WebSockets without 'start'"
)
sessions: Final = of_organizations(settings.SVC_MAX_SPEECH_SESSIONS, "speech sessions")
"""Admitted WebSocket sessions, speaking or idle."""
clones: Final = of_organizations(settings.SVC_MAX_CLONE_CREATIONS, "creations of voices")
"""Clone creations whose body has arrived; each holds up to 16 MB and the audio decoded from it."""
watching: Final = of_organizations(settings.SVC_MAX_WATCHERS, "pages with live requests")
"""Pages of the console that show requests as they end."""
sound_bytes: Final = of_organizations(settings.SVC_MAX_SOUND_BYTES, "bytes of sound")
"""Sound held in memory: complete files until they are sent, and frames of sessions."""
held_bodies: Final = of_organizations(
    settings.SVC_MAX_BODY_BYTES_INFLIGHT, "bytes of request bodies"
)
"""Each byte of a body counts from its arrival to the end of the request."""
BY_KIND: Final = {
    "arriving": arriving,
    "requests": in_flight,
    "lingering": lingering,
    "unstarted": unstarted,
    "sessions": sessions,
    "clones": clones,
    "watching": watching,
    "sound_bytes": sound_bytes,
    "body_bytes": held_bodies,
}
"""What ``svc_capacity`` shows, by its label."""
