"""The HTTP client towards model servers, and what all of them have in common."""

from __future__ import annotations

import errno
import ipaddress
import logging
import socket
from contextvars import ContextVar
from typing import Final
from weakref import WeakSet

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import AddrInfoType, Connection
from aiohttp.tracing import Trace
from django.conf import settings

from svc_project.lib.addresses import refusal

log = logging.getLogger(__name__)


_reused: Final[ContextVar[bool]] = ContextVar("reused", default=False)


def is_reused() -> bool:
    """Whether the last request of the running task went over a connection that was kept."""
    return _reused.get()


class _Connector(aiohttp.TCPConnector):
    """Notes for each request whether its connection was used before.

    aiohttp tells it by traces too, which cost every request a tenth of its time.
    """

    def __init__(self, keepalive_timeout: float) -> None:
        super().__init__(limit=0, socket_factory=_open_socket, keepalive_timeout=keepalive_timeout)
        self._used: WeakSet[ResponseHandler] = WeakSet()

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        _reused.set(False)
        connection = await super().connect(req, traces, timeout)
        protocol = connection.protocol
        if protocol is not None:
            if protocol in self._used:
                _reused.set(True)
            else:
                self._used.add(protocol)
        return connection


def open_session(*, keep_alive: bool = True) -> aiohttp.ClientSession:
    """A pooled client for JSON requests to model servers; belongs to the running event loop.

    No cookies, no proxies from the environment, no compression: a model server's answer is passed
    on as it comes. Only connecting is limited in time here. Callers forbid redirects on each
    request (``allow_redirects=False``): a model server never chooses a host. Without
    ``keep_alive`` each request has a connection of its own.

    An address that ``addresses.refusal`` refuses is not connected to, whatever name led there:
    to the caller it is one that cannot be reached (``aiohttp.ClientConnectorError``).
    """
    connector = (
        _Connector(keepalive_timeout=15.0)
        if keep_alive
        else aiohttp.TCPConnector(limit=0, socket_factory=_open_socket, force_close=True)
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(
            total=None, sock_connect=settings.SVC_BACKEND_CONNECT_SECONDS
        ),
        trust_env=False,
        auto_decompress=False,
        read_bufsize=256 * 1024,
        max_line_size=16 * 1024,
        headers={
            "Content-Type": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": f"svc/{settings.VERSION}",
        },
    )


def _open_socket(target: AddrInfoType) -> socket.socket:
    """A socket for ``target``: the last step before connecting, with the address itself in hand."""
    family, kind, protocol, _, place = target
    reason = refusal(ipaddress.ip_address(str(place[0]).partition("%")[0]))
    if reason is not None:
        log.error("a backend's address is refused: %s", reason)
        raise OSError(errno.EACCES, reason)
    return socket.socket(family=family, type=kind, proto=protocol)
