"""The client: kept connections by origin, and requests over them."""

from __future__ import annotations

import asyncio
from functools import partial
from math import inf
from typing import Final

from svc_project.lib.http_client.connecting import Connector
from svc_project.lib.http_client.connection import Connection
from svc_project.lib.http_client.errors import Closed
from svc_project.lib.http_client.request import Origin, RequestHead
from svc_project.lib.http_client.response import Response

KEPT_SECONDS: Final = 15.0
"""How long an idle connection is kept."""


class HttpClient:
    """Sends requests over kept or new connections; belongs to one event loop.

    How many connections there are is up to the callers: a request that finds no idle one opens one.
    """

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._kept: dict[Origin, list[Connection]] = {}
        self._open: set[Connection] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self._closed = False

    async def send(
        self, request: RequestHead, body: bytes | None, *, fresh: bool = False, due: float = inf
    ) -> Response:
        """Send a request and return its answer as soon as the head has arrived. Raises ``HttpError``.

        ``fresh``: over a connection of its own, closed afterwards. ``due``: the deadline of the whole
        exchange, in seconds of the event loop's clock; ``Response.set_deadline`` moves it. Cancelling
        the caller closes the connection at once.
        """
        if self._closed:
            raise Closed
        connection = None if fresh else self._take(request.origin)
        if connection is None:
            connection = await self._connect(request.origin, due, fresh=fresh)
        length = None if body is None else len(body)
        return await connection.exchange(request.render(length, close=fresh), body or b"", due)

    async def close(self) -> None:
        """Close every connection; running exchanges end with ``Closed``."""
        self._closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        for connection in list(self._open):
            connection.abort()
        self._kept.clear()
        # Transports close their sockets in the next turn of the loop.
        await asyncio.sleep(0)

    def _take(self, origin: Origin) -> Connection | None:
        """Return the connection that became idle last, the least likely to be closed by its server."""
        kept = self._kept.get(origin)
        while kept:
            connection = kept.pop()
            if not connection.closed:
                if connection.loop.time() - connection.idle_since < KEPT_SECONDS:
                    return connection
                connection.abort()
        return None

    async def _connect(self, origin: Origin, due: float, *, fresh: bool) -> Connection:
        loop = asyncio.get_running_loop()
        idle = Connection.abort if fresh else self._keep
        made = partial(Connection, origin, loop, idle, self._lost)
        connection = await self._connector.connect(origin, made, due)
        if self._closed:
            connection.abort()
        elif not connection.closed:
            self._open.add(connection)
        return connection

    def _keep(self, connection: Connection) -> None:
        connection.idle_since = connection.loop.time()
        self._kept.setdefault(connection.origin, []).append(connection)
        if self._sweep is None:
            self._sweep = connection.loop.call_later(KEPT_SECONDS, self._close_idle)

    def _lost(self, connection: Connection) -> None:
        self._open.discard(connection)
        kept = self._kept.get(connection.origin)
        if kept and connection in kept:
            kept.remove(connection)

    def _close_idle(self) -> None:
        """Close connections that were idle for too long; one timer serves them all."""
        self._sweep = None
        for origin, kept in list(self._kept.items()):
            for connection in list(kept):
                if connection.loop.time() - connection.idle_since >= KEPT_SECONDS:
                    connection.abort()
            if not kept:
                del self._kept[origin]
        if self._kept and not self._closed:
            loop = asyncio.get_running_loop()
            self._sweep = loop.call_later(KEPT_SECONDS / 3, self._close_idle)
