"""How many requests a backend serves at once, and who is next when it is full."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque

from svc_project.lib.errors import ServerOverloaded

_Waiter = asyncio.Future[None]


class Slots:
    """The slots of one backend in one worker, and the short queue in front of them.

    Freed slots go round robin over the organizations that wait, first come first served inside
    one. When the queue is full, the organization that has most of it gives up its newest place
    to one that has at least two fewer, so that one tenant cannot keep the others out.
    """

    def __init__(self, limit: int, queue_length: int, queue_seconds: float) -> None:
        self._limit = limit
        self._inflight = 0
        self._waiting = 0
        self._queues: OrderedDict[str, deque[_Waiter]] = OrderedDict()
        self.queue_length = queue_length
        self.queue_seconds = queue_seconds

    @property
    def inflight(self) -> int:
        """Slots that are taken; above ``limit`` for a while after it was lowered."""
        return self._inflight

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return self._waiting

    @property
    def limit(self) -> int:
        """How many slots there are. May be changed at any time; running requests go on."""
        return self._limit

    @limit.setter
    def limit(self, limit: int) -> None:
        self._limit = limit
        self._hand_out()

    def try_acquire(self) -> bool:
        """Take a free slot, without waiting and never past someone who waits."""
        if self._inflight >= self._limit or self._waiting:
            return False
        self._inflight += 1
        return True

    async def acquire(self, organization_id: str) -> None:
        """Take a slot, or wait for one.

        Raises ``ServerOverloaded`` (503) when the queue is full or ``queue_seconds`` are over. A
        caller that is cancelled meanwhile holds nothing.
        """
        if self.try_acquire():
            return
        if self._waiting >= self.queue_length:
            self._make_room(organization_id)
        loop = asyncio.get_running_loop()
        waiter: _Waiter = loop.create_future()
        self._queues.setdefault(organization_id, deque()).append(waiter)
        self._waiting += 1
        timer = loop.call_later(self.queue_seconds, self._refuse, organization_id, waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self.release()
            else:
                self._leave_queue(organization_id, waiter)
            raise
        finally:
            timer.cancel()

    def release(self) -> None:
        """Give a slot back; raises ``RuntimeError`` when none is taken."""
        if not self._inflight:
            raise RuntimeError("release() without a slot taken.")
        self._inflight -= 1
        self._hand_out()

    def _hand_out(self) -> None:
        while self._inflight < self._limit and self._waiting:
            organization_id, queue = self._queues.popitem(last=False)
            waiter = queue.popleft()
            self._waiting -= 1
            if queue:
                self._queues[organization_id] = queue
            if not waiter.done():
                self._inflight += 1
                waiter.set_result(None)

    def _make_room(self, organization_id: str) -> None:
        """Refuse the newest waiter of the largest queue, or raise when none is large enough."""
        own = len(self._queues.get(organization_id, ()))
        largest = max(self._queues, key=lambda name: len(self._queues[name]), default=None)
        if largest is None or len(self._queues[largest]) < own + 2:
            raise ServerOverloaded
        self._refuse(largest, self._queues[largest][-1])

    def _refuse(self, organization_id: str, waiter: _Waiter) -> None:
        self._leave_queue(organization_id, waiter)
        if not waiter.done():
            waiter.set_exception(ServerOverloaded())

    def _leave_queue(self, organization_id: str, waiter: _Waiter) -> None:
        queue = self._queues.get(organization_id)
        if queue is not None and waiter in queue:
            queue.remove(waiter)
            self._waiting -= 1
            if not queue:
                del self._queues[organization_id]
