"""HTTP/1.1 messages as the parser reads them: an ``Upgrade`` that is ignored, and HTTP/1.0.

llhttp stops behind the head of every request that asks for an ``Upgrade``, and then takes the bytes
that follow for a new request, also where they are the body of this one. An attacker could write
the request that is next on a connection which a proxy shares between clients.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from email.utils import formatdate
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from websockets.datastructures import Headers
from websockets.http11 import Request

from core.asgi.http import linger
from core.errors import ApiError
from core.ids import request_id
from core.monitoring import observation
from svc_project.surfaces import Surface

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

    from svc_project.serving.websocket_protocol import BoundedWebSocket

Message = Mapping[str, Any]
Send = Callable[[Message], Awaitable[None]]

_NOT_READ: Final[Mapping[str, Any]] = {"method": "", "headers": ()}
"""The scope of a request that the protocol refuses: what was read of it may be wrong."""
_FRAMING: Final = frozenset({b"content-length", b"transfer-encoding"})
_KEPT: Final = (b"connection", b"keep-alive")
_RESET: Final = struct.pack("ii", 1, 0)
"""For SO_LINGER: closing resets the connection (socket(7))."""


def last_headers(surface: Surface, error: ApiError, body: bytes) -> dict[str, str]:
    """Return the headers of an answer that reports ``error`` in ``body`` and ends its connection."""
    refused_id = request_id()
    observation.refused(refused_id, _NOT_READ, surface, "protocol", error)
    return {
        "date": formatdate(usegmt=True),
        "x-request-id": refused_id,
        "content-type": "application/json",
        "content-length": str(len(body)),
        "connection": "close",
        **error.headers,
    }


def _has_body(headers: list[tuple[bytes, bytes]]) -> bool:
    """Whether a request announces content (RFC 9112, section 6.3)."""
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and int(value))
        for name, value in headers
    )


class HttpMessages(HttpToolsProtocol):
    """Reads requests, each by its own framing.

    A request becomes a WebSocket where it asks for nothing else and has no body, no earlier request
    of the connection is unfinished, and the application has a WebSocket at its path
    (``app.has_socket(scope)``). In every other request ``Upgrade`` is ignored (RFC 9110, section
    7.8): the head is parsed again without it, and the message goes on as its framing says.

    An answer to HTTP/1.0 has no chunks (RFC 9112, section 6.1) and no ``100 Continue`` before it
    (RFC 9110, section 10.1.1).
    """

    is_leaving: ClassVar[bool] = False
    """Whether each connection of this process gets one more answer, because another process serves."""

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        try:
            self._feed(data)
        except httptools.HttpParserError:
            self.send_400_response("Invalid HTTP request received.")

    def _feed(self, data: bytes) -> None:
        while data:
            try:
                self.parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as stop:
                behind_head = data[stop.args[0] :]
            if self._opens_websocket():
                self._become_websocket(behind_head)
                return
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            data = self._head_without_upgrade() + behind_head

    def _should_upgrade(self) -> bool:
        """Whether the request must not begin in the parser's callbacks; called by the base.

        The parser stops: the head is complete, and what becomes of it is decided behind it.
        """
        return True

    def _opens_websocket(self) -> bool:
        is_idle = self.cycle is None or self.cycle.response_complete
        asked = [value.lower() for name, value in self.headers if name == b"upgrade"]
        if (
            asked != [b"websocket"]
            or self.scope["method"] != "GET"
            or self.scope["http_version"] != "1.1"
            or _has_body(self.headers)
            or not is_idle
            or self.pipeline
        ):
            return False
        try:
            path = (httptools.parse_url(self.url).path or b"").decode("ascii")
        except (httptools.HttpParserInvalidURLError, UnicodeDecodeError):
            return False
        return bool(self.app.has_socket({**self.scope, "path": unquote(path)}))

    def _become_websocket(self, early: bytes) -> None:
        """Give the connection to a WebSocket; ``early``: bytes that arrived behind the head."""
        url = httptools.parse_url(self.url)
        target = url.path + (b"?" + url.query if url.query else b"")
        headers = Headers(
            (name.decode("ascii"), value.decode("latin-1")) for name, value in self.headers
        )
        self.connections.discard(self)
        socket: BoundedWebSocket = self.ws_protocol_class(  # type: ignore[assignment, call-arg, misc]
            config=self.config, server_state=self.server_state, app_state=self.app_state
        )
        socket.connection_made(self.transport)
        self.transport.set_protocol(socket)
        # It holds this protocol, which nothing else needs from now on.
        self.parser = None  # type: ignore[assignment]  # as the base does at the end
        socket.open(Request(target.decode("ascii"), headers), early, self.flow.write_paused)

    def _head_without_upgrade(self) -> bytes:
        line = f"{self.scope['method']} %b HTTP/{self.scope['http_version']}\r\n".encode()
        fields = [b"%b: %b\r\n" % field for field in self.headers if field[0] != b"upgrade"]
        return b"".join([line % self.url, *fields, b"\r\n"])

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        if cycle.scope["http_version"] == "1.0":
            cycle.waiting_for_100_continue = False
        if self.is_leaving and not self.pipeline:
            cycle.keep_alive = False
        if not cycle.keep_alive:
            app = _LastAnswer(app, cycle)
        super()._start_asgi_task(cycle, app)


class _LastAnswer:
    """An application whose answer is the last one of its connection.

    It says ``connection: close`` and nothing else. To HTTP/1.0 a body of unknown length is sent
    without chunks: it ends with the connection. What still arrives of the request's own body is read
    and dropped before the end, for a moment. A body that breaks off ends with a reset, since a
    proxy would take an ordinary end for the end of the body (RFC 9112, section 8).
    """

    def __init__(self, app: Any, cycle: RequestResponseCycle) -> None:
        self._app = app
        self._cycle = cycle
        self._ends_with_connection = False

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        async def send_last(message: Message) -> None:
            if "status" in message:
                await send(self._start(message))
                return
            if self._cycle.more_body and not message.get("more_body"):
                await send(self._part({**message, "more_body": True}))
                await linger(scope, receive)
                message = {"type": message["type"]}
            await send(self._part(message))

        try:
            await self._app(scope, receive, send_last)
        finally:
            if self._ends_with_connection and not self._cycle.response_complete:
                self._reset_at_close()

    def _start(self, message: Message) -> Message:
        headers = [field for field in message.get("headers", ()) if field != _KEPT]
        if self._cycle.scope["http_version"] == "1.0" and _FRAMING.isdisjoint(dict(headers)):
            self._ends_with_connection = True
            self._cycle.chunked_encoding = False
        return {**message, "headers": headers}

    def _part(self, message: Message) -> Message:
        if self._ends_with_connection:
            # The base counts down to zero what is still to come.
            self._cycle.expected_content_length = len(message.get("body", b""))
        return message

    def _reset_at_close(self) -> None:
        transport = self._cycle.transport
        if transport.is_closing():  # the client has disconnected: there is no socket any more
            return
        with suppress(OSError):
            connection = transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
