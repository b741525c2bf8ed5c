"""Two hosts of two workers never send a server more requests at once than it takes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest

from tests.support.faults.case import SMALL_CAP, publish_on
from tests.support.faults.seen import Seen, ask
from tests.support.gateways import Served
from tests.support.live import Gateway
from tests.support.live_catalog import backend, served_models
from tests.support.model_servers.scripted import (
    GOOD,
    STREAM_HEAD,
    Pause,
    Script,
    ScriptedServer,
    completion,
    frames,
    scripted_server,
)
from tests.support.model_servers.scripted import body as whole_body
from tests.support.served import another_gateway
from tests.support.servers.redis_store import Redis
from tests.support.until import until

pytestmark = [
    pytest.mark.long,
    pytest.mark.live,
    pytest.mark.redis,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(300),
]
SLOTS = 8
CLIENTS = 24


@dataclass
class Hosts:
    """Two supervisors of two workers each, with one store, before one model server."""

    gateways: list[Gateway]
    store: Redis
    server: ScriptedServer
    model: str

    def ask_many(self, count: int) -> list[Seen]:
        """Send ``count`` requests, every other one streamed, to both hosts in turn."""

        def one(number: int) -> Seen:
            return ask(
                self.gateways[number % 2],
                self.model,
                streamed=number % 4 < 2,
                max_completion_tokens=SMALL_CAP // 10,
            )

        with ThreadPoolExecutor(CLIENTS) as threads:
            return list(threads.map(one, range(count)))


def _serves(gateway: Gateway, model: str) -> bool:
    """Whether every worker does, as far as 20 tries tell."""
    return all(model in served_models(gateway) for _ in range(20))


@pytest.fixture
def hosts(gateway: Gateway, served: Served, tmp_path: Path) -> Iterator[Hosts]:
    store = Redis(tmp_path)
    store.start()
    with ExitStack() as stack:
        stack.callback(store.kill)
        server = stack.enter_context(scripted_server())
        server.say(
            Script([STREAM_HEAD, Pause(0.2), *frames(*GOOD)], 4),
            Script([Pause(0.1), whole_body(completion())], 4),
        )
        gateways = []
        for number in range(2):
            _, url = stack.enter_context(
                another_gateway(
                    gateway,
                    served,
                    "--workers",
                    "2",
                    REDIS_URL=f"redis://127.0.0.1:{store.port}",
                    SVC_DATA_DIR=os.fspath(tmp_path / str(number)),
                    SVC_BACKEND_QUEUE_SECONDS="60",
                )
            )
            port = int(url.rpartition(":")[2].removesuffix("/v1"))
            gateways.append(replace(gateway, port=port))
        model = publish_on(
            gateway, backend(gateway, base_url=server.base_url, max_concurrency=SLOTS)
        )
        for each in gateways:
            until(partial(_serves, each, model))
        yield Hosts(gateways, store, server, model)


def test_requests_at_a_server_never_exceed_its_slots_over_workers_and_hosts(hosts: Hosts) -> None:
    asked = hosts.ask_many(60)

    def all_are_used() -> bool:
        asked.extend(hosts.ask_many(2 * SLOTS))
        return hosts.server.most_running >= SLOTS

    until(all_are_used)
    hosts.store.kill()
    asked += hosts.ask_many(60)
    hosts.store.start()
    asked += hosts.ask_many(120)

    assert {each.told for each in asked} == {(200, None)}
    assert hosts.server.most_running == SLOTS
    rows = hosts.gateways[0].rows_when(len(asked))
    assert [row.outcome for row in rows] == ["success"] * len(asked)
