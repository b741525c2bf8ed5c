"""Where a request came from, as far as the proxies in front can be believed."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.http import HttpRequest

_IPV6_SITE_BITS = 64
"""What one customer of a network provider has of IPv6 (RFC 6177): as good as one address."""


def client_address(request: HttpRequest) -> str | None:
    """The client's IP address; ``None`` when it has none, as over a Unix socket.

    Each proxy adds the address that it saw at the right end of ``X-Forwarded-For``, so the one to
    believe is ``SVC_PROXIES`` from the right; what stands further left was written by the client.
    """
    forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "")
    address = _believed(request.META.get("REMOTE_ADDR") or "", forwarded)
    return None if address is None else str(address)


def client_network(scope: Mapping[str, Any]) -> str:
    """Whom requests of strangers are put down to: the client's IPv4 address, or its /64 of IPv6.

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
