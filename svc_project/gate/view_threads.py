"""Threads that run Django's views, and keep their database connections between requests.

On PostgreSQL a statement of a view has a timeout, since a caller's threads are its share of the
pages: a slow one would hold it for minutes. Threads of their own, such as a download's, have none.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Final

from django.conf import settings
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

KEPT_SECONDS: Final = 10.0
"""How long a thread without a request keeps its connections, in seconds."""


_this_thread = threading.local()


def _begin(start: Callable[[], None] | None) -> None:
    _this_thread.runs_views = True
    if start is not None:
        start()


def _bound_statements(connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Set the timeout of statements on a new connection of a thread that runs views."""
    milliseconds = round(settings.SVC_VIEW_STATEMENT_SECONDS * 1000)
    is_bounded = milliseconds and getattr(_this_thread, "runs_views", False)
    if is_bounded and connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"SET statement_timeout = {milliseconds}")


connection_created.connect(_bound_statements)


class ViewThread(ThreadPoolExecutor):
    """One thread, which starts with its first view."""

    def __init__(self, start: Callable[[], None] | None) -> None:
        super().__init__(1, "django", partial(_begin, start))
        self._has_started = False

    def submit(self, *args: Any, **kwargs: Any) -> Future[Any]:
        self._has_started = True
        return super().submit(*args, **kwargs)

    def close_connections(self) -> None:
        """Close the connections that views opened."""
        if self._has_started:
            self.submit(connections.close_all)


class ViewThreads:
    """Threads that are lent for one request each; belongs to one event loop.

    How many there are is up to the borrowers. The thread that was used last is lent first, so that the
    others' connections close: on PostgreSQL a new one costs more processor time than most pages.
    """

    def __init__(self, start: Callable[[], None] | None = None) -> None:
        """``start`` is called first in each thread."""
        self._start = start
        self._free: list[ViewThread] = []
        self._timers: dict[ViewThread, asyncio.TimerHandle] = {}

    def take(self) -> ViewThread:
        """Return a free thread, or a new one. All of a request must run in it."""
        if not self._free:
            return ViewThread(self._start)
        thread = self._free.pop()
        self._timers.pop(thread).cancel()
        return thread

    def give_back(self, thread: ViewThread) -> None:
        """Take ``thread`` back after its request."""
        self._free.append(thread)
        loop = asyncio.get_running_loop()
        self._timers[thread] = loop.call_later(KEPT_SECONDS, thread.close_connections)

    async def close(self) -> None:
        """End the free threads and their connections."""
        threads, self._free = self._free, []
        for thread in threads:
            self._timers.pop(thread).cancel()
            thread.close_connections()
        for thread in threads:
            await asyncio.to_thread(thread.shutdown)
