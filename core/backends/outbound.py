"""Opens the HTTP client for model servers and speech servers, and checks where it connects to."""

from __future__ import annotations

import errno
import ipaddress
import logging
import socket
from collections.abc import Mapping

from aiohappyeyeballs import AddrInfoType
from django.conf import settings

from core.backends.addresses import refusal
from core.http_client.client import Connector, HttpClient
from core.http_client.request import RequestHead

log = logging.getLogger(__name__)


def open_client() -> HttpClient:
    """Return an HTTP client for model servers and speech servers; belongs to the running event loop.

    It never connects to an address that ``addresses.refusal`` refuses, whatever name resolved to
    it: the caller gets ``ConnectError``, as for an unreachable one.
    """
    return HttpClient(Connector(settings.SVC_BACKEND_CONNECT_SECONDS, _open_socket))


def request_head(method: str, url: str, headers: Mapping[str, str]) -> RequestHead:
    """Render a request to a backend; ``headers`` replace the client's own of the same name.

    An answer that is compressed all the same is refused by the callers: it is passed on unchanged.
    Raises ``ValueError``.
    """
    own = {
        "accept": "*/*",
        "accept-encoding": "identity",
        "user-agent": f"svc/{settings.VERSION}",
        "content-type": "application/json",
    }
    return RequestHead.of(method, url, {**own, **{k.lower(): v for k, v in headers.items()}})


def _open_socket(target: AddrInfoType) -> socket.socket:
    """Open a socket for ``target``: the last step before connecting, where the address is known."""
    family, kind, protocol, _, place = target
    reason = refusal(ipaddress.ip_address(str(place[0]).partition("%")[0]))
    if reason is not None:
        log.error("a backend's address is refused: %s", reason)
        raise OSError(errno.EACCES, reason)
    opened = socket.socket(family=family, type=kind, proto=protocol)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return opened
