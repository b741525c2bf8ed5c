"""Opens connections: names are resolved, each address is checked, TLS is verified."""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Final

from aiohappyeyeballs import AddrInfoType, start_connection

from svc_project.lib.http_client.connection import Connection
from svc_project.lib.http_client.errors import NotConnected, Obstacle
from svc_project.lib.http_client.request import Origin

Resolve = Callable[[str, int], Awaitable[list[AddrInfoType]]]
OpenSocket = Callable[[AddrInfoType], socket.socket]

_NAMES_SECONDS: Final = 10.0
"""How long the addresses of a name are used again."""
_HEAD_START_SECONDS: Final = 0.25
"""How long an address is tried before the next one is tried beside it (RFC 8305, section 5)."""


@functools.cache
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

        Raises ``NotConnected``.
        """
        try:
            now = asyncio.get_running_loop().time()
            async with asyncio.timeout_at(min(due, now + self._seconds)):
                return await self._connect(origin, made)
        except (socket.gaierror, UnicodeError) as error:
            raise NotConnected(Obstacle.UNKNOWN_NAME, error) from None
        except ssl.SSLError as error:
            raise NotConnected(Obstacle.TLS, error) from None
        except TimeoutError as error:
            raise NotConnected(Obstacle.TIMED_OUT, error) from None
        except (OSError, RuntimeError) as error:
            # uvloop raises RuntimeError for some failures of the system.
            raise NotConnected(Obstacle.REFUSED, error) from None

    async def _connect(self, origin: Origin, made: Callable[[], Connection]) -> Connection:
        loop = asyncio.get_running_loop()
        connected = await start_connection(
            await self._addresses(origin.host, origin.port),
            happy_eyeballs_delay=_HEAD_START_SECONDS,
            interleave=1,
            loop=loop,
            socket_factory=self._open_socket,
        )
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
