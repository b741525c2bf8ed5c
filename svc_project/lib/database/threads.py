"""A daemon thread that uses the database for callers that must not wait on it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from django.db import connections


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
