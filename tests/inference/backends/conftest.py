"""Fixtures of backends: a clock that tests set, what is learnt by it, a pool, and a model server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from core.backends.ejection import Ejector, Rules
from inference.backends.pool import BackendPool
from inference.backends.usage_dialects import UsageDialects
from tests.support.clocks import Clock
from tests.support.model_servers.scripted import ScriptedServer, scripted_server


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def dialects(clock: Clock) -> UsageDialects:
    return UsageDialects(clock)


@pytest.fixture
def pool(clock: Clock) -> BackendPool:
    return BackendPool(Ejector(Rules(2, 5.0), clock), clock=clock)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted_server() as server:
        yield server
