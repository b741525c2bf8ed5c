"""Calls back when a connection ends, which takes no task that waits for the ASGI message."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from uvicorn.protocols.http.flow_control import FlowControl


class DisconnectWatch:
    """A mixin before uvicorn's HTTP protocol; one watch at a time, of the request that is answered."""

    flow: FlowControl
    _is_lost = False
    _disconnected: Callable[[], None] | None = None

    def watch_disconnect(self, disconnected: Callable[[], None]) -> Callable[[], None]:
        """Call ``disconnected`` when the connection ends, or at once if it has ended.

        Returns a function that ends the watch.
        """
        if self._is_lost:
            disconnected()
        else:
            # Reading stops at a large body, and only a connection that is read is seen to end.
            self.flow.resume_reading()
            self._disconnected = disconnected
        return partial(self._unwatch, disconnected)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)  # type: ignore[misc]  # the protocol behind this
        self._is_lost = True
        disconnected, self._disconnected = self._disconnected, None
        if disconnected is not None:
            disconnected()

    def _unwatch(self, disconnected: Callable[[], None]) -> None:
        # The next request of the connection may have begun its own.
        if self._disconnected == disconnected:
            self._disconnected = None
