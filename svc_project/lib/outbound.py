"""The HTTP client towards model servers, and what all of them have in common."""

from __future__ import annotations

from collections.abc import Sequence

import aiohttp
from django.conf import settings


def open_session(
    *, keep_alive: bool = True, traces: Sequence[aiohttp.TraceConfig] = ()
) -> aiohttp.ClientSession:
    """A pooled client for JSON requests to model servers; belongs to the running event loop.

    No cookies, no proxies from the environment, no compression: a model server's answer is passed
    on as it comes. Only connecting is limited in time here. Callers forbid redirects on each
    request (``allow_redirects=False``): a model server never chooses a host. Without
    ``keep_alive`` each request has a connection of its own.
    """
    connector = (
        aiohttp.TCPConnector(limit=0, keepalive_timeout=15.0)
        if keep_alive
        else aiohttp.TCPConnector(limit=0, force_close=True)
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(
            total=None, sock_connect=settings.SVC_BACKEND_CONNECT_SECONDS
        ),
        trust_env=False,
        trace_configs=list(traces),
        auto_decompress=False,
        read_bufsize=256 * 1024,
        max_line_size=16 * 1024,
        headers={
            "Content-Type": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": f"svc/{settings.VERSION}",
        },
    )
