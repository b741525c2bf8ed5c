"""A gateway process of a test's own on the live database, and requests to it."""

from __future__ import annotations

import contextlib
import os
import socket
import uuid
from collections.abc import Iterator
from typing import Any

import httpx2

from tests.support.gateways import Served, launch
from tests.support.live import Command, Gateway, fetch

Running = contextlib.AbstractContextManager[tuple[Command, str]]


@contextlib.contextmanager
def another_gateway(
    gateway: Gateway, served: Served, *arguments: str, **environment: str
) -> Iterator[tuple[Command, str]]:
    """A second gateway process on the same database; yields it and its base URL."""
    command, port, _ = launch(
        {**served.environment, **environment},
        served.command.log.with_name(f"another-{uuid.uuid4()}.log"),
        *arguments,
    )
    try:
        yield command, f"http://127.0.0.1:{port}/v1"
    finally:
        command.stop()


def two_workers(gateway: Gateway, served: Served, **environment: str) -> Running:
    """A second gateway process with two workers, which share the Redis of the tests."""
    redis = os.environ["SVC_TEST_REDIS_URL"]
    return another_gateway(gateway, served, "--workers", "2", REDIS_URL=redis, **environment)


def port_of(url: str) -> int:
    """The port in a base URL."""
    return int(url.removesuffix("/v1").rpartition(":")[2])


def refuses(url: str) -> bool:
    """Whether no server listens at ``url``."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port_of(url))) != 0


def ask(base_url: str, gateway: Gateway, text: str, **fields: Any) -> httpx2.Response:
    body = {"model": "acme/demo-8b", "messages": [{"role": "user", "content": text}], **fields}
    return fetch(f"{base_url}/chat/completions", "POST", json=body, key=gateway.key)


@contextlib.contextmanager
def slow_stream(base_url: str, gateway: Gateway, tokens: int) -> Iterator[Iterator[str]]:
    """A stream of ``tokens`` at 20 a second; yields its text as it arrives."""
    body = {
        "model": "acme/demo-8b",
        "stream": True,
        "messages": [{"role": "user", "content": f"[[sim tokens={tokens} pace=20]]"}],
    }
    with httpx2.stream(
        "POST", f"{base_url}/chat/completions", json=body, headers=gateway.headers, timeout=60
    ) as stream:
        yield stream.iter_text()
