"""Fixtures of all cases: an organization whose limit reveals a lost reservation."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
from django.db import connection

from tests.support.faults.case import publish_on
from tests.support.faults.oracle import TOKEN_LIMIT
from tests.support.live import Gateway, Simulator
from tests.support.live_catalog import backend
from tests.support.model_servers.scripted import ScriptedServer, scripted_server
from tests.support.servers.tcp_proxy import FaultProxy


@pytest.fixture
def gateway(gateway: Gateway) -> Gateway:
    """The live gateway; the organization has ``TOKEN_LIMIT`` tokens a minute."""
    organization = gateway.organization
    organization.tokens_per_minute = TOKEN_LIMIT
    organization.save()
    gateway.sees_changes()
    return gateway


@pytest.fixture(scope="session")
def proxy(simulator: Simulator) -> Iterator[FaultProxy]:
    """A proxy in front of the simulator; tests use ``broken``."""
    with FaultProxy(simulator.port) as running:
        yield running


@pytest.fixture
def broken(proxy: FaultProxy) -> Iterator[FaultProxy]:
    """The proxy in front of the simulator, healed before and after."""
    proxy.heal()
    yield proxy
    proxy.heal()


@pytest.fixture(scope="session")
def database_proxy() -> Iterator[FaultProxy]:
    """A proxy in front of PostgreSQL; tests use ``to_database``."""
    address = urlsplit(os.environ["DATABASE_URL"])
    with FaultProxy(address.port or 5432, address.hostname or "127.0.0.1") as running:
        yield running


@pytest.fixture
def to_database(database_proxy: FaultProxy) -> Iterator[FaultProxy]:
    """The proxy in front of PostgreSQL, healed before and after."""
    database_proxy.heal()
    yield database_proxy
    database_proxy.heal()


def through(proxy: FaultProxy) -> str:
    """The address of the live gateways' database behind ``proxy``."""
    user = urlsplit(os.environ["DATABASE_URL"]).netloc.rpartition("@")[0]
    return f"postgres://{user}@127.0.0.1:{proxy.port}/{connection.settings_dict['NAME']}"


@pytest.fixture
def behind_database_proxy(gateway_with: Callable[..., Gateway], to_database: FaultProxy) -> Gateway:
    """A gateway that reaches its database through ``to_database``."""
    return gateway_with(DATABASE_URL=through(to_database))


@pytest.fixture(scope="session")
def scripted_backend() -> Iterator[ScriptedServer]:
    """A scripted model server; tests use ``scripted``."""
    with scripted_server() as server:
        yield server


@pytest.fixture
def scripted(scripted_backend: ScriptedServer) -> Iterator[ScriptedServer]:
    """A model server that sends the test's script; good answers before and after."""
    scripted_backend.heal()
    yield scripted_backend
    scripted_backend.heal()


@pytest.fixture(params=[True, False], ids=["streamed", "whole"])
def streamed(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(params=[True, False], ids=["running", "plain"])
def running(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def model(gateway: Gateway, broken: FaultProxy) -> str:
    """A model with room for many requests, whose server is behind ``broken``."""
    address = f"http://127.0.0.1:{broken.port}/v1"
    roomy = backend(gateway, base_url=address, max_concurrency=32, running_usage="vllm")
    return publish_on(gateway, roomy)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(16) as pool:
        yield pool
