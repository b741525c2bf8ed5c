"""The client: opens connections, keeps them by origin, and sends requests over them.

Opening one resolves the name, checks each address and verifies TLS.
"""

from __future__ import annotations

import asyncio
import ipaddress
import random
import socket
import ssl
from collections.abc import Awaitable, Callable
from functools import cache, partial
from math import inf
from typing import Final

from aiohappyeyeballs import AddrInfoType, start_connection

from core.http_client.connection import Connection
from core.http_client.request import Closed, ConnectError, Obstacle, Origin, RequestHead
from core.http_client.response import Response

Resolve = Callable[[str, int], Awaitable[list[AddrInfoType]]]
OpenSocket = Callable[[AddrInfoType], socket.socket]

KEPT_SECONDS: Final = 15.0
"""How long an idle connection is kept."""
OLDEST_SECONDS: Final = 60.0
"""How long a connection is used again, and up to twice as long, so that not all end at once. A busy one
would never end by itself, and its requests would go on to the old server when the name has moved."""
_NAMES_SECONDS: Final = 10.0
"""How long the addresses of a name are used again."""
_FAILED_NAMES_SECONDS: Final = 1.0
"""The same when none of them took a connection: the server may have moved."""
_HEAD_START_SECONDS: Final = 0.25
"""How long an address is tried before the next one is tried beside it (RFC 8305, section 5)."""


@cache
def tls_context() -> ssl.SSLContext:
    """The settings of every TLS connection: certificate and host name are verified."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


async def resolve(host: str, port: int) -> list[AddrInfoType]:
    """Look up ``host``. Raises ``OSError`` or ``UnicodeError`` for a name that cannot be resolved."""
    loop = asyncio.get_running_loop()
    return list(
        await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    )


class Connector:
    """Opens connections within ``seconds`` each, name resolution and TLS included.

    ``open_socket`` gets each address just before it is connected to, and may refuse it by ``OSError``.
    """

    def __init__(self, seconds: float, open_socket: OpenSocket, resolve: Resolve = resolve) -> None:
        self._seconds = seconds
        self._open_socket = open_socket
        self._resolve = resolve
        self._known: dict[tuple[str, int], tuple[float, list[AddrInfoType]]] = {}

    async def connect(
        self, origin: Origin, made: Callable[[], Connection], due: float
    ) -> Connection:
        """Return a new connection to ``origin``, made by ``made``, before ``due`` (the loop's clock).

        Raises ``ConnectError``.
        """
        try:
            now = asyncio.get_running_loop().time()
            async with asyncio.timeout_at(min(due, now + self._seconds)):
                return await self._connect(origin, made)
        except (socket.gaierror, UnicodeError) as error:
            raise ConnectError(Obstacle.UNKNOWN_NAME, error) from None
        except ssl.SSLError as error:
            raise ConnectError(Obstacle.TLS, error) from None
        except TimeoutError as error:
            raise ConnectError(Obstacle.TIMED_OUT, error) from None
        except (OSError, RuntimeError) as error:
            # uvloop raises RuntimeError for some failures of the system.
            raise ConnectError(Obstacle.REFUSED, error) from None

    async def _connect(self, origin: Origin, made: Callable[[], Connection]) -> Connection:
        loop = asyncio.get_running_loop()
        addresses = await self._addresses(origin.host, origin.port)
        try:
            connected = await start_connection(
                addresses,
                happy_eyeballs_delay=_HEAD_START_SECONDS,
                interleave=1,
                loop=loop,
                socket_factory=self._open_socket,
            )
        except BaseException:
            self._doubt(origin.host, origin.port)
            raise
        try:
            _, connection = await loop.create_connection(
                made,
                sock=connected,
                ssl=tls_context() if origin.tls else None,
                server_hostname=origin.host if origin.tls else None,
            )
        except BaseException:
            connected.close()
            raise
        return connection

    async def _addresses(self, host: str, port: int) -> list[AddrInfoType]:
        """Return the addresses of ``host``; several take turns in being the first."""
        if literal := _literal(host, port):
            return [literal]
        now = asyncio.get_running_loop().time()
        until, addresses = self._known.get((host, port), (0.0, []))
        if until <= now:
            addresses = await self._resolve(host, port)
            if not addresses:
                raise socket.gaierror(socket.EAI_NONAME, "no address")
            self._known = {key: each for key, each in self._known.items() if each[0] > now}
            until = now + _NAMES_SECONDS
        self._known[host, port] = until, addresses[1:] + addresses[:1]
        return addresses

    def _doubt(self, host: str, port: int) -> None:
        """Look ``host`` up again soon: none of its addresses takes connections."""
        if (known := self._known.get((host, port))) is not None:
            until, addresses = known
            soon = asyncio.get_running_loop().time() + _FAILED_NAMES_SECONDS
            self._known[host, port] = min(until, soon), addresses


def _literal(host: str, port: int) -> AddrInfoType | None:
    """The address that ``host`` is, without a resolver; None for a name and for an IPv6 zone."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    kind, protocol = socket.SOCK_STREAM, socket.IPPROTO_TCP
    if isinstance(address, ipaddress.IPv4Address):
        return socket.AF_INET, kind, protocol, "", (host, port)
    return None if address.scope_id else (socket.AF_INET6, kind, protocol, "", (host, port, 0, 0))


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
        self,
        request: RequestHead,
        body: bytes | None,
        *,
        fresh: bool = False,
        rest: float = 0.0,
        due: float = inf,
    ) -> Response:
        """Send a request and return its answer as soon as the head has arrived. Raises ``HttpError``.

        ``fresh``: over a connection of its own, closed afterwards. ``rest``: how many seconds after the
        end of the answer its connection may carry the next request, if it is open then. ``due``: the
        deadline of the whole exchange, in seconds of the event loop's clock;
        ``Response.set_deadline`` moves it. Cancelling the caller closes the connection at once.
        """
        if self._closed:
            raise Closed
        connection = None if fresh else self._take(request.origin)
        if connection is None:
            connection = await self._connect(request.origin, due, fresh=fresh)
        connection.rest = rest
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
        idle = Connection.abort if fresh else self._rest
        seconds = OLDEST_SECONDS * (1 + random.random())  # noqa: S311  # no secret
        made = partial(Connection, origin, loop, idle, self._lost, loop.time() + seconds)
        connection = await self._connector.connect(origin, made, due)
        if self._closed:
            connection.abort()
        elif not connection.closed:
            self._open.add(connection)
        return connection

    def _rest(self, connection: Connection) -> None:
        """Keep the connection, at once or when it has rested."""
        if connection.rest:
            connection.loop.call_later(connection.rest, self._keep, connection)
        else:
            self._keep(connection)

    def _keep(self, connection: Connection) -> None:
        if connection.closed:
            return
        if connection.loop.time() >= connection.oldest:
            connection.abort()
            return
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
