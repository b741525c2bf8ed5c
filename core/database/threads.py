"""Threads that use the database, and their connections.

Django's request threads (``svc_project.gate.view_threads``) keep a connection while requests come,
so that many idle workers hold few. A background thread lives as long as the process and keeps its
connection.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import SimpleQueue
from typing import TypeVar

import psycopg
from django.db import Error, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from core.errors import InternalError

log = logging.getLogger(__name__)

READ_SECONDS = 5.0
"""Timeout of a caller's read, in seconds."""
WRITE_SECONDS = 25.0
"""Timeout of a change: longer than any lock wait, so that its outcome is known."""

_THREADS = 4

Found = TypeVar("Found")


def keep_usable() -> None:
    """Keep this thread's connections open between uses; close those that an error broke.

    They are not tested with a statement (``CONN_HEALTH_CHECKS``), which every use would wait for.
    """
    for connection in connections.all(initialized_only=True):
        connection.close_at = None
        connection.close_if_unusable_or_obsolete()
        connection.health_check_done = True  # type: ignore[attr-defined]  # the stubs lack it


def abort_connection(connection: BaseDatabaseWrapper) -> None:
    """Make another thread's statement on ``connection`` fail at once.

    For a PostgreSQL that accepted a statement and will never answer. SQLite never waits for a
    server, so there it does nothing.
    """
    if connection.vendor != "postgresql" or connection.connection is None:
        return
    # The other thread owns and closes the connection; only its socket is shut down here.
    with suppress(OSError, psycopg.Error):  # it was closed just now
        descriptor = os.dup(connection.connection.fileno())
        with socket.socket(fileno=descriptor) as link:
            link.shutdown(socket.SHUT_RDWR)


class DatabaseThread:
    """Runs ``work`` in a thread that starts on first use, and can start again after it has ended.

    The late start keeps forking safe before the first use. Django's connections belong to a thread,
    so the thread closes its own when ``work`` returns.
    """

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        self._name = name
        self._work = work
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        """Whether the thread was started and has not ended."""
        return self._thread is not None and self._thread.is_alive()

    def ensure(self) -> None:
        """Start the thread unless it runs."""
        if not self.is_running:
            with self._lock:
                if not self.is_running:
                    self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                    self._thread.start()

    def join(self, seconds: float = 5.0) -> None:
        """Wait for the thread to end; the caller has told ``work`` to return."""
        if self._thread is not None:
            self._thread.join(timeout=seconds)

    def _run(self) -> None:
        try:
            self._work()
        finally:
            connections.close_all()


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
            # Not wait_for, which drops a cancellation that comes with the answer (Python 3.11).
            async with asyncio.timeout(seconds):
                return await asyncio.wrap_future(answer)
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
