"""HTTP/1.1 at the socket: bounds on a request's head, and the answers to invalid requests.

The parser (llhttp, strict) refuses the ambiguous messages that smuggling needs. This module adds
bounds on the size and time of a head, and checks trailers.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

from django.conf import settings

from svc_project.lib.errors import ApiError, BadRequest
from svc_project.lib.ids import request_id
from svc_project.serving.connection_bounds import BoundedProtocol
from svc_project.serving.connection_watches import PipelineBound
from svc_project.surfaces import error_body_of, surface_of

LARGEST_TARGET = 16 * 1024
"""Bytes of a request target; above it 414."""
LARGEST_HEAD = 32 * 1024
"""Bytes of names and values of all headers, and again of all trailers; above it 431."""
MOST_HEADERS = 100

_AUTHORITY_END = re.compile(rb"[/?#]")
_PORTS = {b"http": b":80", b"https": b":443"}
_REASONS = {
    400: "Bad Request",
    408: "Request Timeout",
    414: "URI Too Long",
    431: "Request Header Fields Too Large",
}


class NotHttp(BadRequest):
    default_message = "What arrived is not a valid HTTP request. Send it again."


class NotOneHost(BadRequest):
    default_message = "The request needs exactly one Host header."


class AnotherHost(BadRequest):
    default_message = "The address in the request line and the Host header name different hosts."


class UnknownFraming(BadRequest):
    default_message = (
        "Send the body with a Content-Length, or with chunked as its only Transfer-Encoding."
    )


class HeadTooSlow(BadRequest):
    status = 408
    default_message = "The head of the request did not arrive in time. Send it again."


class TargetTooLong(BadRequest):
    status = 414
    default_message = f"The address is longer than {LARGEST_TARGET} bytes. Send a shorter one."


class HeadTooLarge(BadRequest):
    status = 431
    default_message = (
        f"The headers are more than {MOST_HEADERS} or larger than {LARGEST_HEAD} bytes together. "
        "Send fewer or shorter ones."
    )


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
        self._in_head = True
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
        name = self.headers[-1][0]
        if name == b"host":
            self._hosts += 1
            self._host = value
        elif name == b"transfer-encoding":
            self._encodings.append(value.lower())

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._bytes = self._count = 0
        self._stop_head_timer()
        version = self.parser.get_http_version()
        if version not in ("1.1", "1.0"):
            self._stop_parsing(NotHttp())
        if self._hosts != 1 and (version == "1.1" or self._hosts):  # RFC 9112, section 3.2
            self._stop_parsing(NotOneHost())
        if self._hosts and not self.url.startswith((b"/", b"*")) and not self._is_for_host():
            self._stop_parsing(AnotherHost())
        if self._encodings and (self._encodings != [b"chunked"] or version == "1.0"):
            self._stop_parsing(UnknownFraming())  # RFC 9112, section 6.1
        super().on_headers_complete()

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
        """Answer ``error`` and close; only close when another answer is under way."""
        busy = self.cycle is not None and not self.cycle.response_complete
        if not self.pipeline and not (busy and self.cycle.response_started):
            surface = surface_of({"server": self.server, "headers": ()})
            body = error_body_of(surface, error)
            head = (
                f"HTTP/1.1 {error.status} {_REASONS[error.status]}\r\n"
                f"x-request-id: {request_id()}\r\n"
                "content-type: application/json\r\n"
                f"content-length: {len(body)}\r\n"
                "connection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
        if busy:
            # The application may be about to answer: one answer to one request.
            self.cycle.disconnected = True
        self.transport.close()

    def _start_head_timer(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(settings.SVC_HEAD_SECONDS, self._head_timed_out)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_timed_out(self) -> None:
        self._head_timer = None
        if self.transport.is_closing():
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
