"""Mixins for uvicorn's protocols that watch a connection: its end, clients that stop reading, and
requests that are written behind each other."""

from __future__ import annotations

import asyncio
import fcntl
import sys
import termios
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from uvicorn.protocols.http.flow_control import FlowControl

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

_LOOKS: Final = 3
"""Checks of a stalled client within ``SVC_CLIENT_STALL_SECONDS``."""


class DisconnectWatch:
    """Calls back when a connection ends, which takes no task that waits for the ASGI message.

    A mixin before uvicorn's HTTP protocol; one watch at a time, of the request that is answered.

    It also tells this request's own ``receive`` and ``send``. uvicorn tells those of the request
    that came last, which may still wait for its turn: then the answer would fail on the transport.
    """

    flow: FlowControl
    transport: asyncio.Transport
    _answered: RequestResponseCycle | None = None
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

    def has_disconnected(self) -> bool:
        """Whether the client of the request that is being answered has disconnected.

        An application may then return without an answer.
        """
        if not self.transport.is_closing():
            return False
        # Between this moment and `connection_lost`, uvicorn would log that the answer is missing.
        if self._answered is not None:
            self._answered.disconnected = True
        return True

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)  # type: ignore[misc]  # the protocol behind this

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)  # type: ignore[misc]
        answered, self._answered = self._answered, None
        if answered is not None:
            answered.disconnected = True
            answered.message_event.set()
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


MOST_QUEUED: Final = 32
"""Requests of a connection that wait for earlier ones; with as many nothing more is parsed."""
PARSED_AT_ONCE: Final = 2048
"""Bytes that are parsed between two looks at the queue: at most some 75 requests."""


class _Flow(FlowControl):
    """Keeps reading paused while it is held, also when uvicorn resumes it."""

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__(transport)
        self._is_held = False

    def hold(self) -> None:
        if not self._is_held:
            self._is_held = True
            if not self.read_paused:
                self._transport.pause_reading()

    def release(self) -> None:
        if self._is_held:
            self._is_held = False
            if not self.read_paused:
                self._transport.resume_reading()

    def pause_reading(self) -> None:
        if self._is_held:
            self.read_paused = True
        else:
            super().pause_reading()

    def resume_reading(self) -> None:
        if self._is_held:
            self.read_paused = False
        else:
            super().resume_reading()


class PipelineBound:
    """Parses a connection's requests only as fast as they are answered, and reads no faster.

    One read may hold thousands of tiny requests, and uvicorn would queue all of them. A connection
    holds ``MOST_QUEUED`` and those of one part besides, and one read; all are answered in the end.

    A mixin before all that handles ``data_received`` of uvicorn's HTTP protocol.
    """

    flow: _Flow
    loop: asyncio.AbstractEventLoop
    parser: object
    pipeline: deque[Any]
    transport: asyncio.Transport

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._unparsed = b""
        self._is_parsing_soon = False

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)  # type: ignore[misc]  # the protocol behind this
        self.flow = _Flow(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._unparsed = b""
        super().connection_lost(exc)  # type: ignore[misc]

    def data_received(self, data: bytes) -> None:
        if self._unparsed:
            self._unparsed += data
        elif len(data) <= PARSED_AT_ONCE and len(self.pipeline) < MOST_QUEUED:
            super().data_received(data)  # type: ignore[misc]
        else:
            self._parse(data)

    def on_response_complete(self) -> None:
        super().on_response_complete()  # type: ignore[misc]
        if self._unparsed and len(self.pipeline) < MOST_QUEUED and not self._is_parsing_soon:
            self._is_parsing_soon = True
            self.loop.call_soon(self._parse_more)

    def parsing_held(self) -> None:
        """Called when what was read has to wait, perhaps in the middle of a head."""

    def _parse(self, data: bytes) -> None:
        for begin in range(0, len(data), PARSED_AT_ONCE):
            if len(self.pipeline) >= MOST_QUEUED:
                self._unparsed = data[begin:]
                self.flow.hold()
                self.parsing_held()
                return
            super().data_received(data[begin : begin + PARSED_AT_ONCE])  # type: ignore[misc]
            if self.transport.is_closing():
                return
            if self.parser is None:
                self._hand_over(data[begin + PARSED_AT_ONCE :])
                return

    def _hand_over(self, unparsed: bytes) -> None:
        """Give what this protocol does not read to the WebSocket, where the connection became one."""
        protocol: Any = self.transport.get_protocol()
        if unparsed and protocol is not self:
            protocol.data_received(unparsed)
        elif unparsed:
            super().data_received(unparsed)  # type: ignore[misc]  # which drops it

    def _parse_more(self) -> None:
        self._is_parsing_soon = False
        data, self._unparsed = self._unparsed, b""
        if self.transport.is_closing():
            return
        self._parse(data)
        if not (self._unparsed or self.transport.is_closing()):
            self.flow.release()
