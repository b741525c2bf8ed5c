"""Mixins for uvicorn's protocols that watch a connection: its end, and clients that stop reading."""

from __future__ import annotations

import asyncio
import fcntl
import sys
import termios
from collections.abc import Callable
from functools import partial
from typing import Final

from django.conf import settings
from uvicorn.protocols.http.flow_control import FlowControl

_LOOKS: Final = 3
"""Checks of a stalled client within ``SVC_CLIENT_STALL_SECONDS``."""


class DisconnectWatch:
    """Calls back when a connection ends, which takes no task that waits for the ASGI message.

    A mixin before uvicorn's HTTP protocol; one watch at a time, of the request that is answered.
    """

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


def _unsent(transport: asyncio.Transport) -> int:
    """Bytes that the kernel holds for a client that has not acknowledged them (tcp(7), SIOCOUTQ).

    The kernel accepts new bytes only when a third of its buffer is free, which may be megabytes: a
    client that reads at the pace of the sound would seem to stall meanwhile.
    """
    connection = transport.get_extra_info("socket")
    try:
        answer = fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4))
    except OSError:
        return 0
    return int.from_bytes(answer, sys.byteorder)


class StallWatch:
    """Detects a client that read not a single byte for ``SVC_CLIENT_STALL_SECONDS``.

    It then calls ``reader_stalled``, and again after each further such time.

    A mixin before an asyncio protocol that has ``loop`` and ``transport``.
    """

    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    _stall: asyncio.TimerHandle | None = None
    _unread = 0
    _idle_looks = 0

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_watching()
        super().connection_lost(exc)  # type: ignore[misc]  # the protocol behind this

    def pause_writing(self) -> None:
        super().pause_writing()  # type: ignore[misc]
        self._unread = sys.maxsize
        self._watch()

    def resume_writing(self) -> None:
        self._stop_watching()
        super().resume_writing()  # type: ignore[misc]

    def reader_stalled(self) -> None:
        """Drop the connection."""
        self.transport.abort()

    def _watch(self) -> None:
        self._stall = self.loop.call_later(settings.SVC_CLIENT_STALL_SECONDS / _LOOKS, self._look)

    def _look(self) -> None:
        unread = self.transport.get_write_buffer_size() + _unsent(self.transport)
        self._idle_looks = self._idle_looks + 1 if 0 < unread >= self._unread else 0
        self._unread = unread
        self._watch()
        if self._idle_looks == _LOOKS:
            self._idle_looks = 0
            self.reader_stalled()

    def _stop_watching(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
            self._idle_looks = 0
