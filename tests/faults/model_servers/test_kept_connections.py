"""Kept connections that the model server had closed: which requests are retried."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.support.faults.case import Case, publish_on, single
from tests.support.live import Gateway
from tests.support.live_catalog import backend
from tests.support.metrics import metrics
from tests.support.model_servers.scripted import (
    CHUNKED_HEAD,
    GOOD,
    TOKENS,
    Pause,
    Script,
    ScriptedServer,
    Step,
    body,
    chunked,
    completion,
    frames,
    scripted_server,
)
from tests.support.servers.tcp_proxy import End

GONE = (500, "backend_unavailable")
LATER_THAN_AT_ONCE = 1.4
"""More than ``inference.backends.connections.CLOSED_AT_ONCE_SECONDS``."""


@pytest.fixture
def scripted() -> Iterator[ScriptedServer]:
    """A server of the test's own, whose connections no other test has used."""
    with scripted_server() as server:
        yield server


def kept_stream() -> list[Step]:
    """A good stream whose connection stays open."""
    return [CHUNKED_HEAD, *(chunked(each) for each in frames(*GOOD)), b"0\r\n\r\n"]


def case_on(gateway: Gateway, scripted: ScriptedServer) -> Case:
    """A case with one backend and a kept connection."""
    patient = single(gateway, base_url=scripted.base_url, first_byte_seconds=10, idle_seconds=10)
    case = Case(gateway, publish_on(gateway, patient), [scripted.requests])
    scripted.say(Script(kept_stream(), TOKENS), Script([body(completion())], TOKENS))
    for streamed in (True, False):
        assert case.ask(streamed=streamed).complete
    return case


def test_a_kept_connection_that_ends_at_once_is_replaced_once(
    gateway: Gateway, scripted: ScriptedServer, streamed: bool
) -> None:
    case = case_on(gateway, scripted)
    scripted.say(Script([End.FIN]), Script([End.FIN]))

    seen = case.ask(streamed=streamed)

    assert seen.told == GONE
    assert len(scripted.requests_of(seen.marker)) == 2
    assert len(case.gateway.rows_when(3)) == 3


def test_a_kept_connection_that_ends_later_may_have_worked_and_is_not_replaced(
    gateway: Gateway, scripted: ScriptedServer, streamed: bool
) -> None:
    case = case_on(gateway, scripted)
    late = Script([Pause(LATER_THAN_AT_ONCE), End.FIN])
    scripted.say(late, late)

    seen = case.ask(streamed=streamed)

    assert seen.told == GONE
    assert len(scripted.requests_of(seen.marker)) == 1


@contextmanager
def mortal_server() -> Iterator[int]:
    """The port of a server that answers one request and crashes on the second."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                connection, _ = listener.accept()
                with connection:
                    read_request(connection)
                    connection.sendall(body(completion()))
                    read_request(connection)
                    listener.shutdown(socket.SHUT_RDWR)
                    listener.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]


def read_request(connection: socket.socket) -> None:
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(65536)
    head, _, rest = received.partition(b"\r\n\r\n")
    length = next(
        int(line.partition(b":")[2])
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length:")
    )
    while len(rest) < length:
        rest += connection.recv(65536)


def test_a_crash_on_a_request_is_not_taken_for_a_closed_connection(gateway: Gateway) -> None:
    with mortal_server() as port:
        mortal = single(gateway, base_url=f"http://127.0.0.1:{port}/v1", max_concurrency=8)
        model = publish_on(gateway, mortal, backend(gateway, max_concurrency=8))
        case = Case(gateway, model, [gateway.simulator.requests])
        for _ in range(2):
            assert case.ask(streamed=False).complete

        asked = [case.ask(streamed=False) for _ in range(2)]

    lost = next(each for each in asked if not each.complete)
    assert lost.told == GONE
    assert lost.marker not in json.dumps(gateway.simulator.requests())
    assert metrics(gateway).sum("svc_backend_failures_total", backend=mortal.name) >= 1
