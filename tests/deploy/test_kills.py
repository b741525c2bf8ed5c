"""Processes of a gateway are killed under load, behind nginx as shipped: what clients see, and the ledger."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.deploy.conftest import BEHIND_TLS, Front
from tests.support.gateways import Served, another_gateway
from tests.support.hosts.load import Load
from tests.support.live import Command, Gateway
from tests.support.processes import page_process_of, workers_of
from tests.support.served import refuses
from tests.support.servers.redis_store import REDIS_URL
from tests.support.servers.shipped import SHIPPED, Certificate, running_shipped
from tests.support.until import until
from usage.models import UsageRow

pytestmark = [pytest.mark.long, pytest.mark.redis, pytest.mark.timeout(300)]

[NGINX] = [each for each in SHIPPED if each.name == "nginx"]


@pytest.fixture
def pair(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Served]]:
    """Two gateways with two workers each."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                another_gateway(
                    served,
                    tmp_path_factory.mktemp("pair"),
                    **{**BEHIND_TLS, "SVC_WORKERS": "2", "REDIS_URL": REDIS_URL},
                )
            )
            for _ in range(2)
        ]


def kill_worker(served: Served) -> int:
    pid = min(workers_of(served.command.process.pid))
    os.kill(pid, signal.SIGKILL)
    return pid


def kill_pages(served: Served) -> int:
    pid = until(lambda: page_process_of(served.command.process.pid))
    os.kill(pid, signal.SIGKILL)
    return pid


def kill_parent(served: Served) -> int:
    served.command.process.kill()
    served.command.process.wait()
    return served.command.process.pid


@pytest.mark.parametrize(
    "kill", [kill_worker, kill_pages, kill_parent], ids=lambda each: each.__name__
)
def test_a_kill_costs_what_that_process_was_answering(
    pair: list[Served], made: Certificate, gateway: Gateway, kill: Callable[[Served], int]
) -> None:
    victim = pair[0]
    parent = victim.command.process.pid
    again: Command | None = None
    with running_shipped(NGINX, made, [each.port for each in pair]) as port:
        front = Front(NGINX, port, made)
        url, context = f"{front.url}/v1", made.context
        with Load(url, gateway.key, verify=context, streams_a_second=2.0) as load:
            until(lambda: load.sent.streams >= 16)
            killed = kill(victim)
            began = time.monotonic()
            if kill is kill_parent:
                # Until its workers know, they take connections, which the next server must not count.
                until(lambda: refuses(f"127.0.0.1:{victim.port}"))
                again = Command(
                    ["serve", "--port", str(victim.port), "--speech-port", str(victim.speech_port)],
                    victim.environment,
                    victim.command.log,
                )
                again.wait_for(f"127.0.0.1:{victim.port}")
            elif kill is kill_worker:
                until(lambda: len(set(workers_of(parent)) - {killed}) == 2)
            else:
                until(lambda: page_process_of(parent) not in {None, killed})
            back = time.monotonic() - began
            with socket.create_connection(("127.0.0.1", victim.port), timeout=10):
                pass
            until(lambda: load.sent.streams >= 40)
    if again is not None:
        again.stop()

    print(f"\n{kill.__name__}: back after {back:.2f} s; {load.sent}")
    if kill is kill_pages:
        assert (load.sent.failed, load.sent.cut) == ([], [])
    elif kill is kill_parent:  # its workers finish what runs
        assert load.sent.cut == []
    assert len(load.sent.failed) + len(load.sent.cut) < load.sent.total / 5
    rows = UsageRow.objects.filter(organization_id=gateway.organization.pk)
    until(lambda: load.sent.answered <= set(rows.values_list("request_id", flat=True)))
    assert rows.count() <= load.sent.total
