"""HTTP/1.1 at the socket: bounds on connections and on a request's head, and the answers to invalid
requests.

The parser (llhttp, strict) refuses the ambiguous messages that smuggling needs. This module adds
bounds on the number of connections, on clients that stop reading, and on the size and time of a
head, and checks trailers.
"""

from __future__ import annotations

import asyncio
import re
import weakref
from collections.abc import Collection
from http import HTTPStatus
from typing import Any, ClassVar, Final

from django.conf import settings

from core.errors import ApiError, BadRequest, MethodNotAllowed, ServerOverloaded
from svc_project.serving.connection_watches import DisconnectWatch, PipelineBound, StallWatch
from svc_project.serving.http_messages import HttpMessages, last_headers
from svc_project.surfaces import Surface, error_body_of, surface_of

LARGEST_TARGET = 16 * 1024
"""Bytes of a request target; above it 414."""
LARGEST_HEAD = 32 * 1024
"""Bytes of names and values of all headers, and again of all trailers; above it 431."""
MOST_HEADERS = 100
_LONGEST_LENGTH = 20
"""Digits of a Content-Length, zeros too; as many have all lengths that the parser can count."""

_AUTHORITY_END = re.compile(rb"[/?#]")
_HOST = re.compile(rb"(\[[0-9A-Fa-f:.]+\]|([\w.~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(:\d*)?")
"""A Host header's value: an address in brackets or a name, and a port (RFC 9112, section 3.2)."""
_METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
_PORTS = {b"http": b":80", b"https": b":443"}

_PROBES: Final = (b"GET /livez ", b"GET /readyz ", b"GET /metrics ", b"GET /health ")
_KEPT_FOR_PROBES: Final = 16
"""Connections above the bound that may still request the probes."""
_PROBE_SECONDS: Final = 5.0
"""The longest life of a connection above the bound."""
_LINGER_SECONDS: Final = 1.0
_LINGER_BYTES: Final = 1_048_576
"""What is read and dropped behind the last answer of a connection; the rest waits for its end."""


def refusal(surface: Surface, error: ApiError) -> bytes:
    """Return the whole answer to a request that fails with ``error``; it closes the connection."""
    body = error_body_of(surface, error)
    lines = [f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in last_headers(surface, error, body).items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


class BoundedProtocol(StallWatch, DisconnectWatch, HttpMessages):
    """Refuses connections above ``SVC_MAX_CONNECTIONS``, and drops clients that stop reading.

    Unread bytes are buffered up to the transport's high-water mark; then the answer waits for the
    client. When the client has read not a single byte for ``SVC_CLIENT_STALL_SECONDS`` the
    connection is aborted; requests see it as any other disconnect.
    """

    open_connections: ClassVar[Collection[Any]] = ()
    """The connections of this process, WebSockets too."""
    _is_refused = False
    _left_to_drop: int | None = None
    """Bytes that may still arrive; None while requests are read."""
    _refused_behind: ApiError | None = None
    """The answer to a request behind others that are not answered yet."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        BoundedProtocol.open_connections = self.connections
        self._is_refused = len(self.connections) > settings.SVC_MAX_CONNECTIONS
        if self._is_refused:
            self.loop.call_later(_PROBE_SECONDS, transport.abort)

    def data_received(self, data: bytes) -> None:
        if self._left_to_drop is not None:
            self._left_to_drop -= len(data)
            if self._left_to_drop < 0:
                # Who cannot write on looks for the answer, which a reset would lose.
                self.flow.pause_reading()
            return
        if self._is_refused and self._is_probe(data):
            self._is_refused = False
        if not self._is_refused:
            super().data_received(data)
        else:
            self._answer_and_end(ServerOverloaded())

    def _answer_and_end(self, error: ApiError) -> None:
        """Answer ``error`` and end the connection, whatever else arrives.

        It is not closed at once: with unread bytes that would be a reset, which loses the answer
        (RFC 9112, section 9.6).
        """
        self._drop_the_rest()
        self.transport.write(refusal(surface_of({"server": self.server, "headers": ()}), error))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.flow.resume_reading()
        self.loop.call_later(_LINGER_SECONDS, self.transport.abort)

    def _end_behind(self, error: ApiError) -> None:
        """Do the same once the requests before the refused one are answered."""
        self._drop_the_rest()
        self._refused_behind = error

    def _drop_the_rest(self) -> None:
        self._left_to_drop = _LINGER_BYTES
        self.parser = None  # type: ignore[assignment]  # as the base does at the end

    def on_response_complete(self) -> None:
        super().on_response_complete()
        error, last = self._refused_behind, self._answered
        if error is not None and (last is None or last.response_complete):
            self._refused_behind = None
            self._unset_keepalive_if_required()
            if not self.transport.is_closing():
                self._answer_and_end(error)

    def _become_websocket(self, early: bytes) -> None:
        self._stop_watching()
        super()._become_websocket(early)

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


class NotHttp(BadRequest):
    default_message = "What arrived is not a valid HTTP request. Send it again."
    cause = "What arrived is not HTTP/1.1."
    cure = "Check the address and the port; use https if it is set up."


class NotOneHost(BadRequest):
    default_message = "The request needs exactly one Host header, with a host and perhaps a port."
    cause = "The request has no Host header, several, or one that names no host."
    cure = "Send exactly one, such as `ai.example.com:8443`. HTTP libraries do."


class AnotherHost(BadRequest):
    default_message = "The address in the request line and the Host header name different hosts."
    cause = "Request line and Host header name different hosts."
    cure = "Let the HTTP library set both."


class UnknownFraming(BadRequest):
    default_message = (
        "Send the body with a Content-Length, or with chunked as its only Transfer-Encoding."
    )
    cause = "The length of the body is not clear."
    cure = "Send Content-Length or `Transfer-Encoding: chunked`, not both."


class HeadTooSlow(BadRequest):
    status = 408
    default_message = "The head of the request did not arrive in time. Send it again."
    cause = "The headers did not arrive in time."
    cure = "Send it again on a new connection."


class TargetTooLong(BadRequest):
    status = 414
    default_message = f"The address is longer than {LARGEST_TARGET} bytes. Send a shorter one."
    cause = "The address of the request is too long."
    cure = "Put less into the query."


class HeadTooLarge(BadRequest):
    status = 431
    default_message = (
        f"The headers are more than {MOST_HEADERS} or larger than {LARGEST_HEAD} bytes together. "
        "Send fewer or shorter ones."
    )
    cause = "There are too many headers, or too large ones."
    cure = "Send fewer; cookies of other sites on the same host are often the reason."


def _without_port(authority: bytes, port: bytes) -> bytes:
    """``authority`` in lower case, without ``port``, the default of its scheme."""
    authority = authority.lower()
    return authority.removesuffix(port) if port else authority


class ContractHttpProtocol(BoundedProtocol):
    """Bounds the head of each request and answers invalid HTTP with the contract's error.

    A head may take ``SVC_HEAD_SECONDS``, from the connection or its first byte to its end.

    Sizes are counted in the parser's callbacks. A line that does not end reaches none of them, so
    the bytes read while a head is unfinished are counted as well.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_head = False
        self._in_body = False
        self._unfinished = 0
        self._bytes = 0
        self._count = 0
        self._hosts = 0
        self._host = b""
        self._encodings: list[bytes] = []
        self._refusal: ApiError | None = None
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        unfinished = self._in_head
        super().data_received(data)
        if self.transport.get_protocol() is not self:
            # Upgraded: the WebSocket's own protocol handles timeouts from now on.
            self._stop_head_timer()
            return
        if self.transport.is_closing() or self.parser is None:
            return
        if self._in_head and unfinished:
            self._unfinished += len(data)
            if self._unfinished > LARGEST_TARGET + LARGEST_HEAD:
                self._refuse(HeadTooLarge())
                return
        # Empty lines between requests, which begin no head, must not hold a connection either.
        if self._in_head or self.cycle is None or self.cycle.response_complete:
            self._start_head_timer()

    def on_message_begin(self) -> None:
        self._in_head, self._in_body = True, False
        self._unfinished = self._bytes = self._count = self._hosts = 0
        self._encodings = []
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > LARGEST_TARGET:
            self._stop_parsing(TargetTooLong())

    def on_header(self, name: bytes, value: bytes) -> None:
        self._bytes += len(name) + len(value)
        self._count += 1
        if self._bytes > LARGEST_HEAD or self._count > MOST_HEADERS:
            self._stop_parsing(HeadTooLarge())
        if not self._in_head:
            # A trailer: taken for a header, it could carry a key past a proxy that checks heads.
            return
        # Spaces around a value are no part of it (RFC 9110, section 5.5); the parser keeps the last.
        super().on_header(name, value.rstrip(b" \t"))
        name, shown = self.headers[-1]
        if name == b"content-length" and len(shown) > _LONGEST_LENGTH:
            # The parser takes zeros without end, int() only some thousand digits.
            self._stop_parsing(UnknownFraming())
        if name == b"host":
            self._hosts += 1
            self._host = value
        elif name == b"transfer-encoding":
            self._encodings.append(value.lower())

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._bytes = self._count = 0
        self._stop_head_timer()
        if self.parser.get_method() == b"CONNECT":
            # It has a body of no known length, and the parser stops behind its head.
            self._stop_parsing(MethodNotAllowed(_METHODS))
        version = self.parser.get_http_version()
        if version not in ("1.1", "1.0"):
            self._stop_parsing(NotHttp())
        if self._hosts != 1 and (version == "1.1" or self._hosts):  # RFC 9112, section 3.2
            self._stop_parsing(NotOneHost())
        if self._hosts and _HOST.fullmatch(self._host.strip(b" \t")) is None:
            # A proxy and the gateway could read different names out of it.
            self._stop_parsing(NotOneHost())
        if self._hosts and not self.url.startswith((b"/", b"*")) and not self._is_for_host():
            self._stop_parsing(AnotherHost())
        if self._encodings and (self._encodings != [b"chunked"] or version == "1.0"):
            self._stop_parsing(UnknownFraming())  # RFC 9112, section 6.1
        super().on_headers_complete()
        self._in_body = True

    def on_message_complete(self) -> None:
        self._in_body = False
        super().on_message_complete()

    def _is_for_host(self) -> bool:
        """Whether a target in absolute form names the Host header's host (RFC 9112, section 3.2.2).

        The target decides where the two differ; a request that differs is refused instead.
        """
        scheme, _, rest = self.url.partition(b"://")
        port = _PORTS.get(scheme.lower(), b"")
        authority = _AUTHORITY_END.split(rest, maxsplit=1)[0]
        return _without_port(authority, port) == _without_port(self._host.strip(), port)

    def send_400_response(self, msg: str) -> None:
        """Answer a request that the parser or a callback refused; called by the base."""
        self._refuse(self._refusal or NotHttp())

    def _stop_parsing(self, error: ApiError) -> None:
        self._refusal = error
        raise error

    def _refuse(self, error: ApiError) -> None:
        """Answer ``error`` in its turn and end the connection; only end it when that is too late.

        What is refused is the request whose body arrives, which may be queued, or answered in part or
        in full, or one whose head is not complete.
        """
        self._stop_head_timer()
        own = self.cycle if self._in_body else None
        if own is not None and self.pipeline:
            self.pipeline.popleft()  # it came last, and must not begin
        elif own is not None:
            if own.response_started:
                self.transport.close()
                return
            # The application may be about to answer: one answer to one request.
            own.disconnected = True
            own.waiting_for_100_continue = False
            own.message_event.set()
        unfinished = self._answered is not None and not self._answered.response_complete
        if unfinished and self._answered is not own:
            self._end_behind(error)
        else:
            self._answer_and_end(error)

    def _start_head_timer(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(settings.SVC_HEAD_SECONDS, self._head_timed_out)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_timed_out(self) -> None:
        self._head_timer = None
        if self.transport.is_closing() or self.parser is None:
            return
        if self._in_head:
            self._refuse(HeadTooSlow())
        else:
            # No request has begun, as when a browser connects ahead of need.
            self.transport.close()


class PipelinedProtocol(PipelineBound, ContractHttpProtocol):  # type: ignore[misc]  # its flow
    """The protocol of the server: the contract's HTTP, parsed as fast as it is answered."""

    def parsing_held(self) -> None:
        # The rest of a head that has arrived waits here for the server, not for the client.
        self._stop_head_timer()
