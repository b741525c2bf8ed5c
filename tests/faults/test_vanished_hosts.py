"""Hosts that vanish with their disks, hosts whose disks are full, and hosts that only seem to vanish.

Their admissions are in the database.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from accounts.models import Scope
from tests.faults.conftest import through
from tests.support.faults.case import SMALL_CAP, Case, publish_on
from tests.support.live import Gateway
from tests.support.live_catalog import backend
from tests.support.servers.tcp_proxy import FaultProxy, Way
from tests.support.speech.caller import SpeechAccount
from tests.support.until import until
from usage.models import Admission

StartGateway = Callable[..., Gateway]
LEASE = 6.0
SLACK = 30.0
"""How much longer than documented a loaded machine may take: a lease and a half."""
LONG = "[[sim tokens=400 pace=40]]"


@pytest.fixture
def model(gateway: Gateway, broken: FaultProxy) -> str:
    """A model with a long timeout for pauses, because a suspended gateway reads nothing."""
    patient = backend(
        gateway,
        base_url=f"http://127.0.0.1:{broken.port}/v1",
        max_concurrency=32,
        running_usage="vllm",
        first_byte_seconds=120.0,
        idle_seconds=120.0,
    )
    return publish_on(gateway, patient)


@pytest.fixture
def start_host(start_gateway: StartGateway, tmp_path: Path) -> Callable[..., Gateway]:
    """A function that starts a gateway with a disk of its own, by name."""

    def start(disk: str, *, durable: bool = True, **environment: str) -> Gateway:
        return start_gateway(
            SVC_DURABLE_ADMISSIONS=str(durable).lower(),
            SVC_ADMISSION_LEASE_SECONDS=str(LEASE),
            SVC_DATA_DIR=str(tmp_path / disk),
            **environment,
        )

    return start


def open_admissions(gateway: Gateway) -> int:
    """How many admissions of the organization are not closed."""
    organization = str(gateway.organization.pk)
    admissions = Admission.objects.filter(closed_at=None).values_list("record", flat=True)
    return sum(organization in str(admission) for admission in admissions)


@pytest.mark.long
@pytest.mark.parametrize(
    "is_lost",
    [
        pytest.param(True, id="its disk is lost", marks=pytest.mark.postgresql),
        pytest.param(False, id="its journal takes no record"),
    ],
)
def test_requests_of_a_killed_host_are_closed_by_the_next_one(
    gateway: Gateway,
    model: str,
    start_host: Callable[..., Gateway],
    threads: ThreadPoolExecutor,
    tmp_path: Path,
    is_lost: bool,
) -> None:
    disk = tmp_path / "one"
    disk.mkdir()
    if not is_lost:
        (disk / "journal").write_bytes(b"not a directory")
    host = start_host("one", durable=is_lost)
    case = Case(host, model, [gateway.simulator.requests])
    key = gateway.mint(Scope.SPEECH)
    account = SpeechAccount(host, gateway.organization, gateway.api_key, key)
    with ExitStack() as ending:
        ending.enter_context(account.session())
        futures = [
            threads.submit(
                case.ask, LONG, streamed=number % 2 == 0, max_completion_tokens=SMALL_CAP
            )
            for number in range(6)
        ]
        until(lambda: open_admissions(gateway) == 7)
        host.command.kill()
        if is_lost:
            shutil.rmtree(disk)
        for future in futures:
            future.result()

    case.gateway = start_host("two" if is_lost else "one", durable=is_lost)
    [speech] = until(account.rows, LEASE * 1.5 + SLACK)
    rows = until(lambda: found if len(found := gateway.rows()) == 6 else None, LEASE * 1.5 + SLACK)

    assert {row.outcome for row in rows} == {"interrupted"} == {speech.outcome}
    case.check(6)
    assert len(account.rows()) == 1


@pytest.mark.long
@pytest.mark.postgresql
def test_a_host_that_lives_keeps_its_requests_for_as_long_as_they_run(
    model: str, start_host: Callable[..., Gateway], gateway: Gateway, threads: ThreadPoolExecutor
) -> None:
    """They run for two leases, while another host closes the requests of dead ones."""
    host = start_host("one")
    start_host("two")
    case = Case(host, model, [gateway.simulator.requests])
    tokens = int(2.5 * LEASE * 40)

    seen = threads.submit(case.ask, f"[[sim tokens={tokens} pace=40]]", streamed=True).result()

    assert seen.complete
    assert seen.seconds > 2 * LEASE
    [row] = case.check(1)
    assert row.outcome == "success"


@pytest.mark.long
@pytest.mark.postgresql
def test_the_rows_of_a_host_taken_for_dead_replace_the_interrupted_ones(
    model: str,
    broken: FaultProxy,
    start_host: Callable[..., Gateway],
    gateway: Gateway,
    threads: ThreadPoolExecutor,
) -> None:
    host, other = start_host("one"), start_host("two")
    case = Case(host, model, [gateway.simulator.requests])
    before = broken.carried[Way.TO_CLIENT]
    answer = threads.submit(case.ask, "[[sim tokens=200 pace=20]]", streamed=True)
    until(lambda: broken.carried[Way.TO_CLIENT] > before)
    processes = (host.command.process.pid, host.command.worker)
    for pid in processes:
        os.kill(pid, signal.SIGSTOP)
    try:
        [row] = until(gateway.rows, LEASE * 1.5 + SLACK)
        assert row.outcome == "interrupted"
    finally:
        for pid in processes:
            os.kill(pid, signal.SIGCONT)

    assert answer.result().complete
    case.gateway = other
    [row] = case.check(1)
    assert row.outcome == "success"


@pytest.mark.postgresql
def test_no_admission_is_left_and_without_the_database_nothing_reaches_a_model_server(
    model: str, start_host: Callable[..., Gateway], gateway: Gateway, to_database: FaultProxy
) -> None:
    host = start_host("one", DATABASE_URL=through(to_database))
    case = Case(host, model, [gateway.simulator.requests])
    assert all(each.complete for each in case.ask_many(60, at_once=16))
    assert len(case.check(60)) == 60
    assert open_admissions(gateway) == 0
    for fault in (to_database.refuse, to_database.blackhole):
        fault()
        refused = case.ask_many(4)
        assert {each.told for each in refused} == {(503, "server_overloaded")}
        to_database.heal()
        until(lambda: case.ask(streamed=False).complete, SLACK)

    # Only the served requests are in the books.
    case.check(sum(each.complete for each in case.seen))
