"""The threads in which Django's views run, and who may have how many of them.

Callers with a known key or session have most of the threads and strangers the rest, so that neither
can use up the other's. A thread has at most one database connection, so these bound those as well.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from asgiref.sync import ThreadSensitiveContext
from django.conf import settings

from svc_project.callers import Caller
from svc_project.lib.shares import SharedBytes, SharedPlaces

_MEGABYTE: Final = 1_000_000
_STRANGERS_PART: Final = 4
"""One thread in so many is for strangers."""


class Crowd:
    """The threads of one kind of callers, and the memory for their forms and answers."""

    def __init__(self, threads: int, form_bytes: int, answer_bytes: int) -> None:
        self.places = SharedPlaces(
            threads,
            max(1, threads // 2),
            settings.SVC_DJANGO_QUEUE_LENGTH,
            settings.SVC_DJANGO_QUEUE_SECONDS,
        )
        self.forms = SharedBytes(form_bytes, form_bytes // 4)
        self.answers = SharedBytes(answer_bytes, answer_bytes // 4)
        # One thread each: what Django runs for a request has to stay in one thread.
        self._free: list[Executor] = [
            ThreadPoolExecutor(1, thread_name_prefix="django") for _ in range(threads)
        ]

    @asynccontextmanager
    async def thread(self, caller: str) -> AsyncIterator[Place]:
        """A thread for ``caller``, which ``Place.leave`` gives back early.

        Raises ``ServerOverloaded``.
        """
        await self.places.acquire(caller)
        place = Place(self, caller, self._free.pop())
        try:
            async with ThreadSensitiveContext(executor=place.executor):
                yield place
        finally:
            place.leave()

    def leave(self, place: Place) -> None:
        self._free.append(place.executor)
        self.places.release(place.caller)


@dataclass(slots=True)
class Place:
    """One caller's thread."""

    crowd: Crowd
    caller: str
    executor: Executor
    is_left: bool = False

    def leave(self) -> None:
        """Give the thread to the next caller; once is enough, twice does no harm."""
        if not self.is_left:
            self.is_left = True
            self.crowd.leave(self)


_strangers_threads = max(1, settings.SVC_DJANGO_THREADS // _STRANGERS_PART)
known: Final = Crowd(
    settings.SVC_DJANGO_THREADS - _strangers_threads,
    form_bytes=32 * _MEGABYTE,
    answer_bytes=64 * _MEGABYTE,
)
"""Callers with a key or session that was good before."""
strangers: Final = Crowd(_strangers_threads, form_bytes=8 * _MEGABYTE, answer_bytes=16 * _MEGABYTE)
"""All others."""


def crowd_of(caller: Caller) -> Crowd:
    """Whom ``caller`` shares threads with."""
    return known if caller.is_known else strangers
