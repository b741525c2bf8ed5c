"""Bounds on connections: their number, and the work for WebSocket frames."""

from __future__ import annotations

import asyncio
import sys
import weakref
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.conf import settings
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from svc_project.lib.asgi.websocket import READER_STALLED
from svc_project.lib.errors import ServerOverloaded
from svc_project.lib.ids import request_id
from svc_project.serving.connection_watches import DisconnectWatch, StallWatch
from svc_project.serving.websocket_frames import BoundedFrames
from svc_project.surfaces import Surface, error_body_of, surface_of

if TYPE_CHECKING:
    from uvicorn._types import ASGIReceiveEvent, ASGISendEvent

_PROBES: Final = (b"GET /livez ", b"GET /readyz ", b"GET /metrics ", b"GET /health ")
_KEPT_FOR_PROBES: Final = 16
"""Connections above the bound that may still request the probes."""
_PROBE_SECONDS: Final = 5.0
"""The longest life of a connection above the bound."""
_LINGER_SECONDS: Final = 1.0
_PARSED_AT_ONCE: Final = 2048
"""Bytes of WebSocket frames parsed in one turn of the event loop: at most 341 frames."""


def refusal(surface: Surface) -> bytes:
    """A whole response: 503 ``server_overloaded``, which closes the connection."""
    body = error_body_of(surface, ServerOverloaded())
    head = (
        "HTTP/1.1 503 Service Unavailable\r\n"
        f"x-request-id: {request_id()}\r\n"
        "content-type: application/json\r\n"
        f"content-length: {len(body)}\r\n"
        "connection: close\r\n\r\n"
    )
    return head.encode() + body


class BoundedWebSocket(StallWatch, WebSocketsSansIOProtocol):
    """A WebSocket whose client must keep reading, also after its session is over.

    Only sound waits until the client has read the earlier bytes. Messages and the close are queued
    at once: they are short and few, so a session that is over need not wait.

    Only this class detects a stalled client: the application gets ``READER_STALLED``, or
    ``TimeoutError`` when it sends sound. Its last messages are still queued; a client that reads
    nothing for as long again is dropped.

    After a protocol violation it sends the close frame, then keeps reading briefly: closing with
    unread bytes would be a reset, which could discard the close frame. The application sees a
    disconnect.

    A read from the socket may hold tens of thousands of tiny frames. They are parsed in parts, so
    that other tasks get turns, and only as fast as the application takes messages.
    """

    _is_broken = False
    _has_stalled = False
    _is_parsing_soon = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn = BoundedFrames(
            extensions=self.conn.available_extensions,
            max_size=self.config.ws_max_size,
            logger=self.conn.logger,
        )
        self._unparsed = bytearray()
        self._room = asyncio.Event()
        self._room.set()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.writable.set()  # the base would delay messages and the close as well
        self._room.clear()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._room.set()
        if self.close_sent:
            self._watch_to_the_end()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._unparsed.clear()
        self._room.set()

    async def receive(self) -> ASGIReceiveEvent:
        message = await super().receive()
        self._parse_soon()
        return message

    def reader_stalled(self) -> None:
        if self._has_stalled or self.close_sent:
            self.transport.abort()
            return
        self._has_stalled = True
        ended: Any = {"type": "websocket.disconnect", "code": 1006, READER_STALLED: True}
        self.queue.put_nowait(ended)
        self._room.set()

    async def send(self, message: ASGISendEvent) -> None:
        is_sound = message["type"] == "websocket.send" and message.get("bytes") is not None
        if is_sound:
            await self._room.wait()
        if self._is_broken:
            raise ClientDisconnected
        if is_sound and self._has_stalled:
            raise TimeoutError
        await super().send(message)
        if message["type"] == "websocket.close":
            self._watch_to_the_end()
            self._parse_soon()
        elif message["type"] == "websocket.http.response.body" and self.close_sent:
            # A refusal completes the handshake too; the base would report an internal error.
            self.handshake_complete = True

    def _watch_to_the_end(self) -> None:
        """Watch from the close on: its unread bytes are below the mark that starts the watch."""
        if self._stall is None:
            self._unread = sys.maxsize
            self._watch()

    def data_received(self, data: bytes) -> None:
        if self._is_broken:
            return
        if self._unparsed or (self.handshake_initiated and len(data) > _PARSED_AT_ONCE):
            self._unparsed += data
            self._parse_soon()
        else:
            super().data_received(data)

    def _parse_soon(self) -> None:
        """Continue with the bytes that were read, unless messages wait for the application."""
        if self._unparsed and not (self.read_paused or self._is_parsing_soon):
            self._is_parsing_soon = True
            if not self.transport.is_closing():
                self.transport.pause_reading()
            self.loop.call_soon(self._parse_some)

    def _parse_some(self) -> None:
        self._is_parsing_soon = False
        part = bytes(self._unparsed[:_PARSED_AT_ONCE])
        del self._unparsed[:_PARSED_AT_ONCE]
        if part and not self._is_broken:
            super().data_received(part)
        if self._is_broken:
            self._unparsed.clear()
        elif self._unparsed:
            self._parse_soon()
        elif not (self.read_paused or self.transport.is_closing()):
            self.transport.resume_reading()

    def handle_parser_exception(self) -> None:
        sent = self.conn.close_sent
        if self._is_broken or sent is None:
            return
        self._is_broken = self.close_sent = True
        self.queue.put_nowait(
            {"type": "websocket.disconnect", "code": sent.code, "reason": sent.reason}
        )
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.read_paused = False
        self.transport.resume_reading()
        self.close_timer = self.loop.call_later(_LINGER_SECONDS, self.transport.close)


class BoundedProtocol(StallWatch, DisconnectWatch, HttpToolsProtocol):
    """Refuses connections above ``SVC_MAX_CONNECTIONS``, and drops clients that stop reading.

    Unread bytes are buffered up to the transport's high-water mark; then the answer waits for the
    client. When the client has read not a single byte for ``SVC_CLIENT_STALL_SECONDS`` the
    connection is aborted; requests see it as any other disconnect.
    """

    open_connections: ClassVar[Collection[Any]] = ()
    """The connections of this process, WebSockets too."""
    _is_refused = False
    _has_answered = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        BoundedProtocol.open_connections = self.connections
        self._is_refused = len(self.connections) > settings.SVC_MAX_CONNECTIONS
        if self._is_refused:
            self.loop.call_later(_PROBE_SECONDS, transport.abort)

    def data_received(self, data: bytes) -> None:
        if self._is_refused and self._is_probe(data):
            self._is_refused = False
        if not self._is_refused:
            super().data_received(data)
        elif not self._has_answered:
            # Not closed at once: with unread bytes that would be a reset, which loses the answer.
            self._has_answered = True
            surface = surface_of({"server": self.server, "headers": ()})
            self.transport.write(refusal(surface))
            if self.transport.can_write_eof():
                self.transport.write_eof()
            self.loop.call_later(_LINGER_SECONDS, self.transport.abort)

    def handle_websocket_upgrade(self) -> None:
        self._stop_watching()
        super().handle_websocket_upgrade()
        # It holds this protocol, which nothing else needs from now on.
        self.parser = None  # type: ignore[assignment]  # as the base does at the end
        upgraded = self.transport.get_protocol()
        if self.flow.write_paused and isinstance(upgraded, BoundedWebSocket):
            # An answer before the upgrade is still unread, and only the HTTP protocol knows it.
            upgraded.pause_writing()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        scope: Any = self.scope
        # The connection holds the scope: a reference back would keep both, and the request's bytes,
        # until the garbage collector runs.
        scope["svc.connection"] = weakref.proxy(self)

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        # Closing waits for unread bytes, possibly for ever.
        self.loop.call_later(settings.SVC_CLIENT_STALL_SECONDS, self.transport.abort)

    def _is_probe(self, data: bytes) -> bool:
        most = settings.SVC_MAX_CONNECTIONS + _KEPT_FOR_PROBES
        return len(self.connections) <= most and data.startswith(_PROBES)
