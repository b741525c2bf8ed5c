"""Organizations take turns: slots with a queue in front of them, and threads that work it off."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

from core.errors import ServerOverloaded
from core.sharing.priority import Priority
from core.sharing.processors import Niceness, lower_priority

RECENT_SECONDS: Final = 300.0
"""How long after the last request of an organization, or of the class ``INTERACTIVE``, slots stay
reserved for it."""
TURN: Final = 16
"""While a class waits it gets at least one of so many slots that are handed out, whatever waits in
higher classes; where two classes are owed one, the second gets the slot after."""
LARGE_BODY: Final = 64 * 1024
"""Bytes. Request bodies up to this size are parsed on the event loop, in some milliseconds at most;
larger ones in a thread."""

_FULL: Final = "queue for a slot: full"
_MOST_WAITING: Final = 10_000
_LONGEST_WAIT_SECONDS: Final = 600.0
"""Admission bounds how many requests wait for threads (``SVC_MAX_INFLIGHT``); these only end a
queue that does not move."""
_CLASSES: Final = tuple(Priority)
_INTERACTIVE, _STANDARD, _BATCH = _CLASSES
_OWED: Final = TURN - 1
"""A class that was passed over so many times gets the next slot."""

Made = TypeVar("Made")


class _Waiter:
    """One request in the queues of ``waits_in``; it gets a slot of the first that has one."""

    __slots__ = ("found", "priority", "waits_in")

    def __init__(self, priority: Priority) -> None:
        self.priority = priority
        self.found: asyncio.Future[FairQueue] = asyncio.get_running_loop().create_future()
        self.waits_in: list[FairQueue] = []


class FairQueue:
    """Slots, such as those of one backend in one worker, and the short queue in front of them.

    Freed slots go to the highest class that waits, and in it round robin over the waiting
    organizations, first come first served inside one. A class that was passed over ``TURN - 1``
    times gets the next slot; the times are counted in slots, and go on when its requests leave.
    When the queue is full, the organization with most waiting requests of a class loses its newest
    one to an organization that has at least two fewer there, so that one tenant cannot keep the
    others out; and before that the lowest class loses one to a higher class, but not its only one.

    ``reserved`` is the part of the slots kept for organizations that hold fewer than that: while
    another organization used the slots recently, one with as many of its own gets none of the
    last. So an organization whose answers last for minutes cannot hold them all. The gateway's own
    use, for the organization "", reserves nothing. The same part is kept from the class ``BATCH``
    while ``INTERACTIVE`` used the slots recently; of these, batch gets a slot that it is owed while
    it holds fewer than that.

    ``most_each`` is a share instead: how many slots one organization may hold, also while the rest
    is free. Then it has at most half of the queue, and waits behind the others for a slot that it
    released itself.
    """

    def __init__(
        self,
        limit: int,
        queue_length: int,
        queue_seconds: float,
        reserved: float = 0.0,
        *,
        most_each: int | None = None,
    ) -> None:
        self._reserved = reserved
        self._most_each = most_each
        self._limit = limit
        self._reserve = self._slots_reserved()
        self._inflight = 0
        self._held: dict[str, int] = {}
        self._newest: str | None = None
        self._newest_at = self._other_at = -RECENT_SECONDS
        self._interactive_at = -RECENT_SECONDS
        self._batch_held = 0
        self._passed = [0 for _ in _CLASSES]
        self._waiting = 0
        self._waiting_in = [0 for _ in _CLASSES]
        self._queues: list[OrderedDict[str, deque[_Waiter]]] = [OrderedDict() for _ in _CLASSES]
        self.queue_length = queue_length
        self.queue_seconds = queue_seconds
        self.on_wait: Callable[[], None] | None = None
        """Called when a request begins to wait, and when one is refused for want of room."""

    @property
    def inflight(self) -> int:
        """Slots that are taken; above ``limit`` for a while after it was lowered."""
        return self._inflight

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return self._waiting

    @property
    def waiting_by_class(self) -> tuple[int, ...]:
        """Requests in the queue, by the numbers of their classes."""
        return tuple(self._waiting_in)

    @property
    def limit(self) -> int:
        """How many slots there are. May be changed at any time; running requests go on."""
        return self._limit

    @limit.setter
    def limit(self, limit: int) -> None:
        self._limit = limit
        self._reserve = self._slots_reserved()
        self._hand_out()

    def try_acquire(self, organization_id: str, priority: Priority = _STANDARD) -> bool:
        """Take a free slot without waiting; never ahead of a waiting request that could have it."""
        if self._reserve and organization_id:
            self._note_use(organization_id)
        if priority is not _STANDARD:
            return self._try_in_class(organization_id, priority)
        if self._inflight >= self._limit:
            return False
        if self._waiting:
            return self._try_in_class(organization_id, priority)
        # The usual case, which costs nothing for the classes.
        if not self._may_take(organization_id):
            return False
        self._take(organization_id)
        return True

    def _try_in_class(self, organization_id: str, priority: Priority) -> bool:
        """``try_acquire`` where a request waits, or the class is not the usual one."""
        if priority is _INTERACTIVE:
            self._interactive_at = time.monotonic()
        if self._inflight >= self._limit:
            return False
        if self._waiting:
            self._hand_out()
            if organization_id in self._queues[priority]:
                return False
        if not self._class_may_take(organization_id, priority):
            return False
        self._take_in_class(organization_id, priority)
        return True

    async def acquire(self, organization_id: str, priority: Priority = _STANDARD) -> None:
        """Take a slot, or wait for one, as ``acquire_first`` does."""
        if not self.try_acquire(organization_id, priority):
            await acquire_first((self,), organization_id, priority)

    def release(self, organization_id: str, priority: Priority = _STANDARD) -> None:
        """Release a slot that was taken in the class ``priority``.

        Raises ``RuntimeError`` when the organization has none.
        """
        held = self._held.get(organization_id, 0)
        if not held:
            raise RuntimeError("release() without a slot taken.")
        if held == 1:
            del self._held[organization_id]
        else:
            self._held[organization_id] = held - 1
        self._inflight -= 1
        if priority is _BATCH:
            self._batch_held -= 1
        if self._waiting:
            queues = self._queues[priority]
            if held == self._most_each and organization_id in queues:
                queues.move_to_end(organization_id)
            self._hand_out()

    def _hand_out(self) -> None:
        while self._inflight < self._limit and self._waiting:
            found = self._next()
            if found is None:
                return
            priority, organization_id = found
            queues = self._queues[priority]
            queue = queues.pop(organization_id)
            waiter = queue.popleft()
            self._waiting -= 1
            self._waiting_in[priority] -= 1
            if queue:
                queues[organization_id] = queue
            if not waiter.found.done():
                self._take_in_class(organization_id, priority)
                waiter.found.set_result(self)

    def _next(self) -> tuple[Priority, str] | None:
        """The class and organization of the waiting request that gets the next slot, if one may."""
        classes: Sequence[Priority] = _CLASSES
        passed = self._passed
        if max(passed) >= _OWED:
            # Those that are owed a slot first, then by rank.
            classes = sorted(classes, key=lambda each: -passed[each] * (passed[each] >= _OWED))
        for priority in classes:
            for organization_id in self._queues[priority]:
                if self._class_may_take(organization_id, priority):
                    return priority, organization_id
        return None

    def _take(self, organization_id: str) -> None:
        self._held[organization_id] = self._held.get(organization_id, 0) + 1
        self._inflight += 1

    def _take_in_class(self, organization_id: str, priority: Priority) -> None:
        """Take a slot, and count it for the other classes that wait."""
        self._take(organization_id)
        if priority is _BATCH:
            self._batch_held += 1
        self._passed[priority] = 0
        if self._waiting > self._waiting_in[priority]:
            for each in _CLASSES:
                if each is not priority and self._waiting_in[each]:
                    self._passed[each] += 1

    def _slots_reserved(self) -> int:
        if not self._reserved or self._limit < 2:
            return 0
        return max(1, int(self._limit * self._reserved))

    def _may_take(self, organization_id: str) -> bool:
        free = self._limit - self._inflight
        if self._most_each is not None:
            return free > 0 and self._held.get(organization_id, 0) < self._most_each
        return free > self._reserve or (
            free > 0
            and (
                self._held.get(organization_id, 0) < self._reserve
                or not self._is_used_by_others(organization_id)
            )
        )

    def _class_may_take(self, organization_id: str, priority: Priority) -> bool:
        if (
            priority is _BATCH
            and self._limit - self._inflight <= self._reserve
            and time.monotonic() - self._interactive_at < RECENT_SECONDS
            and (self._passed[_BATCH] < _OWED or self._batch_held >= self._reserve)
        ):
            return False
        return self._may_take(organization_id)

    def _note_use(self, organization_id: str) -> None:
        if organization_id != self._newest:
            self._other_at = self._newest_at
            self._newest = organization_id
        self._newest_at = time.monotonic()

    def _is_used_by_others(self, organization_id: str) -> bool:
        """Whether another organization used these slots recently."""
        used_at = self._other_at if organization_id == self._newest else self._newest_at
        return time.monotonic() - used_at < RECENT_SECONDS

    def _join(self, organization_id: str, waiter: _Waiter) -> None:
        """Put ``waiter`` into the queue. Raises ``ServerOverloaded`` when there is no room for it."""
        queues = self._queues[waiter.priority]
        own = len(queues.get(organization_id, ()))
        if self._most_each is not None and own >= self.queue_length // 2:
            raise ServerOverloaded().because("queue for a slot: share")
        if self._waiting >= self.queue_length:
            self._make_room(waiter.priority, own)
        queues.setdefault(organization_id, deque()).append(waiter)
        self._waiting += 1
        self._waiting_in[waiter.priority] += 1
        if self.on_wait is not None:
            self.on_wait()

    def _make_room(self, priority: Priority, own: int) -> None:
        """Refuse a waiter of the lowest class below ``priority`` that has one to lose.

        Without one, refuse the newest of the largest queue in ``priority``, or raise when it is not
        two longer than ``own``.
        """
        # A class keeps a place, so that it has a waiter when it is owed a slot.
        kept = int(self.queue_length >= len(_CLASSES))
        for lower in reversed(_CLASSES[priority + 1 :]):
            if self._waiting_in[lower] > kept:
                queues = self._queues[lower]
                # Of equals the last in turn, which is mostly the newest.
                longest = max(reversed(queues), key=lambda name: len(queues[name]))
                self._displace(longest, queues[longest][-1])
                return
        queues = self._queues[priority]
        largest = max(queues, key=lambda name: len(queues[name]), default=None)
        if largest is None or len(queues[largest]) < own + 2:
            raise ServerOverloaded().because(_FULL)
        self._displace(largest, queues[largest][-1])

    def _displace(self, organization_id: str, waiter: _Waiter) -> None:
        self._leave(organization_id, waiter)
        waiter.waits_in.remove(self)
        if not waiter.waits_in:
            _refuse(waiter, _FULL)

    def _leave(self, organization_id: str, waiter: _Waiter) -> None:
        queues = self._queues[waiter.priority]
        queue = queues.get(organization_id)
        if queue is not None and waiter in queue:
            queue.remove(waiter)
            self._waiting -= 1
            self._waiting_in[waiter.priority] -= 1
            if not queue:
                del queues[organization_id]


async def acquire_first(
    queues: Sequence[FairQueue], organization_id: str, priority: Priority = _STANDARD
) -> FairQueue:
    """Wait in all of ``queues``, whose slots were asked for, and return the one that gave a slot first.

    The request has its turn in each, and leaves the others when it gets a slot. Raises
    ``ServerOverloaded`` (503) when every queue is full, or after the shortest ``queue_seconds``. A
    cancelled caller holds nothing.
    """
    waiter = _Waiter(priority)
    for queue in queues:
        with suppress(ServerOverloaded):
            queue._join(organization_id, waiter)
            waiter.waits_in.append(queue)
    if not waiter.waits_in:
        for queue in queues:
            if queue.on_wait is not None:
                queue.on_wait()
        raise ServerOverloaded().because(_FULL)
    seconds = min(queue.queue_seconds for queue in waiter.waits_in)
    why = f"no slot within {seconds:g} s"
    timer = asyncio.get_running_loop().call_later(seconds, _refuse, waiter, why)
    try:
        return await waiter.found
    except asyncio.CancelledError:
        found = waiter.found
        if found.done() and not found.cancelled() and found.exception() is None:
            found.result().release(organization_id, priority)
        raise
    finally:
        timer.cancel()
        for queue in waiter.waits_in:
            queue._leave(organization_id, waiter)
        # The traceback of a refusal holds this frame: with the future it would be a cycle.
        del waiter


def _refuse(waiter: _Waiter, why: str) -> None:
    if not waiter.found.done():
        waiter.found.set_exception(ServerOverloaded().because(why))


class FairPool:
    """Threads for work that would block the event loop; organizations take turns.

    One organization never has all threads while another used them in the last minutes
    (``FairQueue``), so that work does not wait for much of another organization's. Python code in a
    thread yields to the event loop every five milliseconds, and without a ``niceness`` its priority
    is that of the loop, which waits for it also when it waits for a processor. So one thread of
    that priority is the most that an event loop bears. Belongs to one event loop.
    """

    def __init__(self, name: str, threads: int = 1, niceness: Niceness | None = None) -> None:
        self._slots = FairQueue(threads, _MOST_WAITING, _LONGEST_WAIT_SECONDS, 1 / threads)
        start = partial(lower_priority, niceness) if niceness is not None else None
        self._threads = ThreadPoolExecutor(threads, name, start)

    async def run(self, organization_id: str, work: Callable[[], Made]) -> Made:
        """Return or raise the outcome of ``work``; a caller cancelled before its turn skips it.

        Raises ``ServerOverloaded`` when the queue does not move for ten minutes. A thread is free
        when its work has ended, also when the caller was cancelled.
        """
        await self._slots.acquire(organization_id)
        loop = asyncio.get_running_loop()

        def release(_ended: Future[Made]) -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._slots.release, organization_id)

        running = self._threads.submit(work)
        running.add_done_callback(release)
        return await asyncio.wrap_future(running)
