"""Graceful shutdown: tracks the running requests and whether new ones are accepted."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

from core.errors import ApiError, ClientDisconnected, ServerShuttingDown


class Running(Protocol):
    """A request that is being answered."""

    def server_draining(self, seconds: float) -> None:
        """Finish within ``seconds``: the process ends then. Called once, perhaps at the beginning."""

    def server_stopping(self) -> None:
        """End soon: the drain time is over."""


class Drain:
    """The running requests of one process.

    After ``announce`` the process reports that it is about to stop, and serves as before. After
    ``begin`` it refuses new requests with ``server_shutting_down``; after ``abort`` running
    requests end with the same code, and write their rows. After ``hand_over`` the process serves only
    what comes on the connections that it has. All but ``announce`` are called on the event loop.
    """

    def __init__(self) -> None:
        self.stopping = False
        self.draining = False
        self._ends_at: float | None = None
        self._running: set[Running] = set()

    def enter(self, request: Running) -> None:
        self._running.add(request)
        if self._ends_at is not None:
            request.server_draining(max(0.0, self._ends_at - time.monotonic()))

    def leave(self, request: Running) -> None:
        self._running.discard(request)

    @property
    def is_ending(self) -> bool:
        """Whether the process ends when its requests have."""
        return self._ends_at is not None

    @property
    def running(self) -> int:
        """How many requests are being answered."""
        return len(self._running)

    def announce(self) -> None:
        """Report not ready from now on, so that load balancers send requests elsewhere."""
        self.stopping = True

    def begin(self, seconds: float) -> None:
        """Refuse new work from now on; running requests have ``seconds``."""
        self.stopping = self.draining = True
        self.hand_over(seconds)

    def hand_over(self, seconds: float) -> None:
        """Notify the running requests, and those that begin from now on, of the end in ``seconds``."""
        if self._ends_at is None:
            self._ends_at = time.monotonic() + seconds
            for request in tuple(self._running):
                request.server_draining(seconds)

    def abort(self) -> None:
        """Refuse new work, and abort the requests that are still running."""
        self.begin(0.0)
        for request in tuple(self._running):
            request.server_stopping()


drain = Drain()


def absorbed_cancellation() -> ApiError:
    """Let the current task go on after a ``CancelledError``, and return the reason for it.

    The server cancels a request's task when its client disconnected, and when it does not wait any
    longer for the end of a drain. A row must be written all the same.
    """
    if (own := asyncio.current_task()) is not None:
        own.uncancel()
    return ServerShuttingDown() if drain.draining else ClientDisconnected()
