"""The servers of a run: stub, relay and gateways, each a process of its own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.gateway import Serving, gateway, stub_catalog
from benchmarks.processes import Server, free_port
from benchmarks.tables import Target


@dataclass(slots=True)
class Bench:
    """The servers of a run, which stop when ``stack`` closes."""

    stack: ExitStack
    directory: Path
    stub_port: int = field(default_factory=free_port)

    def start_stub(self) -> None:
        arguments = ["-m", "benchmarks.stub", "--port", str(self.stub_port)]
        self.stack.callback(Server(arguments, self.stub_port, self.directory / "stub.log").stop)

    def relay(self, name: str, client: str = "aiohttp") -> Target:
        """Start a bare relay in front of the stub."""
        port = free_port()
        arguments = ["-m", "benchmarks.relay", "--client", client]
        arguments += ["--port", str(port), "--backend-port", str(self.stub_port)]
        server = Server(arguments, port, self.directory / f"relay-{client}.log")
        self.stack.callback(server.stop)
        return Target(name, port, server=server)

    def svc(self, name: str, database: str | None = None, serving: Serving | None = None) -> Target:
        """Start the gateway in front of the stub, on SQLite by default."""
        directory = self.directory / name.replace(" ", "-")
        directory.mkdir()
        address = database or f"sqlite:///{directory / 'svc.sqlite3'}"
        made = self.stack.enter_context(
            gateway(directory, address, stub_catalog(self.stub_port), serving)
        )
        return Target(name, made.server.port, made.key, made.server, made.rows)

    def redis(self) -> str | None:
        """Start a Redis of its own and return its address; None where ``redis-server`` is missing."""
        program = shutil.which("redis-server")
        if program is None:
            return None
        port = free_port()
        arguments = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        server = Server(arguments, port, self.directory / "redis.log", program=program)
        self.stack.callback(server.stop)
        return f"redis://127.0.0.1:{port}"


@contextmanager
def running_bench() -> Iterator[Bench]:
    """Start the stub in a directory of its own; everything ends with the context."""
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as name, ExitStack() as stack:
        bench = Bench(stack, Path(name))
        bench.start_stub()
        yield bench
