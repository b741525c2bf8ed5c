"""The database breaks while requests run: no request fails, and all rows are stored afterwards.

PostgreSQL behind a proxy; SQLite, which has no network, with other processes that lock it.
"""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing

import httpx2
import pytest
from django.db import connection

from accounts.models import Scope
from tests.faults.conftest import through
from tests.support.faults.case import Case, publish_on
from tests.support.live import NO_TLS, Gateway, fetch
from tests.support.live_catalog import backend
from tests.support.metrics import Metrics
from tests.support.processes import workers_of
from tests.support.servers.database_outage import rows_locked
from tests.support.servers.tcp_proxy import FaultProxy, Way
from tests.support.until import until
from usage.models import UsageRow

REQUESTS = 24
SLOWEST = 5.0


def roomy_model(gateway: Gateway) -> str:
    return publish_on(gateway, backend(gateway, max_concurrency=32, running_usage="vllm"))


def assert_all_served(case: Case, count: int = REQUESTS) -> None:
    seen = case.ask_many(count)
    assert {each.told for each in seen} == {(200, None)}
    assert all(each.complete for each in seen)
    assert max(each.seconds for each in seen) < SLOWEST


@pytest.fixture
def case(behind_database_proxy: Gateway) -> Case:
    """A gateway behind ``to_database`` that has served one request."""
    gateway = behind_database_proxy
    found = Case(gateway, roomy_model(gateway), [gateway.simulator.requests])
    assert found.ask(streamed=True).complete
    return found


NETWORK: dict[str, Callable[[FaultProxy], None]] = {
    "refused": lambda proxy: proxy.refuse(),
    "blackhole": lambda proxy: proxy.blackhole(),
    "answers lost": lambda proxy: proxy.half_open(Way.TO_CLIENT),
    "reset": lambda proxy: proxy.reset(),
    "slow": lambda proxy: proxy.delay(0.1),
    "very slow": lambda proxy: proxy.delay(0.4),
}


@pytest.mark.postgresql
@pytest.mark.parametrize("fault", NETWORK)
def test_answers_go_on_while_postgresql_cannot_be_reached_and_their_rows_follow(
    case: Case, to_database: FaultProxy, fault: str
) -> None:
    NETWORK[fault](to_database)

    assert_all_served(case)

    to_database.heal()
    assert len(case.check(REQUESTS + 1)) == REQUESTS + 1
    assert_all_served(case, 4)
    case.agree(REQUESTS + 6)


@pytest.mark.postgresql
def test_a_connection_that_dies_silently_does_not_keep_rows_from_a_database_that_answers(
    case: Case, to_database: FaultProxy
) -> None:
    """The open connections drop all bytes, like a firewall that lost their state; new ones work,
    and the old ones are never reset."""
    to_database.forget_open()

    assert_all_served(case, 8)
    case.gateway.rows_when(9)

    # What reads the books may have such a connection too, and waits for it as long as TCP does.
    to_database.reset()
    case.check(9)


@pytest.mark.postgresql
def test_a_commit_whose_answer_is_lost_is_neither_lost_nor_written_twice(
    case: Case, to_database: FaultProxy
) -> None:
    before = to_database.struck
    for number in range(1, 4):
        to_database.lose_reply_to(b"EXECUTE svc_rows_")

        assert_all_served(case, 3)

        assert to_database.struck - before == number
        case.agree(1 + 3 * number)
    case.check(10)


@pytest.mark.postgresql
def test_a_kept_connection_that_the_database_closed_fails_no_request_of_a_view(
    behind_database_proxy: Gateway, to_database: FaultProxy
) -> None:
    gateway = behind_database_proxy
    headers = {"authorization": f"Bearer {gateway.mint(Scope.READ)}"}
    for _ in range(4):
        answer = httpx2.get(f"{gateway.url}/v1/usage", headers=headers, timeout=60, verify=NO_TLS)

        assert answer.status_code == 200
        to_database.reset()


@pytest.mark.postgresql
@pytest.mark.redis
def test_a_worker_that_is_replaced_in_an_outage_fails_no_request_of_the_other(
    start_gateway: Callable[..., Gateway], to_database: FaultProxy
) -> None:
    """It has no keys and no catalog before the database answers."""
    gateway = start_gateway(
        DATABASE_URL=through(to_database),
        SVC_WORKERS="2",
        REDIS_URL=os.environ["SVC_TEST_REDIS_URL"],
    )
    case = Case(gateway, roomy_model(gateway), [gateway.simulator.requests])
    parent = gateway.command.process.pid
    killed, other = until(lambda: found if len(found := list(workers_of(parent))) == 2 else None)
    assert_all_served(case)
    to_database.refuse()
    os.kill(killed, signal.SIGKILL)
    until(lambda: metric(gateway, "svc_worker_restarts_total") == 1)
    # So that an alert shows that one of them knows nothing.
    until(lambda: all(metric(gateway, "svc_poll_age_seconds", worker=each) for each in "01"))

    assert_all_served(case)

    to_database.heal()
    # Only the new one is left to answer.
    os.kill(other, signal.SIGSTOP)
    try:
        assert case.ask(streamed=False).complete
    finally:
        os.kill(other, signal.SIGCONT)
    case.check(2 * REQUESTS + 1)


def metric(gateway: Gateway, name: str, **labels: str) -> float:
    return Metrics(fetch(f"{gateway.url}/metrics").text).sum(name, **labels)


def test_rows_wait_for_a_lock_on_them(gateway: Gateway) -> None:
    case = Case(gateway, roomy_model(gateway), [gateway.simulator.requests])
    assert case.ask(streamed=True).complete
    case.agree(1)  # a busy machine may have kept the row in the journal until now
    with rows_locked():
        assert_all_served(case, 12)
        assert len(gateway.rows_when(1)) == 1

    case.check(13)


@pytest.mark.sqlite
def test_a_reader_that_locks_sqlite_delays_no_request(gateway: Gateway) -> None:
    case = Case(gateway, roomy_model(gateway), [gateway.simulator.requests])
    assert case.ask(streamed=True).complete
    with closing(sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute(f"SELECT count(*) FROM {UsageRow._meta.db_table}").fetchone()

        assert_all_served(case)
        assert len(case.agree(REQUESTS + 1)) == REQUESTS + 1

    case.check(REQUESTS + 1)
