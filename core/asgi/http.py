"""The base of the consumers that answer over HTTP while they wait on a model server.

A Channels consumer without its base's work for each message (a channel on the channel layer, a
check of every database connection). It adds a bound on the body while it is read, and detects a
disconnect of the client while the answer is made.
"""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, ClassVar, Final, Protocol

from channels.consumer import AsyncConsumer

from core.asgi.drain import drain
from core.deadlines import Deadline
from core.errors import (
    ApiError,
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
from core.sharing.places import Holder, arriving, held_bodies, lingering

log = logging.getLogger(__name__)

Header = tuple[bytes, bytes]
JSON_TYPE: Header = (b"content-type", b"application/json")

_UNREAD_BYTES = 64 * 1024
_LINGER_SECONDS: Final = 2.0
_LINGER_FAST_BYTES: Final = 1024 * 1024
"""Bytes of a refused request that are read as fast as they come."""
_LINGER_PAUSE_SECONDS: Final = 0.1


class Stoppable(Protocol):
    """Makes an answer, and can be stopped early."""

    def stop(self, reason: ApiError) -> None: ...


def watch_disconnect(
    scope: Mapping[str, Any],
    receive: Callable[[], Awaitable[dict[str, Any]]],
    disconnected: Callable[[], None],
) -> Callable[[], object]:
    """Call ``disconnected`` once when the client disconnects, or at once if it has already.

    Sending to a disconnected client raises nothing on any ASGI server. Our own server calls back
    when a connection ends, which needs no task; on any other a task waits for the ASGI message.

    The body must have been read. Returns a function that ends the watch.
    """
    connection = scope.get("svc.connection")
    if connection is not None:
        end: Callable[[], object] = connection.watch_disconnect(disconnected)
        return end
    return asyncio.create_task(_wait_for_disconnect(receive, disconnected)).cancel


async def _wait_for_disconnect(
    receive: Callable[[], Awaitable[dict[str, Any]]], disconnected: Callable[[], None]
) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    disconnected()


async def linger(
    scope: Mapping[str, Any], receive: Callable[[], Awaitable[dict[str, Any]]]
) -> None:
    """Read and drop the body of an answered request, until its end and at most for 2 seconds.

    Closing with unread bytes resets the connection, and a client that still writes could lose the
    answer (RFC 9112, section 9.6).

    Proxies look for the answer only when they cannot write on, so most of a large body is left in
    the network: nginx would send all of it, and report the reset at its end instead of the answer.
    """
    size = 0
    with suppress(TimeoutError), Deadline(_LINGER_SECONDS):
        while (message := await receive()).get("more_body"):
            size += len(message["body"])
            if size >= _LINGER_FAST_BYTES:
                connection = scope.get("svc.connection")
                if connection is not None:
                    connection.flow.pause_reading()
                await asyncio.sleep(_LINGER_PAUSE_SECONDS)


class HttpConsumer(AsyncConsumer, Holder, ABC):  # type: ignore[misc]  # channels carries no types
    """One HTTP exchange. Subclasses implement ``answer``.

    ``answer`` runs to its end even when the client disconnects: ``disconnected`` is true then, the
    maker given to ``follow`` is stopped, and sending does nothing. An ``ApiError`` raised before
    ``start`` becomes a status, with the body of ``render_error``.

    A subclass checks the key and sets ``owner`` before it calls ``read_body``. From then on the
    request holds a place in ``arriving``, until it holds another or ends.
    """

    channel_layer_alias = None
    body_seconds: ClassVar[float] = 30.0
    """How long the whole body may take to arrive."""
    surface: ClassVar[str]
    route: ClassVar[str]
    """Label in the metrics, like ``surface``."""
    overload_headers: ClassVar[Mapping[str, str]] = {}
    """Headers of ``server_overloaded`` on this surface."""
    observed: Observation | None = None

    scope: dict[str, Any]

    def __init__(self) -> None:
        self.request_id = request_id()
        self.arrived = time.perf_counter()
        self.disconnected = False
        self.started = False
        self.status = 0
        """The status that was sent; 0 before."""
        self.failure: ApiError | None = None
        """The error that the answer ended with, in-band errors too."""
        self._maker: Stoppable | None = None
        self._headers: dict[bytes, bytes] | None = None
        self._held = 0
        self._body_read = False
        self._body_late = False
        self._receive: Callable[[], Awaitable[dict[str, Any]]]
        self._send: Callable[[dict[str, Any]], Awaitable[None]]

    @classmethod
    def as_asgi(cls, **arguments: Any) -> Callable[..., Awaitable[None]]:
        """Return the ASGI application that makes a consumer with ``arguments`` for each request.

        As Channels' own, but without a coroutine that waits for the consumer's.
        """

        def application(scope: Any, receive: Any, send: Any) -> Awaitable[None]:
            return cls(**arguments)(scope, receive, send)

        return application

    async def __call__(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[dict[str, Any]]],
        send: Callable[[dict[str, Any]], Awaitable[None]],
    ) -> None:
        self.scope, self._receive, self._send = scope, receive, send
        self._begin()
        drain.enter(self)
        try:
            await self.answer()
        except ApiError as error:
            await self._fail(error)
        except Exception as error:
            log_unexpected(log, self.request_id, error)
            await self._fail(InternalError())
        finally:
            drain.leave(self)
            self.release_place()
            if self._held:
                held_bodies.release(self._held, self.owner)
            self._finish()

    def _begin(self) -> None:
        """Give the log the request's id, and observe the request where somebody does."""
        current_request.begin(self.request_id)
        if observers or self.header(TRACEPARENT) is not None:
            self.observed = observation.begin(self.request_id, self.scope, self.surface, self.route)
        else:
            observation.nothing(None)

    @abstractmethod
    async def answer(self) -> None:
        """Make the whole answer. Raises ``ApiError``."""

    def follow(self, maker: Stoppable) -> None:
        """Stop ``maker`` when the client disconnects, at once if it has already, and when the
        server stops before the answer is complete."""
        self._maker = maker
        if self.disconnected:
            maker.stop(ClientDisconnected())

    def server_draining(self, seconds: float) -> None:
        """Do nothing: an accepted request runs to its end."""

    def server_stopping(self) -> None:
        if self._maker is not None:
            self._maker.stop(ServerShuttingDown())

    def render_error(self, error: ApiError) -> bytes:
        return error_body(error)

    def header(self, name: bytes) -> bytes | None:
        """The first request header called ``name`` (lower case), or None."""
        known = self._headers
        if known is None:
            known = self._headers = dict(reversed(self.scope["headers"]))
        return known.get(name)

    async def read_body(self, largest: int) -> bytes:
        """Read and return the request body, of at most ``largest`` bytes.

        Raises ``RequestTooLarge`` as soon as more bytes have arrived or are announced,
        ``ServerOverloaded`` when too many requests arrive at once or bodies hold too many bytes, in
        all or for the owner, and ``InvalidField`` when the body is compressed or does not arrive
        within ``body_seconds``; never ``asyncio.CancelledError``.
        """
        self.hold(arriving)
        if (self.header(b"content-encoding") or b"identity").strip().lower() != b"identity":
            raise InvalidField(
                "The request body is compressed. Send it as it is, without Content-Encoding."
            )
        announced = self.header(b"content-length")
        if announced is not None and announced.isdigit():
            if int(announced) > largest:
                raise _too_large(largest)
            held_bodies.check(int(announced), self.owner)
        try:
            with Deadline(self.body_seconds):
                message = await self._receive()
                body: bytes = message.get("body", b"")
                self._hold(len(body))
                if message.get("more_body"):
                    parts = [body]
                    size = len(body)
                    while message.get("more_body") and size <= largest:
                        message = await self._receive()
                        parts.append(message.get("body", b""))
                        size += len(parts[-1])
                        self._hold(len(parts[-1]))
                    body = b"".join(parts)
        except TimeoutError:
            self._body_late = True
            raise InvalidField("The request body did not arrive in time. Send it again.") from None
        if message["type"] == "http.disconnect":
            self.disconnected = True
        self._body_read = not message.get("more_body")
        if len(body) > largest:
            raise _too_large(largest)
        return body

    @property
    def backed_up(self) -> bool:
        """Whether the client reads so slowly that the next ``send_body`` waits for it.

        Always False on servers other than our own.
        """
        connection = self.scope.get("svc.connection")
        return connection is not None and connection.flow.write_paused

    def watch_client(self) -> Callable[[], object]:
        """Watch for a disconnect from now on; call the result when the answer is complete.

        The body must have been read.
        """
        return watch_disconnect(self.scope, self._receive, self._client_disconnected)

    def _client_disconnected(self) -> None:
        if not self.disconnected:
            self.disconnected = True
            if self._maker is not None:
                self._maker.stop(ClientDisconnected())

    async def start(
        self, status: int, headers: Iterable[Header], *, is_answer: bool = True
    ) -> None:
        """Send the status line and headers, ``x-request-id`` among them.

        ``is_answer``: whether the answer follows at once, so that this is when it begins.
        """
        self.started = True
        self.status = status
        if self.disconnected:
            return
        if self.observed is not None and is_answer:
            self.observed.mark_first_byte()
        await self._send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [(b"x-request-id", self.request_id.encode()), *headers],
            }
        )

    async def send_body(self, body: bytes, *, more: bool) -> None:
        """Send a part of the body; waits while the client reads slowly."""
        if not self.disconnected:
            await self._send({"type": "http.response.body", "body": body, "more_body": more})

    async def respond(self, status: int, body: bytes, headers: Iterable[Header] = ()) -> None:
        """Send a whole JSON response."""
        await self.start(
            status, [JSON_TYPE, (b"content-length", str(len(body)).encode()), *headers]
        )
        await self.send_body(body, more=False)

    def _hold(self, size: int) -> None:
        held_bodies.take(size, self.owner)
        self._held += size

    def _finish(self) -> None:
        """Count the answer, and release the frames that its error holds."""
        failure = self.failure
        if failure is not None:
            drop_traceback(failure)
        if isinstance(failure, ClientDisconnected):
            status = failure.status
        elif self.status:
            status = self.status
        else:
            status = 0  # it disconnected before it sent a request
        code = "" if failure is None else failure.code or ""
        if status:
            metrics.requests.add(self.surface, self.route, str(status), code)
            if failure is not None and not failure.admitted and status != ClientDisconnected.status:
                self.refused(failure)
        if self.observed is not None:
            self.observed.organization_id = self.organization()
            self.observed.end(status or ClientDisconnected.status, failure)

    def refused(self, error: ApiError) -> None:
        """Called with the error that answered a request without a row; a subclass reports it."""

    def organization(self) -> str | None:
        """The id of the caller's organization, if it is known."""
        return self.owner or None

    async def _fail(self, error: ApiError) -> None:
        self.failure = error
        if self.started:
            # No status can follow; a response without its last chunk tells the client.
            return
        if isinstance(error, ServerOverloaded):
            error.headers |= self.overload_headers
        headers = {name.encode(): value.encode() for name, value in error.headers.items()}
        body = self.render_error(error)
        if self._leaves_little_unread():
            self.release_place()
            await self.respond(error.status, body, [*headers.items()])
            return
        headers[b"connection"] = b"close"
        length = (b"content-length", str(len(body)).encode())
        await self.start(error.status, [JSON_TYPE, length, *headers.items()])
        try:
            self.hold(lingering)
        except ServerOverloaded:
            self.release_place()
            await self.send_body(body, more=False)
            return
        await self.send_body(body, more=True)
        await linger(self.scope, self._receive)
        await self.send_body(b"", more=False)

    def _leaves_little_unread(self) -> bool:
        """Whether the rest of the body is small enough to read it and keep the connection."""
        if self._body_read:
            return True
        if self._body_late or self.header(b"transfer-encoding") is not None:
            return False
        announced = self.header(b"content-length") or b"0"
        return announced.isdigit() and int(announced) <= _UNREAD_BYTES


def _too_large(largest: int) -> RequestTooLarge:
    return RequestTooLarge(
        f"The request body is larger than {largest} bytes, the most that is accepted here. "
        "Send a smaller one."
    )
