"""The limit store of four workers breaks: no request fails or is refused because of it."""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import pytest

from accounts.keys.keys import mint
from accounts.models import Organization, Scope
from tests.support.faults.case import SMALL_CAP, Case, publish_on
from tests.support.faults.seen import Seen, ask
from tests.support.gateways import Served, launch
from tests.support.live import Command, Gateway, database
from tests.support.live_catalog import backend, served_models
from tests.support.servers.redis_store import Redis
from tests.support.servers.tcp_proxy import FaultProxy
from tests.support.until import until

pytestmark = pytest.mark.skipif(
    shutil.which("redis-server") is None,
    reason="there is no redis-server: what happens when the limit store breaks is not tested",
)
WORKERS = 4
AT_ONCE = 8
STORE_SECONDS = 2.0
"""Timeout of the store: longer than the default, so that a busy machine is no broken store."""
SLOWEST = STORE_SECONDS + 5.0


@dataclass
class Shared:
    """Four workers that share their limits through ``proxy``."""

    store: Redis
    proxy: FaultProxy
    command: Command
    port: int
    caller: Gateway
    """An organization for the requests of ``wait_for_all``."""

    def wait_for_all(self) -> None:
        """Return when every worker uses the store: a connection for limits, for slots and for marks."""
        until(self._knock, 90)

    def _knock(self) -> bool:
        model = self.caller.models["running"]
        with ThreadPoolExecutor(AT_ONCE) as threads:
            told = threads.map(
                lambda _: ask(self.caller, model, streamed=False, max_completion_tokens=1).told,
                range(2 * AT_ONCE),
            )
            # While workers start, one may accept a connection long before it answers.
            if set(told) != {(200, None)}:
                return False
        return self.store.callers() == 3 * WORKERS


@pytest.fixture(scope="module")
def shared(
    served: Served, tmp_path_factory: pytest.TempPathFactory, django_db_blocker: Any
) -> Iterator[Shared]:
    directory = tmp_path_factory.mktemp("redis")
    store = Redis(directory)
    store.start()
    with FaultProxy(store.port) as proxy:
        environment = {
            **served.environment,
            "REDIS_URL": f"redis://127.0.0.1:{proxy.port}",
            "SVC_WORKERS": str(WORKERS),
            "SVC_LIMIT_STORE_SECONDS": str(STORE_SECONDS),
        }
        command, port, _ = launch(environment, directory / "gateway.log")
        try:
            with django_db_blocker.unblock(), database(served.database_name):
                organization = Organization.objects.create(
                    name=f"test {uuid.uuid4()}", requests_per_minute=10**6, tokens_per_minute=None
                )
                minted = mint(organization, Scope.INFERENCE, "test")
            caller = Gateway(
                port, 0, command, organization, minted.api_key, minted.secret, served.simulator
            )
            yield Shared(store, proxy, command, port, caller)
        finally:
            command.stop()
            store.kill()


def case_on(gateway: Gateway, shared: Shared) -> Case:
    model = publish_on(gateway, backend(gateway, max_concurrency=64, running_usage="vllm"))
    shared.wait_for_all()
    through = replace(gateway, port=shared.port, command=shared.command)
    # Every worker polls for changes by itself.
    until(lambda: all(model in served_models(through) for _ in range(20)))
    return Case(through, model, [gateway.simulator.requests])


def assert_limits_are_shared(case: Case, shared: Shared, count: int) -> None:
    """Assert that the store is queried for each of ``count`` requests."""
    before = shared.store.calls()
    assert {each.told for each in case.ask_many(count)} == {(200, None)}
    assert shared.store.calls() >= before + count


FAULTS = ["blackhole", "emptied", "killed"]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_limit_store_fails_and_refuses_no_request(
    gateway: Gateway, shared: Shared, fault: str
) -> None:
    case = case_on(gateway, shared)
    assert_limits_are_shared(case, shared, 8)

    with ThreadPoolExecutor(AT_ONCE) as threads:
        futures = [
            threads.submit(
                ask,
                case.gateway,
                case.model,
                "[[sim tokens=4 first=0.02]]",
                streamed=number % 2 == 0,
                max_completion_tokens=SMALL_CAP // 10,
            )
            for number in range(60)
        ]
        until(lambda: sum(future.done() for future in futures) > AT_ONCE)
        break_store(shared, fault)
        seen = [future.result() for future in futures]
    case.seen += seen

    assert {each.told for each in seen} == {(200, None)}
    assert max(each.seconds for each in seen) < SLOWEST
    repair_store(shared, fault)
    shared.wait_for_all()
    assert_limits_are_shared(case, shared, 2)
    case.agree(70)


def break_store(shared: Shared, fault: str) -> None:
    match fault:
        case "blackhole":
            shared.proxy.blackhole()
        case "emptied":
            with shared.store.client() as client:
                client.flushall()
        case "killed":
            shared.store.kill()


def repair_store(shared: Shared, fault: str) -> None:
    shared.proxy.heal()
    if fault == "killed":
        shared.store.start()


CLIENTS = 50
TRIES = 6
PER_MINUTE = 120


def limit_requests(gateway: Gateway) -> None:
    organization = gateway.organization
    organization.requests_per_minute = PER_MINUTE
    organization.tokens_per_minute = None
    organization.save()
    gateway.sees_changes()


def crowd(gateway: Gateway, model: str) -> tuple[list[Seen], float]:
    """Send some requests each from fifty concurrent clients; return them and the seconds."""

    def tries(number: int) -> list[Seen]:
        return [
            ask(gateway, model, "[[sim tokens=1]]", streamed=number % 2 == 0) for _ in range(TRIES)
        ]

    began = time.monotonic()
    with ThreadPoolExecutor(CLIENTS) as threads:
        seen = [each for found in threads.map(tries, range(CLIENTS)) for each in found]
    return seen, time.monotonic() - began


def test_fifty_clients_never_get_more_than_the_bucket_and_its_refill(
    gateway: Gateway, shared: Shared
) -> None:
    limit_requests(gateway)
    case = case_on(gateway, shared)

    seen, seconds = crowd(case.gateway, case.model)

    case.seen += seen
    assert {each.told for each in seen} == {(200, None), (429, "rate_limit_exceeded")}
    admitted = sum(each.complete for each in seen)
    assert PER_MINUTE <= admitted <= PER_MINUTE + PER_MINUTE / 60 * seconds + 1
    case.agree(admitted)

    for _ in range(3):
        while (refused := case.ask(streamed=False)).complete:
            pass
        assert refused.told == (429, "rate_limit_exceeded")
        time.sleep(refused.retry_after_ms / 1000)
        assert case.ask(streamed=False).complete
    case.agree()
