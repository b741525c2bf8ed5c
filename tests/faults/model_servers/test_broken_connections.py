"""Broken connections to a model server: refused, silent, reset, cut at a byte, dead in one direction.

A real simulator behind a proxy; every case ends with the oracle.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.support.faults.case import PATIENCE, Case, publish_on, single
from tests.support.live import Gateway, free_port
from tests.support.live_catalog import backend
from tests.support.servers.tcp_proxy import Cut, End, FaultProxy, Way
from tests.support.until import until

GONE = (500, "backend_unavailable")
SILENT = (503, "backend_timeout")
SERVED = (200, None)


@pytest.fixture
def case(gateway: Gateway, broken: FaultProxy) -> Case:
    """A new backend for each case, because the gateway learns how a backend treats connections."""
    only = single(gateway, base_url=f"http://127.0.0.1:{broken.port}/v1", running_usage="vllm")
    return Case(gateway, publish_on(gateway, only), [gateway.simulator.requests])


def in_band(told: tuple[int, str | None], streamed: bool) -> tuple[int, str | None]:
    """The same failure after a stream's 200."""
    return (200, told[1]) if streamed else told


FAULTS: dict[str, tuple[Callable[[FaultProxy], None], tuple[int, str | None]]] = {
    "refused": (lambda proxy: proxy.refuse(), GONE),
    "blackhole": (lambda proxy: proxy.blackhole(), SILENT),
    "request lost": (lambda proxy: proxy.half_open(Way.TO_SERVER), SILENT),
    "answer lost": (lambda proxy: proxy.half_open(Way.TO_CLIENT), SILENT),
    "slow within patience": (lambda proxy: proxy.delay(PATIENCE / 4), SERVED),
    "request cut": (lambda proxy: proxy.cut(Cut(Way.TO_SERVER, 100, End.FIN)), GONE),
    "end before headers": (lambda proxy: proxy.cut(Cut(Way.TO_CLIENT, 0, End.FIN)), GONE),
    "end in headers": (lambda proxy: proxy.cut(Cut(Way.TO_CLIENT, 40, End.FIN)), GONE),
}
LOOKS_STALE = {
    "request cut",
    "end before headers",
}
"""Faults that look, on a kept connection, as if the server had closed it. A connection that ends
inside a head does not: part of an answer proves that a server was at its other end."""


@pytest.mark.parametrize("warm", [True, False], ids=["pooled", "new"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_connection_has_the_contracts_error_and_books_that_agree(
    case: Case, broken: FaultProxy, fault: str, warm: bool, streamed: bool
) -> None:
    break_it, told = FAULTS[fault]
    if warm and fault in LOOKS_STALE:
        told = SERVED
    if warm:
        # A connection that carried a stream would rest before it is used again.
        assert case.ask(streamed=False).complete
    else:
        broken.reset()
        until(lambda: broken.open_connections == 0)
    break_it(broken)

    seen = case.ask(streamed=streamed)

    assert seen.told == told
    broken.heal()
    rows = case.check()
    assert len(rows) == 1 + warm


@contextmanager
def full_backlog() -> Iterator[int]:
    """A port whose connections are neither accepted nor refused."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        port = listener.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            with suppress(BlockingIOError):
                each.connect(("127.0.0.1", port))
        try:
            yield port
        finally:
            for each in waiting:
                each.close()


@pytest.fixture
def hasty(gateway_with: Callable[..., Gateway]) -> Gateway:
    """A gateway that gives connections to backends a second."""
    return gateway_with(SVC_BACKEND_CONNECT_SECONDS="1")


def test_a_connection_attempt_times_out(hasty: Gateway, streamed: bool) -> None:
    gateway = hasty
    with full_backlog() as port:
        lost = single(gateway, base_url=f"http://127.0.0.1:{port}/v1", first_byte_seconds=60)
        case = Case(gateway, publish_on(gateway, lost), [])

        seen = case.ask(streamed=streamed)

        assert seen.told == GONE
        case.agree()


def test_an_answer_that_never_ends_is_ended_by_the_total_time(
    gateway: Gateway, streamed: bool
) -> None:
    hasty = single(
        gateway,
        base_url=gateway.simulator.base_url,
        first_byte_seconds=20,
        total_seconds=0.6,
        running_usage="vllm",
    )
    case = Case(gateway, publish_on(gateway, hasty), [gateway.simulator.requests])

    seen = case.ask("[[sim tokens=400 pace=40]]", streamed=streamed)

    assert seen.told == in_band(SILENT, streamed)
    case.check(1)


@pytest.mark.parametrize("fault", ["refused", "never made"])
def test_a_request_that_cannot_have_begun_is_retried_on_another_backend(
    hasty: Gateway, fault: str, streamed: bool
) -> None:
    gateway = hasty
    with full_backlog() as silent:
        port = free_port() if fault == "refused" else silent
        first = f"http://127.0.0.1:{port}/v1"
        model = publish_on(
            gateway,
            single(gateway, base_url=first, first_byte_seconds=10),
            backend(gateway, max_concurrency=4),
        )
        case = Case(gateway, model, [gateway.simulator.requests])

        for _ in range(2):
            assert case.ask(streamed=streamed).complete

        assert len(case.check()) == 2
