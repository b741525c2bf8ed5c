"""The client address of a request, with ``X-Forwarded-For`` trusted for known proxies only."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.http import HttpRequest

_IPV6_SITE_BITS = 64
"""The IPv6 prefix of one customer of a network provider (RFC 6177), treated as one address."""


def client_address(request: HttpRequest) -> str | None:
    """The client's IP address; ``None`` when it has none, as over a Unix socket.

    Each proxy appends the address that it saw to ``X-Forwarded-For``, so the trusted address is
    the one ``SVC_PROXIES`` from the right; the client can write any others further left.
    """
    forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "")
    address = _believed(request.META.get("REMOTE_ADDR") or "", forwarded)
    return None if address is None else str(address)


def client_network(scope: Mapping[str, Any]) -> str:
    """The network that requests without a known key count for: an IPv4 address or an IPv6 /64.

    ``scope`` is ASGI's. Empty when the client has no address.
    """
    client = scope.get("client")
    forwarded = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for")
    address = _believed(client[0] if client else "", forwarded.decode("latin-1"))
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is None:
        return str(ipaddress.ip_network((address, _IPV6_SITE_BITS), strict=False))
    return "" if address is None else str(address)


def _believed(
    connected: str, forwarded: str
) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    given = connected
    if settings.SVC_PROXIES:
        seen = forwarded.split(",")
        if len(seen) >= settings.SVC_PROXIES:
            given = seen[-settings.SVC_PROXIES].strip()
    try:
        return ipaddress.ip_address(given)
    except ValueError:
        return None
