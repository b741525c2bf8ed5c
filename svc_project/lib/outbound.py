"""The HTTP client towards model servers, and what all of them have in common."""

from __future__ import annotations

import errno
import ipaddress
import logging
import socket

import aiohttp
from aiohttp.connector import AddrInfoType
from django.conf import settings

from svc_project.lib.addresses import refusal

log = logging.getLogger(__name__)


def open_session() -> aiohttp.ClientSession:
    """A pooled client for JSON requests to model servers; belongs to the running event loop.

    No cookies, no proxies from the environment, no compression: a model server's answer is passed
    on as it comes. Only connecting is limited in time here. Callers forbid redirects on each
    request (``allow_redirects=False``): a model server never chooses a host.

    An address that ``addresses.refusal`` refuses is not connected to, whatever name led there:
    to the caller it is one that cannot be reached (``aiohttp.ClientConnectorError``).
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            limit=0, keepalive_timeout=15.0, socket_factory=_open_socket
        ),
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
