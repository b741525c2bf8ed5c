"""One thread for work that would block the event loop; organizations take turns."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeVar

LARGE_BODY: Final = 64 * 1024
"""Bytes. Request bodies up to this size are parsed on the event loop, in some milliseconds at most;
larger ones in the thread."""

Made = TypeVar("Made")


class FairThread:
    """Runs one job at a time; organizations with waiting jobs take turns.

    Python code in a thread yields to the event loop every five milliseconds. With one thread only
    one competes for the interpreter, however many jobs there are. Its priority is that of the event
    loop: while it holds the interpreter the loop waits for it, also when it waits for a processor.
    Belongs to one event loop.
    """

    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(1, name)
        self._waiting: dict[str, deque[tuple[asyncio.Future[Any], Callable[[], Any]]]] = {}
        """Organizations in the order of their turns."""
        self._busy = False

    async def run(self, organization_id: str, work: Callable[[], Made]) -> Made:
        """Return or raise the outcome of ``work``; a caller cancelled before its turn skips it."""
        done: asyncio.Future[Made] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(organization_id, deque()).append((done, work))
        if not self._busy:
            self._next()
        return await done

    def _next(self) -> None:
        """Begin the first job of the organization whose turn it is."""
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
