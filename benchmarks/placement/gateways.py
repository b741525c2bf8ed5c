"""Gateways, each in front of modelled model servers of its own."""

from __future__ import annotations

import os
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.bench import Bench
from benchmarks.gateway import Serving, gateway, postgresql
from benchmarks.peers.proxies import nginx_missing, start_nginx
from benchmarks.peers.routers import LAUNCH, Router
from benchmarks.placement.engine import Card
from benchmarks.placement.replica import Counters
from benchmarks.processes import Server, free_port
from benchmarks.tables import Target

REPLICAS: Final = 4
TENANTS: Final = 4
SLOTS: Final = Card().batch
NGINX: Final = "nginx"
_SVC: Final = {"svc 1 worker": 1, "svc 2 workers": 2, "svc 4 workers": 4}
# Their defaults notice a killed server after a minute.
_HEALTH: Final = (
    *("--health-check-interval-secs", "2", "--health-check-timeout-secs", "2"),
    *("--worker-startup-check-interval", "1"),
)
_ROUTERS: Final = (
    Router("smg", "cache_aware", (*LAUNCH, *_HEALTH)),
    Router("sglang-router", "cache_aware", (*LAUNCH, *_HEALTH)),
    Router("vllm-router", "cache_aware", ("--log-level", "warning", *_HEALTH)),
)
NAMES: Final = (NGINX, *_SVC, *(each.name for each in _ROUTERS))


@dataclass(frozen=True, slots=True)
class Kind:
    """What the model servers of a fleet are: ``count`` times this Python with ``arguments`` and a port.

    ``slots`` is their ``max_concurrency`` in svc's catalog, ``dialect`` their ``running_usage``.
    """

    count: int
    arguments: Sequence[str]
    slots: int
    dialect: str


def modelled(scale: float) -> Kind:
    """Replicas as ``benchmarks.placement.replica`` has them."""
    arguments = ["-m", "benchmarks.placement.replica", "--scale", str(scale), "--port"]
    return Kind(REPLICAS, arguments, SLOTS, "vllm")


class Fleet:
    """The model servers of one gateway."""

    def __init__(self, stack: ExitStack, directory: Path, kind: Kind) -> None:
        self._stack = stack
        self._directory = directory
        self.kind = kind
        self.ports = [free_port() for _ in range(kind.count)]
        self._servers = [self._start(port) for port in self.ports]

    def control(self, at: int, **wanted: object) -> Counters:
        """Send server ``at`` what is ``wanted``; return its counters."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.ports[at]}/control", data=msgspec.json.encode(wanted)
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return msgspec.json.decode(answer.read(), type=Counters)

    def control_all(self, **wanted: object) -> list[Counters]:
        return [self.control(at, **wanted) for at in range(len(self.ports))]

    def kill(self, at: int) -> None:
        self._servers[at].kill()

    def restart(self, at: int) -> None:
        """Start server ``at`` again, with an empty cache."""
        self._servers[at] = self._start(self.ports[at])

    def _start(self, port: int) -> Server:
        log = self._directory / f"replica-{port}.log"
        server = Server([*self.kind.arguments, str(port)], port, log)
        self._stack.callback(server.stop)
        return server


@dataclass(frozen=True, slots=True)
class Place:
    """A gateway in front of its own fleet; ``keys`` has one of each tenant."""

    target: Target
    fleet: Fleet
    keys: Sequence[str] = ("-",)
    model: str = "m"


def missing(name: str) -> str | None:
    """Why the gateway ``name`` cannot run here, or None."""
    if name == NGINX:
        return nginx_missing()
    return next((each.missing() for each in _ROUTERS if each.name == name), None)


def places(bench: Bench, names: Sequence[str], kind: Kind) -> Iterator[Place]:
    """Start the gateways of ``names``, and a fleet of ``kind`` for each."""
    starts: dict[str, Callable[[Fleet, Path], Place]] = {
        NGINX: lambda fleet, directory: Place(
            start_nginx(bench.stack, directory, fleet.ports), fleet
        )
    }
    starts |= {each.name: _router(bench, each) for each in _ROUTERS}
    starts |= {name: _svc(bench, name, workers) for name, workers in _SVC.items()}
    for number, name in enumerate(names):
        directory = bench.directory / f"gateway-{number}"
        directory.mkdir()
        yield starts[name](Fleet(bench.stack, directory, kind), directory)


def _router(bench: Bench, router: Router) -> Callable[[Fleet, Path], Place]:
    return lambda fleet, directory: Place(
        router.start_before(bench.stack, directory, fleet.ports), fleet
    )


def _svc(bench: Bench, name: str, workers: int) -> Callable[[Fleet, Path], Place]:
    def start(fleet: Fleet, directory: Path) -> Place:
        redis = bench.redis() if workers > 1 else ""
        if redis is None:
            raise SystemExit(
                "Several workers need redis-server. Install it, or leave them out of --gateways."
            )
        database = f"sqlite:///{directory / 'svc.sqlite3'}"
        if address := os.environ.get("SVC_TEST_DATABASE_URL"):
            database = bench.stack.enter_context(postgresql(address, f"_{workers}"))
        made = bench.stack.enter_context(
            gateway(
                directory,
                database,
                _catalog(fleet),
                Serving(workers=workers, redis=redis),
                [f"tenant-{number}" for number in range(TENANTS)],
            )
        )
        target = Target(name, made.server.port, made.key, made.server, made.rows)
        return Place(target, fleet, made.keys, "bench/m")

    return start


def _catalog(fleet: Fleet) -> str:
    ports = fleet.ports
    backends = "".join(
        f"""
[[backends]]
name = "replica-{at}"
base_url = "http://127.0.0.1:{port}/v1"
max_concurrency = {fleet.kind.slots}
running_usage = "{fleet.kind.dialect}"
"""
        for at, port in enumerate(ports)
    )
    deployments = ", ".join(f'{{ name = "replica-{at}", model = "m" }}' for at in range(len(ports)))
    return f"""{backends}
[[models]]
id = "bench/m"
weights = "bench/m@1"
backends = [{deployments}]
context_length = 131072
max_request_bytes = 4194304
default_max_output_tokens = 2048
tool_calling = true
structured_output = true
published = true
pricing = {{ input_per_mtok = "0.15", output_per_mtok = "0.60", currency = "USD" }}
"""
