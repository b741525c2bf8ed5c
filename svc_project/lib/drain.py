"""Stopping without losing anything: what runs, and whether new work is still taken."""

from __future__ import annotations

from typing import Protocol


class Running(Protocol):
    """A request that is being answered."""

    def server_draining(self) -> None:
        """End as soon as nothing that was accepted is left to do; the server takes no new work."""

    def server_stopping(self) -> None:
        """End soon: the time given to running requests is over."""


class Drain:
    """The running requests of one process.

    After ``announce`` the process says that it is about to stop, and serves as before. After
    ``begin`` new requests are refused with ``server_shutting_down``; after ``abort`` those that
    still run end with the same code, and write their rows. ``begin`` and ``abort`` are called on
    the event loop.
    """

    def __init__(self) -> None:
        self.stopping = False
        self.draining = False
        self._running: set[Running] = set()

    def enter(self, request: Running) -> None:
        self._running.add(request)

    def leave(self, request: Running) -> None:
        self._running.discard(request)

    @property
    def running(self) -> int:
        """How many requests are being answered."""
        return len(self._running)

    def announce(self) -> None:
        """Not ready from now on: whoever distributes requests should look elsewhere."""
        self.stopping = True

    def begin(self) -> None:
        """Take no new work from now on, and tell what runs."""
        if self.draining:
            return
        self.stopping = self.draining = True
        for request in tuple(self._running):
            request.server_draining()

    def abort(self) -> None:
        """Tell what still runs to end."""
        self.begin()
        for request in tuple(self._running):
            request.server_stopping()


drain = Drain()
