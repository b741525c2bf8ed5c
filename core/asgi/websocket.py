"""The base of the consumers that serve a WebSocket while they wait on a model server.

The counterpart of ``core.asgi.http``: a Channels consumer without its base's work for
each message. A refusal before the handshake is an HTTP response with a body, where the server has
the ASGI extension ``websocket.http.response`` (uvicorn does), else the bare 403 of the protocol.
"""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, ClassVar, Final

from channels.consumer import AsyncConsumer

from core.asgi.drain import drain
from core.asgi.http import JSON_TYPE, Header
from core.errors import (
    ApiError,
    BadRequest,
    ClientDisconnected,
    InternalError,
    InvalidField,
    RequestTooLarge,
    ServerOverloaded,
    ServerShuttingDown,
    drop_traceback,
    error_body,
)
from core.ids import request_id
from core.monitoring import current_request, metrics, observation
from core.monitoring.logs import log_unexpected
from core.monitoring.observation import Observation, observers
from core.monitoring.trace_context import TRACEPARENT
from core.sharing.places import Holder

log = logging.getLogger(__name__)

NORMAL_CLOSE = 1000
VERSION: Final = 13
"""Of the WebSocket protocol (RFC 6455, section 4.1)."""
READER_STALLED = "svc.reader_stalled"
"""In a ``websocket.disconnect``: the client is connected, but has stopped reading.

Messages sent then are queued behind the unread ones (``svc_project.serving.http_protocol``).
"""

Send = Callable[[dict[str, Any]], Awaitable[None]]


class BadHandshake(BadRequest):
    """A header of the handshake is missing or not valid (RFC 6455, section 4.2.1)."""

    default_message = "The WebSocket handshake is not valid."
    cause = "A header of a WebSocket handshake is missing or not valid."
    cure = "Connect with a WebSocket library, and do not set its headers yourself."


class UpgradeRequired(BadRequest):
    """The path is a WebSocket's and the request opens none (RFC 9110, section 15.5.22)."""

    status = 426
    default_message = (
        "This path is a WebSocket. Connect with a WebSocket client: GET over HTTP/1.1, without a "
        "body, as the first request or after a complete answer."
    )
    cause = (
        "A request to the path of a WebSocket opens none: it asks for no upgrade or for "
        "another version, has a body, or was sent before the answer to an earlier request of "
        "its connection."
    )
    cure = (
        "Connect with a WebSocket library. Behind a proxy, have it pass `Upgrade` and "
        "`Connection` on."
    )

    def __init__(self, message: str | None = None) -> None:
        upgrade = {"upgrade": "websocket", "sec-websocket-version": str(VERSION)}
        super().__init__(message, headers={"connection": "close, upgrade", **upgrade})


class ReaderStalled(ApiError):
    """The client has stopped reading."""

    status = 408
    type = "invalid_request_error"
    default_message = "Nothing was read for too long."
    cause = "The client of a WebSocket stopped reading."
    cure = "Read messages while you send text."


class SocketConsumer(AsyncConsumer, Holder, ABC):  # type: ignore[misc]  # channels carries no types
    """One WebSocket. Subclasses implement ``converse``, ``error_message`` and ``close_code``.

    An ``ApiError`` that ``converse`` raises before ``accept`` is the answer to the upgrade; after
    ``accept`` it is sent as one message, then the socket is closed. ``draining`` is done when the
    process is about to end, with the seconds until then, ``stopping`` when that time is over.
    """

    channel_layer_alias = None
    largest_message: ClassVar[int] = 64 * 1024
    """The largest accepted message, in bytes."""
    surface: ClassVar[str]
    route: ClassVar[str]
    """Label in the metrics, like ``surface``."""
    overload_headers: ClassVar[Mapping[str, str]] = {}
    """Headers of an upgrade refused with ``server_overloaded``."""
    observed: Observation | None = None

    scope: dict[str, Any]
    draining: asyncio.Future[float]
    stopping: asyncio.Future[ApiError]

    def __init__(self) -> None:
        self.request_id = request_id()
        self.arrived = time.perf_counter()
        self.accepted = False
        self.status = 0
        """The status of the answer to the upgrade; 0 before."""
        self._receive: Callable[[], Awaitable[dict[str, Any]]]
        self._send: Send

    async def __call__(
        self, scope: dict[str, Any], receive: Callable[[], Awaitable[dict[str, Any]]], send: Send
    ) -> None:
        self.scope, self._receive, self._send = scope, receive, send
        current_request.begin(self.request_id)
        if observers or any(name == TRACEPARENT for name, _ in scope["headers"]):
            self.observed = observation.begin(self.request_id, scope, self.surface, self.route)
        loop = asyncio.get_running_loop()
        self.draining, self.stopping = loop.create_future(), loop.create_future()
        drain.enter(self)
        failure: ApiError | None = None
        try:
            await receive()  # websocket.connect
            await self.converse()
            await self.close(NORMAL_CLOSE)
        except ApiError as error:
            failure = error
            if not isinstance(error, ClientDisconnected):
                await self._fail(error)
        except Exception as error:
            log_unexpected(log, self.request_id, error)
            await self._fail(InternalError())
        finally:
            drain.leave(self)
            self.release_place()
            if self.status:
                metrics.requests.add(self.surface, self.route, str(self.status), "")
            if self.observed is not None:
                self.observed.organization_id = self.owner or None
                status = self.status or ClientDisconnected.status
                self.observed.end(status, failure)
            if failure is not None:
                if not failure.admitted and not isinstance(failure, ClientDisconnected):
                    self.refused(failure)
                drop_traceback(failure)

    @abstractmethod
    async def converse(self) -> None:
        """Run the whole session, from before the handshake. Raises ``ApiError``."""

    def render_error(self, error: ApiError) -> bytes:
        """The body of a refused upgrade."""
        return error_body(error)

    @abstractmethod
    def error_message(self, error: ApiError) -> str:
        """The last message of a failed session."""

    @abstractmethod
    def close_code(self, error: ApiError) -> int:
        """The close code of a failed session."""

    def refused(self, error: ApiError) -> None:
        """Called with the error that ended a session without a row; a subclass reports it."""

    def server_draining(self, seconds: float) -> None:
        self.draining.set_result(seconds)

    def server_stopping(self) -> None:
        if not self.stopping.done():
            self.stopping.set_result(ServerShuttingDown())

    async def accept(self) -> None:
        self.accepted, self.status = True, 101
        if self.observed is not None:
            self.observed.mark_first_byte()
        headers = [(b"x-request-id", self.request_id.encode())]
        await self._hand_over({"type": "websocket.accept", "headers": headers})

    async def receive_text(self) -> str:
        """Return the next message; a cancelled call loses none.

        Raises ``ClientDisconnected``, ``ReaderStalled``, ``RequestTooLarge``, and ``InvalidField``
        for a binary message.
        """
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            raise ReaderStalled if message.get(READER_STALLED) else ClientDisconnected
        text = message.get("text")
        if text is None:
            raise InvalidField("Binary messages are not taken here. Send JSON as text.")
        # A character is at most 4 bytes, so most messages need not be encoded to be measured.
        if len(text) * 4 > self.largest_message and (
            len(text.encode(errors="surrogatepass")) > self.largest_message
        ):
            raise RequestTooLarge(
                f"A message has at most {self.largest_message} bytes. Send the text in several."
            )
        assert isinstance(text, str)  # noqa: S101  # ASGI: text is a str
        return text

    async def send_text(self, text: str) -> None:
        """Send a text message. Raises ``ClientDisconnected``."""
        await self._hand_over({"type": "websocket.send", "text": text})

    async def send_bytes(self, content: bytes) -> None:
        """Send a binary message; waits until the client has read most of the earlier ones.

        Raises ``ClientDisconnected`` and ``ReaderStalled``.
        """
        await self._hand_over({"type": "websocket.send", "bytes": content})

    async def close(self, code: int) -> None:
        await self._hand_over({"type": "websocket.close", "code": code})

    async def _hand_over(self, message: dict[str, Any]) -> None:
        try:
            await self._send(message)
        except TimeoutError:
            raise ReaderStalled from None
        except OSError:
            raise ClientDisconnected from None

    async def _fail(self, error: ApiError) -> None:
        if not self.accepted:
            self.status = error.status
            if isinstance(error, ServerOverloaded):
                error.headers |= self.overload_headers
            await deny(self.scope, self._send, error, self.request_id, self.render_error(error))
            return
        with suppress(ClientDisconnected):
            await self.send_text(self.error_message(error))
            await self.close(self.close_code(error))


async def deny(
    scope: dict[str, Any], send: Send, error: ApiError, request_id: str, body: bytes
) -> None:
    """Refuse an upgrade with ``error``'s status and headers, and ``body``."""
    with suppress(OSError):  # the client may have disconnected
        if "websocket.http.response" not in (scope.get("extensions") or {}):
            await send({"type": "websocket.close", "code": NORMAL_CLOSE})
            return
        headers: list[Header] = [
            (b"x-request-id", request_id.encode()),
            JSON_TYPE,
            (b"content-length", str(len(body)).encode()),
            *((name.encode(), value.encode()) for name, value in error.headers.items()),
        ]
        await send(
            {
                "type": "websocket.http.response.start",
                "status": error.status,
                "headers": headers,
            }
        )
        await send({"type": "websocket.http.response.body", "body": body, "more_body": False})
