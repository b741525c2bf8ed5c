"""Where a request came from, as far as the proxies in front can be believed."""

from __future__ import annotations

import ipaddress

from django.conf import settings
from django.http import HttpRequest


def client_address(request: HttpRequest) -> str | None:
    """The client's IP address; ``None`` when it has none, as over a Unix socket.

    Each proxy adds the address that it saw at the right end of ``X-Forwarded-For``, so the one to
    believe is ``SVC_PROXIES`` from the right; what stands further left was written by the client.
    """
    given = request.META.get("REMOTE_ADDR") or ""
    if settings.SVC_PROXIES:
        seen = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")
        if len(seen) >= settings.SVC_PROXIES:
            given = seen[-settings.SVC_PROXIES].strip()
    try:
        return str(ipaddress.ip_address(given))
    except ValueError:
        return None
