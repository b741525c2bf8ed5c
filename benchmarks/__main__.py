"""``python -m benchmarks [--quick] [--only NAME]``: measure, and print Markdown tables.

With ``SVC_TEST_DATABASE_URL`` set (a postgres:// address), svc is measured on PostgreSQL too.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import tables
from benchmarks.gateway import gateway, postgresql
from benchmarks.payloads import Pace
from benchmarks.processes import Server, free_port
from benchmarks.relay import CLIENTS
from benchmarks.tables import Target

NAMES = ("whole", "streams", "slow", "clients")


@dataclass(slots=True)
class Bench:
    """What is started for a run, kept until ``stack`` closes."""

    stack: ExitStack
    directory: Path
    stub_port: int = field(default_factory=free_port)

    def start_stub(self) -> None:
        arguments = ["-m", "benchmarks.stub", "--port", str(self.stub_port)]
        self.stack.callback(Server(arguments, self.stub_port, self.directory / "stub.log").stop)

    def relay(self, name: str, client: str = "aiohttp") -> Target:
        """A bare relay in front of the stub."""
        port = free_port()
        arguments = ["-m", "benchmarks.relay", "--client", client]
        arguments += ["--port", str(port), "--backend-port", str(self.stub_port)]
        server = Server(arguments, port, self.directory / f"relay-{client}.log")
        self.stack.callback(server.stop)
        return Target(name, port, server=server)

    def svc(self, name: str, database: str | None = None) -> Target:
        """The gateway in front of the stub, on SQLite unless ``database`` says otherwise."""
        directory = self.directory / name.replace(" ", "-")
        directory.mkdir()
        address = database or f"sqlite:///{directory / 'svc.sqlite3'}"
        made = self.stack.enter_context(gateway(directory, address, self.stub_port))
        return Target(name, made.server.port, made.key, made.server, made.rows)


@contextmanager
def _bench() -> Iterator[Bench]:
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as name, ExitStack() as stack:
        bench = Bench(stack, Path(name))
        bench.start_stub()
        yield bench


def _chat_tables(bench: Bench, names: set[str], *, quick: bool) -> Iterator[str]:
    rounds, seconds = (3, 0.5) if quick else (5, 1.5)
    gateways = [bench.svc("svc")]
    if address := os.environ.get("SVC_TEST_DATABASE_URL"):
        database = bench.stack.enter_context(postgresql(address))
        gateways.append(bench.svc("svc on PostgreSQL", database))
    targets = [Target("stub, direct", bench.stub_port), bench.relay(tables.RELAY), *gateways]
    if "whole" in names:
        yield tables.whole(targets, rounds, seconds)
    if "streams" in names:
        for pace in (Pace.EACH, Pace.BURST):
            yield tables.streams(targets, rounds, seconds, pace)
    if "slow" in names:
        yield tables.slow(targets[2:3] if quick else targets[1:3])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--only", choices=NAMES, action="append", help="one table; repeatable")
    arguments = parser.parse_args()
    names = set(arguments.only or (NAMES[:3] if arguments.quick else NAMES))
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, one worker.\n")
    if names - {"clients"}:
        with _bench() as bench:
            for text in _chat_tables(bench, names, quick=arguments.quick):
                print(text, flush=True)
    if "clients" in names:
        with _bench() as bench:
            relays = {
                name: bench.relay(name, name) for name, kind in CLIENTS.items() if kind.is_installed
            }
            rounds, seconds = (2, 0.5) if arguments.quick else (3, 1.0)
            print(tables.clients(relays, rounds, seconds), flush=True)


if __name__ == "__main__":
    main()
