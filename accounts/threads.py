"""A daemon thread that works on the database for callers that must not wait on it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from django.db import connections


class DatabaseThread:
    """Runs ``work`` in a thread that starts when first needed and can be needed again after it ended.

    Starting late keeps it safe to fork before the first use. Django's connections are per thread,
    so the thread closes its own when ``work`` returns.
    """

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        self._name = name
        self._work = work
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def ensure(self) -> None:
        """Start the thread unless it runs."""
        if self._thread is None or not self._thread.is_alive():
            with self._lock:
                if self._thread is None or not self._thread.is_alive():
                    self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                    self._thread.start()

    def join(self, seconds: float = 5.0) -> None:
        """Wait for the thread to end; whoever calls has told ``work`` to return."""
        if self._thread is not None:
            self._thread.join(timeout=seconds)

    def _run(self) -> None:
        try:
            self._work()
        finally:
            connections.close_all()
