"""The bounds on connections, bodies and requests of one process."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable

import httpx2
import pytest

from tests.support.clients.raw_client import RawClient
from tests.support.live import NO_TLS, Gateway
from tests.support.metrics import metrics
from tests.support.until import until

GatewayWith = Callable[..., Gateway]
SMALL = {
    "SVC_MAX_CONNECTIONS": "4",
    "SVC_MAX_BODY_BYTES_INFLIGHT": "100000",
    "SVC_ORGANIZATION_SHARE": "1",
    "SVC_MAX_INFLIGHT": "2",
    "SVC_BACKEND_QUEUE_SECONDS": "60",
}
"""The bounds of a process that these tests share; each leaves it idle."""
LARGE = 64 << 20
REFUSALS = {
    "without a key": (401, []),
    "a large form": (413, []),
    "too many headers": (431, [f"x-{number}: 1" for number in range(101)]),
}


def assert_overloaded(answer: httpx2.Response) -> None:
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "server_overloaded"
    assert answer.headers["x-request-id"].startswith("req_")
    assert not [name for name in answer.headers if name.startswith(("retry-", "x-ratelimit"))]


def is_idle(gateway: Gateway) -> bool:
    seen = metrics(gateway)  # by a connection of its own
    return seen.sum("svc_connections") == 1 and seen.sum("svc_body_bytes") == 0


def test_a_connection_too_many_is_answered_or_closed(gateway_with: GatewayWith) -> None:
    gateway = gateway_with(**SMALL)
    until(lambda: is_idle(gateway))
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(socket.create_connection(("127.0.0.1", gateway.port)))
        until(lambda: metrics(gateway).sum("svc_connections") == 5)

        refused = gateway.chat("say: one too many")

        assert_overloaded(refused)
        assert refused.headers["connection"] == "close"
        assert httpx2.get(f"{gateway.url}/livez", verify=NO_TLS).status_code == 200
        assert gateway.rows() == []
        address = ("127.0.0.1", gateway.port)
        silent = stack.enter_context(socket.create_connection(address, timeout=60))
        assert silent.recv(100) == b""
    until(lambda: is_idle(gateway))
    assert gateway.chat("say: ok").status_code == 200


@pytest.mark.parametrize("refusal", REFUSALS)
def test_who_looks_for_an_answer_when_it_cannot_write_on_finds_one(
    gateway: Gateway, refusal: str
) -> None:
    """As a proxy does that has read a whole body before it sends it on."""
    status, headers = REFUSALS[refusal]
    path = "/console/login" if status == 413 else "/v1/chat/completions"
    head = [f"POST {path} HTTP/1.1", "host: 127.0.0.1", f"content-length: {LARGE}", *headers]
    with socket.create_connection(("127.0.0.1", gateway.port)) as client:
        client.sendall("\r\n".join([*head, "", ""]).encode())
        client.setblocking(False)
        sent = 0
        with contextlib.suppress(BlockingIOError):
            while sent < LARGE:
                sent += client.send(b" " * 65_536)
                time.sleep(0.002)  # more slowly than the gateway can read
        client.settimeout(60)
        answer = client.recv(65_536)

    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert sent < LARGE


def test_bodies_beyond_the_memory_for_them_are_refused_until_there_is_room(
    gateway_with: GatewayWith,
) -> None:
    gateway = gateway_with(**SMALL)
    until(lambda: is_idle(gateway))
    with RawClient(gateway) as slow:
        slow.head("content-length: 90000", key=gateway.key)
        slow.send(b" " * 80_000)
        until(lambda: metrics(gateway).sum("svc_body_bytes") == 80_000)

        assert_overloaded(gateway.chat("x" * 30_000))
        assert_overloaded(gateway.post(b"x" * 30_000))
        assert gateway.chat("say: a small one fits").status_code == 200

    until(lambda: is_idle(gateway))
    assert gateway.chat("x" * 30_000).status_code == 200


def test_a_request_too_many_does_not_wait_in_any_queue(gateway_with: GatewayWith) -> None:
    gateway = gateway_with(**SMALL)
    until(lambda: is_idle(gateway))
    with RawClient(gateway) as first, RawClient(gateway) as second:
        for running in (first, second):
            running.chat("[[sim tokens=200 pace=20]]", stream=True)
            running.read_until(2, b"data: ")

        assert_overloaded(gateway.chat("say: no", timeout=60))
    until(lambda: is_idle(gateway))
