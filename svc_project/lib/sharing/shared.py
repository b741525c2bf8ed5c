"""Places and bytes of memory that callers share, each up to a share of its own."""

from __future__ import annotations

from svc_project.lib.errors import ServerOverloaded
from svc_project.lib.sharing.fair_queue import FairQueue


class SharedPlaces:
    """Places of which one caller may hold ``share`` at once, and the queue in front of them.

    A caller that holds its whole share waits in its own queue; the others wait for a place and take
    turns (``FairQueue``). At most ``queue_length`` wait, half of them of one caller, for
    ``queue_seconds``.
    """

    def __init__(self, places: int, share: int, queue_length: int, queue_seconds: float) -> None:
        self._share = share
        self._queue_length = queue_length
        # A caller waits in its own queue and then in the common one: half of the time in each.
        self._queue_seconds = queue_seconds / 2
        self._all = FairQueue(places, queue_length, self._queue_seconds)
        self._each: dict[str, FairQueue] = {}
        self._waiting = 0

    @property
    def taken(self) -> int:
        """How many places are taken."""
        return self._all.inflight

    @property
    def waiting(self) -> int:
        """How many requests wait in the queues."""
        return self._waiting

    async def acquire(self, caller: str) -> None:
        """Take a place for ``caller``, or wait for one.

        Raises ``ServerOverloaded`` when too many wait already or the time is over. A cancelled call
        holds nothing.
        """
        own = self._each.get(caller)
        if own is None:
            own = self._each[caller] = FairQueue(
                self._share, self._queue_length // 2, self._queue_seconds
            )
        # A caller with nothing waiting always gets in: the common queue makes room for it.
        if self._waiting >= self._queue_length and own.inflight >= self._share:
            raise ServerOverloaded
        self._waiting += 1
        try:
            await own.acquire(caller)
            try:
                await self._all.acquire(caller)
            except BaseException:
                own.release(caller)
                raise
        finally:
            self._waiting -= 1
            self._drop_idle(caller, own)

    def release(self, caller: str) -> None:
        """Release a place of ``caller``."""
        own = self._each[caller]
        self._all.release(caller)
        own.release(caller)
        self._drop_idle(caller, own)

    def _drop_idle(self, caller: str, own: FairQueue) -> None:
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

        ``before``: bytes that the same request holds already. A caller's only request may exceed
        the share, so that a large one can run alone.
        """
        own = self._each.get(caller, 0)
        is_alone = own == before
        if (not is_alone and own + size > self._share) or self.held + size > self._most:
            raise ServerOverloaded
        self._each[caller] = own + size
        self.held += size

    def release(self, caller: str, size: int) -> None:
        """Release ``size`` bytes of ``caller``."""
        self.held -= size
        left = self._each.get(caller, 0) - size
        if left > 0:
            self._each[caller] = left
        else:
            self._each.pop(caller, None)
