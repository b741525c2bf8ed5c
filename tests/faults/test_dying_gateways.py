"""Gateways that are stopped or killed while they serve; every case ends with the oracle."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from tests.support.faults.case import SMALL_CAP, Case
from tests.support.faults.seen import Seen
from tests.support.live import Gateway
from tests.support.servers.tcp_proxy import FaultProxy, Way
from tests.support.until import until

StartGateway = Callable[..., Gateway]
AT_ONCE = 8
ANSWER = "[[sim first=0.05 tokens=40 pace=80]]"


def case_on(gateway: Gateway, model: str) -> Case:
    return Case(gateway, model, [gateway.simulator.requests])


def begin(threads: ThreadPoolExecutor, case: Case, text: str, count: int) -> list[Future[Seen]]:
    return [
        threads.submit(case.ask, text, streamed=number % 2 == 0, max_completion_tokens=SMALL_CAP)
        for number in range(count)
    ]


def test_sigterm_ends_what_outlasts_the_drain_in_band_or_by_status(
    gateway: Gateway, model: str, broken: FaultProxy, start_gateway: StartGateway
) -> None:
    case = case_on(start_gateway(SVC_DRAIN_SECONDS="0.5"), model)
    taken = broken.accepted
    with ThreadPoolExecutor(4) as threads:
        futures = begin(threads, case, "[[sim tokens=400 pace=40]]", 4)
        until(lambda: broken.accepted - taken == 4)
        assert case.gateway.command.stop() == 0
        ended = [future.result() for future in futures]

    case.gateway = gateway
    rows = case.check()

    assert {each.code for each in ended} == {"server_shutting_down"}
    assert {each.status for each in ended if each.streamed} == {200}
    assert {each.status for each in ended if not each.streamed} == {503}
    assert {(row.outcome, row.error_code) for row in rows} == {
        ("interrupted", "server_shutting_down")
    }


def kill_when(case: Case, way: FaultProxy, answered: int) -> None:
    """Kill the gateway under load once the model servers have sent ``answered`` bytes."""
    sent, got = way.carried[Way.TO_SERVER], way.carried[Way.TO_CLIENT]

    def is_time() -> bool:
        return way.carried[Way.TO_SERVER] > sent and way.carried[Way.TO_CLIENT] - got >= answered

    with ThreadPoolExecutor(AT_ONCE) as threads:
        futures = begin(threads, case, ANSWER, AT_ONCE)
        until(lambda: is_time() or all(future.done() for future in futures))
        case.gateway.command.kill()


@pytest.mark.long
def test_sigkill_at_several_instants_leaves_no_request_without_its_row(
    gateway: Gateway, model: str, broken: FaultProxy, start_gateway: StartGateway
) -> None:
    """Kill before the model server's first byte, after the first bytes, in the middle, and when
    some answers are complete; the next gateway on the same directory writes the missing rows."""
    case = case_on(gateway, model)
    for answered in (0, 2_000, 30_000, 60_000):
        case.gateway = start_gateway()
        broken.reset()
        kill_when(case, broken, answered)
    case.gateway = start_gateway()

    rows = case.check()

    assert sum(row.outcome == "interrupted" for row in rows) > AT_ONCE
