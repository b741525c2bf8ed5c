"""A quota on each kind of store."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import pytest

from core.limits.buckets import Limiter
from core.limits.memory import MemoryLimiter
from core.limits.redis import RedisLimiter
from tests.support.builders.quota_service import Service
from tests.support.servers.redis_store import PATIENT, REDIS_URL


@pytest.fixture
def prefix() -> str:
    return f"svc-test:{uuid.uuid4().hex}:"


@pytest.fixture(params=["memory", pytest.param("redis", marks=pytest.mark.redis)])
async def service(request: pytest.FixtureRequest, prefix: str) -> AsyncIterator[Service]:
    limiter: Limiter
    if request.param == "memory":
        limiter = MemoryLimiter()
    else:
        limiter = RedisLimiter(REDIS_URL, prefix=prefix, timeout_seconds=PATIENT)
    yield Service(limiter)
    await limiter.close()
