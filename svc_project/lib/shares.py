"""What many callers use together and none may use up: places, and bytes of memory."""

from __future__ import annotations

from svc_project.lib.capacity import Slots
from svc_project.lib.errors import ServerOverloaded


class SharedPlaces:
    """A number of places, of which one caller may have ``share`` at once, and the queue in front.

    A caller with all of its share waits in a queue of its own; the others wait for a place and take
    turns (``Slots``). In all ``queue_length`` wait, of one caller half of it, for ``queue_seconds``.
    """

    def __init__(self, places: int, share: int, queue_length: int, queue_seconds: float) -> None:
        self._share = share
        self._queue_length = queue_length
        # A caller waits in its own queue and then in the common one: half of the time in each.
        self._queue_seconds = queue_seconds / 2
        self._all = Slots(places, queue_length, self._queue_seconds)
        self._each: dict[str, Slots] = {}
        self._waiting = 0

    @property
    def taken(self) -> int:
        """Places that are taken."""
        return self._all.inflight

    @property
    def waiting(self) -> int:
        """Callers in the queues, each as often as it waits."""
        return self._waiting

    async def acquire(self, caller: str) -> None:
        """Take a place for ``caller``, or wait for one.

        Raises ``ServerOverloaded`` when too many wait already or the time is over. Cancelled
        meanwhile, it holds nothing.
        """
        own = self._each.get(caller)
        if own is None:
            own = self._each[caller] = Slots(
                self._share, self._queue_length // 2, self._queue_seconds
            )
        # One that has nothing waiting is let in: the common queue makes room for it.
        if self._waiting >= self._queue_length and own.inflight >= self._share:
            raise ServerOverloaded
        self._waiting += 1
        try:
            await own.acquire(caller)
            try:
                await self._all.acquire(caller)
            except BaseException:
                own.release()
                raise
        finally:
            self._waiting -= 1
            self._forget_idle(caller, own)

    def release(self, caller: str) -> None:
        """Give a place of ``caller`` back."""
        own = self._each[caller]
        self._all.release()
        own.release()
        self._forget_idle(caller, own)

    def _forget_idle(self, caller: str, own: Slots) -> None:
        if not own.inflight and not own.waiting and self._each.get(caller) is own:
            del self._each[caller]


class SharedBytes:
    """Bytes held in memory for callers: ``most`` in all, and ``share`` of them for one caller."""

    def __init__(self, most: int, share: int) -> None:
        self._most = most
        self._share = share
        self._each: dict[str, int] = {}
        self.held = 0

    def take(self, caller: str, size: int, before: int = 0) -> None:
        """Hold ``size`` more bytes for ``caller``. Raises ``ServerOverloaded``; then takes nothing.

        ``before``: what the same request holds already. One that holds all that its caller does may
        pass the share, so that a large one passes alone.
        """
        own = self._each.get(caller, 0)
        is_alone = own == before
        if (not is_alone and own + size > self._share) or self.held + size > self._most:
            raise ServerOverloaded
        self._each[caller] = own + size
        self.held += size

    def give_back(self, caller: str, size: int) -> None:
        """Let go of what was taken."""
        self.held -= size
        left = self._each.get(caller, 0) - size
        if left > 0:
            self._each[caller] = left
        else:
            self._each.pop(caller, None)
