"""Fixtures of limits in Redis."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterator

import pytest

from core.limits.redis import RedisLimiter
from tests.support.servers.redis_store import PATIENT, REDIS_URL


@pytest.fixture
async def shared(prefix: str) -> AsyncIterator[RedisLimiter]:
    """A limiter on the real store, with time for a busy machine."""
    limiter = RedisLimiter(REDIS_URL, prefix=prefix, timeout_seconds=PATIENT)
    yield limiter
    await limiter.close()


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]
