"""The threads that run Django's views, shared between callers.

Callers with a known key or session have most of the threads and strangers the rest, so that neither
can use up the other's. A thread has at most one database connection, so this bounds those as well.
With several workers the threads run in the page process, and the places here bound them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from asgiref.sync import ThreadSensitiveContext
from django.conf import settings

from accounts.keys.callers import Caller
from core.sharing.fair_queue import FairQueue
from core.sharing.places import Share
from core.sharing.processors import Niceness, lower_priority
from svc_project.gate.view_threads import ViewThread, ViewThreads

_MEGABYTE: Final = 1_000_000
_STRANGERS_PART: Final = 3
"""One thread in this many is for strangers."""


class CallerThreads:
    """The threads of one kind of callers, and the memory for their forms and answers."""

    def __init__(self, threads: int, form_bytes: int, answer_bytes: int) -> None:
        self.places = FairQueue(
            threads,
            settings.SVC_DJANGO_QUEUE_LENGTH,
            settings.SVC_DJANGO_QUEUE_SECONDS,
            most_each=max(1, threads // 2),
        )
        self.forms = Share(form_bytes, form_bytes // 4)
        self.answers = Share(answer_bytes, answer_bytes // 4)
        self._threads = ViewThreads(partial(lower_priority, Niceness.SHORT_WORK))

    @asynccontextmanager
    async def thread(self, caller: str) -> AsyncIterator[ThreadTurn]:
        """Lend a thread to ``caller``, which ``ThreadTurn.release`` ends early.

        Raises ``ServerOverloaded``.
        """
        await self.places.acquire(caller)
        place = ThreadTurn(self, caller, self._threads.take())
        try:
            async with ThreadSensitiveContext(executor=place.executor):
                yield place
        finally:
            place.release()

    def release(self, place: ThreadTurn) -> None:
        self._threads.give_back(place.executor)
        self.places.release(place.caller)

    async def close(self) -> None:
        """End the threads that run no view, and their database connections."""
        await self._threads.close()


@dataclass(slots=True)
class ThreadTurn:
    """One caller's thread."""

    threads: CallerThreads
    caller: str
    executor: ViewThread
    is_released: bool = False

    def release(self) -> None:
        """Release the thread to the next caller; a second call does nothing."""
        if not self.is_released:
            self.is_released = True
            self.threads.release(self)


_strangers_threads = max(1, settings.SVC_DJANGO_THREADS // _STRANGERS_PART)
known: Final = CallerThreads(
    settings.SVC_DJANGO_THREADS - _strangers_threads,
    form_bytes=32 * _MEGABYTE,
    answer_bytes=64 * _MEGABYTE,
)
"""The threads of callers with a key or session that was valid before."""
strangers: Final = CallerThreads(
    _strangers_threads, form_bytes=8 * _MEGABYTE, answer_bytes=16 * _MEGABYTE
)
"""The threads of all other callers."""


def threads_for(caller: Caller) -> CallerThreads:
    """The threads that ``caller`` shares."""
    return known if caller.is_known else strangers


async def close() -> None:
    """End the threads that run no view, and their database connections."""
    await known.close()
    await strangers.close()
