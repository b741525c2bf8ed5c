"""One thread for work that would hold up the event loop, done for one organization after another."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeVar

LARGE_BODY: Final = 64 * 1024
"""Bytes of a request's body that are read as JSON on the event loop, which takes some milliseconds at
most; more are read in the thread."""

Made = TypeVar("Made")


class FairThread:
    """Runs one piece of work at a time; organizations that have work waiting take turns.

    Python code in a thread lets the event loop in every five milliseconds. With one thread at most
    one other waits for the same interpreter, however much work there is. Belongs to one event loop.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._executor: Executor | None = None
        self._waiting: dict[str, deque[tuple[asyncio.Future[Any], Callable[[], Any]]]] = {}
        """Organizations in the order of their turns."""
        self._busy = False

    async def run(self, organization_id: str, work: Callable[[], Made]) -> Made:
        """What ``work`` returns or raises. Work whose caller is cancelled before its turn is left out."""
        done: asyncio.Future[Made] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(organization_id, deque()).append((done, work))
        if not self._busy:
            self._next()
        return await done

    def _next(self) -> None:
        """Begin the first work of the organization whose turn it is."""
        self._busy = False
        while self._waiting:
            organization_id = next(iter(self._waiting))
            queue = self._waiting.pop(organization_id)
            done, work = queue.popleft()
            if queue:
                self._waiting[organization_id] = queue
            if not done.cancelled():
                self._begin(done, work)
                return

    def _begin(self, done: asyncio.Future[Any], work: Callable[[], Any]) -> None:
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, thread_name_prefix=self._name)
        self._busy = True
        running = asyncio.get_running_loop().run_in_executor(self._executor, work)
        running.add_done_callback(partial(self._end, done))

    def _end(self, done: asyncio.Future[Any], ran: asyncio.Future[Any]) -> None:
        if not done.cancelled():
            if ran.cancelled():
                done.cancel()
            elif (error := ran.exception()) is not None:
                done.set_exception(error)
            else:
                done.set_result(ran.result())
        self._next()
