"""Four gateways on hosts of their own lose a host, an engine or a network, and the meter holds.

Each test prints what clients saw; docs/measurements/hosts.md keeps the figures of a run.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx2
import pytest

from tests.support.hosts.engines import Pooler, Postgresql, Redis, databases, open_directory
from tests.support.hosts.load import Load, Sent
from tests.support.hosts.network import Host, Network, Running, answers, network
from tests.support.live import ROOT, fetch, output_of, run, with_constants
from tests.support.servers.programs import debian_program
from tests.support.until import until

pytestmark = [pytest.mark.long, pytest.mark.timeout(600), pytest.mark.xdist_group("hosts")]

GATEWAYS = 4
SHARES, SHARED = "the limit store failed", "the limit store answers again"
AWAY = "ledger: the database"
FRONT = """
global
  maxconn 800
defaults
  mode http
  timeout connect 1s
  timeout client 90s
  timeout server 610s
  option http-keep-alive
  option redispatch
  retries 3
  retry-on conn-failure empty-response
  option httpchk GET /readyz
  default-server check inter 500ms fall 2 rise 1
frontend clients
  bind HERE:8080
  default_backend gateways
backend gateways
  balance leastconn
"""


@dataclass
class Place:
    """The hosts of this module."""

    network: Network
    directory: Path
    postgresql: Postgresql
    pooler: Pooler
    redis: Redis
    gateways: list[Host]
    environments: list[dict[str, str]]
    served: dict[str, Running]
    url: str
    key: str
    sent: int = 0
    """Requests of all tests so far."""

    def serve(self, number: int) -> Running:
        """Start the gateway of a host, and wait until the proxy's check finds it ready."""
        host = self.gateways[number]
        started = host.run(
            [sys.executable, "manage.py", "serve", "--host", "0.0.0.0", "--port", "8000"],
            self.directory / f"{host.name}.log",
            environment=with_constants(self.environments[number]),
            directory=ROOT,
        )
        self.served[host.name] = started
        return started

    def ready(self, number: int) -> bool:
        try:
            address = f"http://{self.gateways[number].address}:8000/readyz"
            return fetch(address, timeout=5).status_code == 200
        except httpx2.TransportError:
            return False

    def said(self, number: int, words: str) -> int:
        """Count the lines of a gateway's log with these words."""
        return (self.directory / f"{self.gateways[number].name}.log").read_text().count(words)

    def said_again(self, number: int, words: str, before: int) -> bool:
        return self.said(number, words) > before

    def running(self, number: int) -> Running:
        return self.served[self.gateways[number].name]

    def load(self) -> Load:
        return Load(self.url, self.key)

    def check_ledger(self, sent: Sent) -> None:
        """Assert that the ledger has a row of every request that was answered, and none too many."""
        self.sent += sent.total
        until(lambda: sent.answered <= self.postgresql.rows().keys(), 120)
        assert len(self.postgresql.rows()) <= self.sent
        print(f"\n{sent}; {len(sent.answered)} answered, all with a row")


def manage(environment: dict[str, str], *arguments: str) -> str:
    command = (sys.executable, "manage.py", *arguments)
    return output_of(run(*command, cwd=ROOT, env=with_constants(environment), timeout=300))


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with ExitStack() as stack:
        directory = stack.enter_context(open_directory())
        hosts = stack.enter_context(network())
        postgresql, pooler = databases(hosts, directory)
        redis = Redis(directory, hosts.host("redis1"), hosts.host("redis2"), hosts.host("redis"))
        redis.start()
        common = {
            "REDIS_URL": redis.url,
            "ALLOWED_HOSTS": "*",
            "PATH": "/usr/bin:/bin",
            "SECRET_KEY": "k" * 20 + "0123456789" * 3,
            "SVC_KEY_PEPPERS": "p" * 20 + "0123456789" * 3,
            "SVC_CAPTURE_KEYS": "c" * 20 + "0123456789" * 3,
            "SVC_CLONE_KEYS": "r" * 20 + "0123456789" * 3,
            "SVC_DRAIN_SECONDS": "60",
        }
        gateways = [hosts.host(f"gw{number + 1}") for number in range(GATEWAYS)]
        environments = [
            {
                **common,
                # Two reach the database themselves, two through the pooler.
                "DATABASE_URL": postgresql.url if number < 2 else pooler.url,
                **({"SVC_VIEW_STATEMENT_SECONDS": "0"} if number >= 2 else {}),
                "SVC_DATA_DIR": str(directory / f"data-{number + 1}"),
                "TMPDIR": str(directory),
            }
            for number in range(GATEWAYS)
        ]
        catalog = directory / "catalog.toml"
        text = (ROOT / "tests/catalog.toml").read_text()
        catalog.write_text(text.replace("127.0.0.1:PORT", f"{hosts.address}:9000"))
        manage(environments[0], "migrate", "--verbosity", "0")
        manage(environments[0], "load_catalog", str(catalog))
        limits = ("--requests-per-minute", "1000000", "--tokens-per-minute", "100000000")
        manage(environments[0], "org", "create", "hosts", *limits)
        made = manage(environments[0], "keys", "create", "hosts", "--scope", "inference", "--json")
        simulator = Running(
            subprocess.Popen(
                [sys.executable, "manage.py", "simulate_backend", "--host", hosts.address],
                cwd=ROOT,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            ),
            directory / "simulator.log",
        )
        stack.callback(simulator.kill)
        until(lambda: answers(hosts.address, 9000))
        front = hosts.host("front")
        text = FRONT.replace("HERE", front.address) + "".join(
            f"  server {each.name} {each.address}:8000\n" for each in gateways
        )
        (directory / "front.cfg").write_text(text)
        haproxy = [debian_program("haproxy", "haproxy"), "-db", "-f", str(directory / "front.cfg")]
        front.run(haproxy, directory / "front.log")
        found = Place(
            hosts,
            directory,
            postgresql,
            pooler,
            redis,
            gateways,
            environments,
            {},
            url=f"http://{front.address}:8080/v1",
            key=str(json.loads(made)["key"]),
        )
        for number in range(GATEWAYS):
            found.serve(number)
        for number in range(GATEWAYS):
            until(partial(found.ready, number), 120)
        yield found


def test_a_gateway_that_is_killed_costs_what_it_was_answering(place: Place) -> None:
    with place.load() as load:
        until(lambda: load.sent.streams >= 6)
        place.running(0).kill()
        until(lambda: load.sent.streams >= 16)
        place.serve(0)
        until(lambda: place.ready(0), 120)
    assert len(load.sent.failed) + len(load.sent.cut) < load.sent.total / 4, load.sent.failed
    place.check_ledger(load.sent)


@contextmanager
def unnoticed(place: Place) -> Iterator[Load]:
    """Chats and streams while something happens that no client may notice."""
    with place.load() as load:
        until(lambda: load.sent.streams >= 6)
        yield load
    assert (load.sent.failed, load.sent.cut) == ([], [])
    place.check_ledger(load.sent)


def test_a_reload_of_one_host_is_not_noticed(place: Place) -> None:
    with unnoticed(place) as load:
        place.running(1).signal(signal.SIGHUP)
        until(lambda: place.said(1, "generation 2 serves"), 120)
        until(lambda: load.sent.streams >= 16)


def test_a_host_that_is_cut_off_from_redis_serves_on(place: Place) -> None:
    with unnoticed(place) as load:
        place.gateways[2].cut_from(place.redis.front)
        until(lambda: place.said(2, SHARES))
        until(lambda: load.sent.streams >= 16)
        place.gateways[2].join(place.redis.front)
        until(lambda: place.said(2, SHARED))


def test_a_host_that_is_cut_off_from_postgresql_serves_on(place: Place) -> None:
    """Its rows are in its journal meanwhile, and in the ledger afterwards."""
    with unnoticed(place) as load:
        place.gateways[0].cut_from(place.postgresql.first)
        until(lambda: place.said(0, AWAY))
        until(lambda: load.sent.streams >= 36)
        place.gateways[0].join(place.postgresql.first)


def test_redis_fails_over_to_its_replica(place: Place) -> None:
    with unnoticed(place):
        before = [place.said(number, SHARED) for number in range(GATEWAYS)]
        place.redis.servers["first"].kill()
        for number in range(GATEWAYS):
            until(partial(place.said_again, number, SHARED, before[number]))


def test_postgresql_fails_over_to_its_standby(place: Place) -> None:
    """The old primary does not come back, so every row is one that the standby has."""
    with unnoticed(place) as load:
        place.postgresql.fail_over()
        until(lambda: all(place.said(number, AWAY) for number in (2, 3)))
        place.pooler.point_to(place.postgresql.second)
        until(lambda: load.sent.streams >= 46)
    print(manage(place.environments[0], "verify_ledger"))
