"""A gateway process of a test's own on the live database, and requests to it."""

from __future__ import annotations

import contextlib
import socket
import uuid
from collections.abc import Iterator
from typing import Any

import httpx2

from tests.support.gateways import Served, launch
from tests.support.live import Command, Gateway


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


def refuses(url: str) -> bool:
    """Whether no server listens at ``url``."""
    host, _, port = url.removeprefix("http://").removesuffix("/v1").partition(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) != 0


def ask(base_url: str, gateway: Gateway, text: str, **fields: Any) -> httpx2.Response:
    body = {"model": "acme/demo-8b", "messages": [{"role": "user", "content": text}], **fields}
    return httpx2.post(
        f"{base_url}/chat/completions", json=body, headers=gateway.headers, timeout=60
    )


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
