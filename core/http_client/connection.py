"""One connection to a server: requests are written to it, and its answers are read in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf
from typing import Final, cast

from core.http_client.request import (
    Closed,
    HttpError,
    Origin,
    Phase,
    ReadError,
    RemoteProtocolError,
    ServerDisconnected,
    TimedOut,
    WriteError,
)
from core.http_client.response import AnswerParser, Response

LARGEST_BUFFER: Final = 256 * 1024
"""Bytes of a body that wait to be read before the connection stops reading."""
_PIECE: Final = 128 * 1024
"""A larger body is written in pieces, each when the socket has room: encryption and copies of a large
one would hold up the event loop."""
_LINGER_BYTES: Final = 64 * 1024


class Connection(asyncio.Protocol):
    """Carries one exchange at a time. ``idle`` is called whenever it may carry the next one, ``lost``
    once at its end."""

    __slots__ = (
        "_deadline",
        "_idle",
        "_lost",
        "_parser",
        "_reading",
        "_response",
        "_room",
        "_timer",
        "_transport",
        "_writable",
        "closed",
        "exchanges",
        "idle_since",
        "loop",
        "oldest",
        "origin",
        "rest",
    )

    def __init__(
        self,
        origin: Origin,
        loop: asyncio.AbstractEventLoop,
        idle: Callable[[Connection], None],
        lost: Callable[[Connection], None],
        oldest: float = inf,
    ) -> None:
        self.origin = origin
        self.loop = loop
        self.closed = False
        self.exchanges = 0
        self.oldest = oldest
        """It is not kept for another exchange after this moment."""
        self.idle_since = 0.0
        self.rest = 0.0
        """Seconds after the end of an exchange before the next one may begin."""
        self._idle = idle
        self._lost = lost
        self._response: Response | None = None
        self._reading = True
        self._writable = True
        self._room: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = inf
        """When ``_timer`` fires."""
        self._parser = AnswerParser()

    async def exchange(self, head: bytes, body: bytes, due: float) -> Response:
        """Send a request and return the answer when its head is complete. Raises ``HttpError``."""
        response = Response(due, self.resume, self.watch, self.abort)
        response.reused = self.exchanges > 0
        self.exchanges += 1
        if self.closed or self._transport.is_closing():
            response.fail(WriteError())
        else:
            self._response = self._parser.response = response
            if due != inf:
                self.watch(due)
            if len(body) <= _PIECE:
                self._transport.write(head + body)
                response.sent = True
            else:
                await self._write_pieces(response, head, body)
        await response.head()
        return response

    def watch(self, due: float) -> None:
        """Look at the deadline of the exchange at ``due`` at the latest.

        One timer serves many exchanges: it is moved only to an earlier time.
        """
        if due < self._deadline and not self.closed:
            if self._timer is not None:
                self._timer.cancel()
            self._deadline = due
            self._timer = self.loop.call_at(due, self._look_at_deadline)

    def resume(self) -> None:
        """Read on, after the answer's buffer was emptied."""
        if not self._reading and not self.closed:
            self._reading = True
            self._transport.resume_reading()

    def abort(self) -> None:
        """Close the connection at once, without sending what is still buffered."""
        if not self.closed:
            self._transport.abort()
            self._end(None, Closed())

    async def _write_pieces(self, response: Response, head: bytes, body: bytes) -> None:
        rest = memoryview(body)
        self._transport.write(head)
        try:
            while True:
                while not self._writable and not self.closed and not response.status:
                    self._room = self.loop.create_future()
                    await self._room
                if self.closed or response.status:
                    # An answer before the end of the request: the server does not read the rest.
                    return
                self._transport.write(rest[:_PIECE])
                rest = rest[_PIECE:]
                if not len(rest):
                    response.sent = True
                    return
                # uvloop writes, and says that the socket is full, only after this turn of the loop.
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            response.close()
            raise
        finally:
            self._room = None

    def _look_at_deadline(self) -> None:
        self._timer, self._deadline = None, inf
        response = self._response
        if response is None or response.due == inf:
            return
        if self.loop.time() < response.due:
            self.watch(response.due)
            return
        phase = Phase.BODY if response.status else Phase.FIRST_BYTE
        self._end(None, TimedOut(phase if response.sent else Phase.SENDING))
        self._transport.abort()

    # Callbacks of the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        response = self._response
        if response is None:
            # Sent without a request: whatever it is, it is not the next request's answer.
            self.abort()
            return
        try:
            self._parser.feed(data, response)
        except RemoteProtocolError as violation:
            self._transport.abort()
            self._end(None, violation)
            return
        if response.complete:
            self._reuse_after(response)
            return
        if response.buffered > (_LINGER_BYTES if response.released else LARGEST_BUFFER):
            self._stop_reading(response)
        response.wake()
        if self._room is not None and response.status and not self._room.done():
            self._room.set_result(None)

    def eof_received(self) -> None:
        if not self.closed:
            # Not left to the transport, which would first write what the server no longer reads.
            self._end(None, None)
            self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self._end(error, None)

    def pause_writing(self) -> None:
        self._writable = False

    def resume_writing(self) -> None:
        self._writable = True
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    def _stop_reading(self, response: Response) -> None:
        if response.released:
            self.abort()
        elif self._reading:
            self._reading = False
            response.is_held = True
            self._transport.pause_reading()

    def _reuse_after(self, response: Response) -> None:
        """Keep the connection for the next exchange if the last one left it in a known state."""
        self._response = None
        self.resume()
        if (
            response.keeps_alive
            and response.sent
            and not self._transport.get_write_buffer_size()
            and not self._transport.is_closing()
        ):
            response.finish()
            self._idle(self)
        else:
            self._transport.abort()
            response.finish()
            self._end(None, None)

    def _end(self, error: Exception | None, reason: HttpError | None) -> None:
        """End the connection and fail its exchange, with ``reason`` or by how far it had come."""
        if self.closed:
            return
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._room is not None and not self._room.done():
            self._room.set_result(None)
        response, self._response = self._response, None
        self._parser.close()
        self._lost(self)
        if response is None:
            return
        if reason is not None:
            response.fail(reason)
        elif response.status and not response.has_length and error is None:
            response.finish()
        elif response.begun:
            response.fail(ReadError())
        elif response.sent:
            response.fail(ServerDisconnected())
        else:
            response.fail(WriteError())
