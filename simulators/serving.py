"""Shared by the simulated servers: serving on several ports, responses, breaking connections.

docs/develop/simulator.md describes the simulators.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import struct
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

JSON = b"application/json"
MAX_BODY_BYTES = 64 * 1024 * 1024

Header = tuple[bytes, bytes]
App = Callable[[Any, Any, Any], Awaitable[None]]


class Broken(Exception):
    """The answer was ended on purpose; nothing more must be sent."""


class BodyTooLarge(Exception):
    """The request's body is larger than ``MAX_BODY_BYTES``."""


@dataclass(frozen=True, slots=True)
class Listener:
    """An application and the listening socket that it is served on.

    ``announce`` gets the address as soon as connections are taken.
    """

    app: App
    socket: socket.socket
    announce: Callable[[str], None]


def break_connection(transport: asyncio.Transport, *, reset: bool) -> None:
    """Close the connection in the middle of an answer: with a FIN, or with a RST when ``reset``.

    Always raises ``Broken``.
    """
    if reset:
        connection = transport.get_extra_info("socket")
        # Linger for zero seconds: close() sends a RST instead of a FIN (socket(7), SO_LINGER).
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    else:
        transport.close()
    raise Broken


async def respond(
    send: Any,
    status: int,
    content: Any,
    content_type: bytes = JSON,
    *,
    extra: tuple[Header, ...] = (),
) -> None:
    """Send one whole response; ``content`` that is not bytes is encoded as JSON."""
    body = content if isinstance(content, bytes) else msgspec.json.encode(content)
    headers = [
        (b"content-type", content_type),
        (b"content-length", str(len(body)).encode()),
        *extra,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def read_body(receive: Any) -> bytes:
    """Read the request's body. Raises ``BodyTooLarge``, or ``ConnectionError`` on a disconnect."""
    parts, size = [], 0
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise ConnectionError("The client disconnected before its request was complete.")
        parts.append(event["body"])
        size += len(event["body"])
        if size > MAX_BODY_BYTES:
            raise BodyTooLarge
        if not event["more_body"]:
            return b"".join(parts)


async def run_until_disconnected(answering: Coroutine[Any, Any, None], receive: Any) -> bool:
    """Run ``answering`` until it is done (True) or the client disconnects (False)."""
    answer = asyncio.ensure_future(answering)
    disconnect = asyncio.ensure_future(disconnected(receive))
    try:
        await asyncio.wait((answer, disconnect), return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            answer.result()
            return True
        return False
    finally:
        answer.cancel()
        disconnect.cancel()
        await asyncio.gather(answer, disconnect, return_exceptions=True)


async def disconnected(receive: Any) -> None:
    """Wait until the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


class _Protocol(HttpToolsProtocol):
    """Puts the transport into ``scope["state"]``: ASGI itself cannot break a connection."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["state"]["transport"] = self.transport


class _Server(uvicorn.Server):
    """Announces its addresses when it listens, and aborts its connections when it stops."""

    def __init__(
        self,
        config: uvicorn.Config,
        listeners: Sequence[Listener],
        at_end: Callable[[], Awaitable[None]] | None,
    ) -> None:
        super().__init__(config)
        self._listeners = listeners
        self._at_end = at_end

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in self._listeners:
            host, port = listener.socket.getsockname()[:2]
            listener.announce(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await super().shutdown(sockets)
        if self._at_end is not None:
            await self._at_end()


def serve(
    listeners: Sequence[Listener], at_end: Callable[[], Awaitable[None]] | None = None
) -> None:
    """Serve until SIGTERM or SIGINT, then await ``at_end``.

    ``scope["state"]["transport"]`` is the connection under a request.
    """
    apps = {listener.socket.getsockname()[1]: listener.app for listener in listeners}

    async def by_port(scope: Any, receive: Any, send: Any) -> None:
        await apps[scope["server"][1]](scope, receive, send)

    config = uvicorn.Config(
        by_port if len(apps) > 1 else listeners[0].app,
        loop="uvloop",
        http=_Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=75,
    )
    # uvicorn raises the signal again after it has stopped; exit with 0, because that is no failure.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with contextlib.suppress(KeyboardInterrupt):
        _Server(config, listeners, at_end).run([listener.socket for listener in listeners])
