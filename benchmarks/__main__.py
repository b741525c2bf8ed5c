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
from benchmarks.processes import Server, free_port
from benchmarks.relay import CLIENTS
from benchmarks.tables import Target

NAMES = ("whole", "bursts", "slow", "clients")


@dataclass(slots=True)
class Bench:
    """What is started for a run, kept until ``stack`` closes."""

    stack: ExitStack
    directory: Path
    ports: tuple[int, int] = field(default_factory=lambda: (free_port(), free_port()))
    """The stub's: fast, slow."""

    def start_stub(self) -> None:
        fast, slow = map(str, self.ports)
        arguments = ["-m", "benchmarks.stub", "--fast-port", fast, "--slow-port", slow]
        self.stack.callback(
            Server(arguments, self.ports[1], self.directory / "stub.log").stop,
        )

    def relay(self, name: str, client: str = "aiohttp", *, slow: bool = False) -> Target:
        """A bare relay in front of the stub."""
        port = free_port()
        backend = str(self.ports[1 if slow else 0])
        arguments = ["-m", "benchmarks.relay", "--client", client]
        arguments += ["--port", str(port), "--backend-port", backend]
        server = Server(arguments, port, self.directory / f"relay-{client}.log")
        self.stack.callback(server.stop)
        return Target(name, port, server=server)

    def svc(self, name: str, database: str | None = None) -> Target:
        """The gateway in front of the stub, on SQLite unless ``database`` says otherwise."""
        directory = self.directory / name.replace(" ", "-")
        directory.mkdir()
        address = database or f"sqlite:///{directory / 'svc.sqlite3'}"
        made = self.stack.enter_context(gateway(directory, address, self.ports))
        return Target(name, made.server.port, made.key, made.server, made.rows)


@contextmanager
def _bench() -> Iterator[Bench]:
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as name, ExitStack() as stack:
        bench = Bench(stack, Path(name))
        bench.start_stub()
        yield bench


def _chat_tables(bench: Bench, names: set[str], *, quick: bool) -> Iterator[str]:
    rounds, seconds = (3, 0.8) if quick else (5, 2.0)
    gateways = [bench.svc("svc")]
    if address := os.environ.get("SVC_TEST_DATABASE_URL"):
        database = bench.stack.enter_context(postgresql(address))
        gateways.append(bench.svc("svc on PostgreSQL", database))
    targets = [Target("stub, direct", bench.ports[0]), bench.relay("bare relay"), *gateways]
    if "whole" in names:
        yield tables.whole(targets, rounds, seconds)
    if "bursts" in names:
        yield tables.bursts(targets, rounds, seconds)
    if "slow" in names:
        compared = [] if quick else [bench.relay("bare relay", slow=True)]
        yield tables.slow([*compared, *gateways[:1]])


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
            rounds, seconds = (2, 0.6) if arguments.quick else (3, 1.5)
            print(tables.clients(relays, rounds, seconds), flush=True)


if __name__ == "__main__":
    main()
