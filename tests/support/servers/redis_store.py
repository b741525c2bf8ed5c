"""The real Redis of the tests, a proxy in front of it, and servers of single tests."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
import redis

from tests.support.servers import own_servers
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


@pytest.fixture
def prefix() -> str:
    """What the names of the test's keys begin with."""
    return f"svc-test:{uuid.uuid4().hex}:"


@pytest.fixture
def to_redis() -> Iterator[FaultProxy]:
    """A proxy in front of Redis."""
    with proxy_to_redis() as proxy:
        yield proxy


class Redis(own_servers.Redis):
    """A redis-server of one test, which may be killed and emptied."""

    @contextmanager
    def client(self) -> Iterator[Any]:
        with closing(redis.Redis(port=self.port)) as client:
            yield client

    def calls(self) -> int:
        """How often buckets were changed since it started; nothing else sets a key's text."""
        with self.client() as client:
            found: dict[str, Any] = client.info("commandstats")
            return int(found.get("cmdstat_set", {"calls": 0})["calls"])

    def callers(self) -> int:
        """How many connections ran a script last; others carry the channel layer."""
        with self.client() as client:
            return sum(each["cmd"] == "evalsha" for each in client.client_list())
