"""The real Redis of the tests, and a proxy in front of it."""

from __future__ import annotations

import os
from typing import Final
from urllib.parse import urlsplit

from tests.support.servers.tcp_proxy import FaultProxy

REDIS_URL: Final = os.environ.get("SVC_TEST_REDIS_URL", "")
PATIENT: Final = 5.0
"""Timeout in seconds of a store on a busy machine."""


def proxy_to_redis() -> FaultProxy:
    """Put a proxy in front of the Redis of the tests."""
    address = urlsplit(REDIS_URL)
    return FaultProxy(address.port or 6379, address.hostname or "127.0.0.1")


def url_through(proxy: FaultProxy) -> str:
    """Return the address of Redis behind ``proxy``."""
    return f"redis://127.0.0.1:{proxy.port}"
