"""Two gateways behind each proxy of ``deploy/``, reached by name over TLS at a port that is not 443."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from tests.support.gateways import Served, another_gateway
from tests.support.live import Gateway
from tests.support.servers.shipped import (
    HOSTS,
    INFERENCE_HOST,
    SHIPPED,
    SPEECH_HOST,
    Certificate,
    Shipped,
    certificate,
    running_shipped,
)
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import SpeechAccount

BEHIND_TLS = {
    "ALLOWED_HOSTS": f"127.0.0.1,{','.join(HOSTS)}",
    "SPEECH_HOSTS": SPEECH_HOST,
    "SVC_PROXIES": "1",
    "SVC_HTTPS_ONLY": "true",
    "SVC_DRAIN_DELAY_SECONDS": "5",
    "SVC_DRAIN_SECONDS": "660",
}


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let both hosts' names lead to this machine."""
    resolve = socket.getaddrinfo

    def resolved(host: Any, *arguments: Any, **options: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        return resolve("127.0.0.1" if name in HOSTS else name, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)


@pytest.fixture(scope="module")
def behind(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Served]]:
    """Two gateways."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                another_gateway(served, tmp_path_factory.mktemp("behind"), **BEHIND_TLS)
            )
            for _ in range(2)
        ]


@dataclass(frozen=True)
class Front:
    """A running proxy of ``deploy/``."""

    shipped: Shipped
    port: int
    certificate: Certificate

    @property
    def url(self) -> str:
        return f"https://{INFERENCE_HOST}:{self.port}"

    @property
    def speech_url(self) -> str:
        return f"https://{SPEECH_HOST}:{self.port}"

    def client(self, **options: Any) -> httpx2.Client:
        return httpx2.Client(
            base_url=self.url, verify=self.certificate.context, timeout=60, **options
        )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module", params=SHIPPED, ids=str)
def front(
    request: pytest.FixtureRequest, behind: list[Served], made: Certificate
) -> Iterator[Front]:
    """Each proxy in front of both gateways."""
    shipped: Shipped = request.param
    ports = [each.port for each in behind]
    with running_shipped(shipped, made, ports) as port:
        yield Front(shipped, port, made)


@pytest.fixture
def hidden(gateway: Gateway, behind: list[Served]) -> Gateway:
    """The first gateway, with an organization of the test's own, which both know."""
    return behind[0].serving(gateway)


@pytest.fixture
def speaker(hidden: Gateway) -> SpeechAccount:
    return speech_account(hidden)
