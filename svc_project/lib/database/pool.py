"""Threads that run database calls for callers on an event loop, on connections that they keep."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TypeVar

from django.db import Error, connections

from svc_project.lib.database.connections import keep_usable
from svc_project.lib.database.threads import DatabaseThread
from svc_project.lib.errors import InternalError

log = logging.getLogger(__name__)

READ_SECONDS = 5.0
"""Timeout of a caller's read, in seconds."""
WRITE_SECONDS = 25.0
"""Timeout of a change: longer than any lock wait, so that its outcome is known."""

_THREADS = 4

Found = TypeVar("Found")


class DatabaseThreads:
    """``count`` threads behind one queue; they start when first needed."""

    def __init__(self, name: str, count: int) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads = [DatabaseThread(f"{name}-{number}", self._work) for number in range(count)]

    async def run(self, ask: Callable[[], Found], seconds: float = READ_SECONDS) -> Found:
        """Run ``ask`` in a thread; return its result or raise its exception.

        Raises ``InternalError`` when the database fails or takes longer than ``seconds``;
        ``ask`` then runs on, and its result is dropped.
        """
        answer: Future[Found] = Future()

        def call() -> None:
            if not answer.set_running_or_notify_cancel():
                return
            try:
                keep_usable()
                answer.set_result(ask())
            except BaseException as error:  # whatever it is, the caller gets it
                answer.set_exception(error)

        self._calls.put(call)
        for thread in self._threads:
            thread.ensure()
        try:
            return await asyncio.wait_for(asyncio.wrap_future(answer), seconds)
        except (Error, TimeoutError) as error:
            log.error("the database did not answer: %s", type(error).__name__)
            raise InternalError from None

    def close(self) -> None:
        """End the threads after the queued calls; the next call starts them again."""
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads:
            thread.join()
        while not self._calls.empty():
            self._calls.get()

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()


async def run_once(work: Callable[[], Found]) -> Found:
    """Run ``work`` in a thread and close the connections that it opened; return or raise its outcome.

    For work at the start, or minutes apart, after which an open connection would only be idle.
    """

    def run() -> Found:
        try:
            return work()
        finally:
            connections.close_all()

    return await asyncio.to_thread(run)


threads = DatabaseThreads("database", _THREADS)
"""The threads of this process."""
