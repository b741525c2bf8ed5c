"""Routers compiled from Rust, from ``.venv-peers`` (``make bench-compare``), in front of the stub.

They choose a server for each request. They have no keys, prices, exact limits or rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.bench import Bench
from benchmarks.peers.peer import Peer
from benchmarks.processes import ROOT, Server, free_port
from benchmarks.tables import Target

_PROGRAMS: Final = ROOT / ".venv-peers/bin"


@dataclass(frozen=True, slots=True)
class Router:
    """A program of ``.venv-peers`` with a policy."""

    program: str
    policy: str
    arguments: Sequence[str]

    @property
    def name(self) -> str:
        return f"{self.program}, {self.policy}"

    def missing(self) -> str | None:
        """Why the router cannot run here, or None."""
        if (_PROGRAMS / self.program).exists():
            return None
        return "it is not installed: run `make bench-compare`"

    def start(self, bench: Bench) -> Target:
        """Start the router in front of the stub."""
        return self.start_before(bench.stack, bench.directory, (bench.stub_port,))

    def start_before(self, stack: ExitStack, directory: Path, ports: Sequence[int]) -> Target:
        """Start the router before model servers at ``ports``, with as many threads as it chooses itself."""
        port = free_port()
        server = Server(
            [
                *(str(_PROGRAMS / self.program), *self.arguments),
                *("--host", "127.0.0.1", "--port", str(port)),
                *("--worker-urls", *(f"http://127.0.0.1:{each}" for each in ports)),
                *("--prometheus-port", str(free_port()), "--policy", self.policy),
            ],
            port,
            directory / f"{self.program}-{self.policy}.log",
            {"NO_PROXY": "127.0.0.1"},
            program=str(_PROGRAMS / "python"),
        )
        stack.callback(server.stop)
        return Target(self.name, port, server=server)


def _peer(
    program: str,
    policy: str,
    arguments: Sequence[str],
    cpu: float | None = None,
    frame: float | None = None,
) -> Peer:
    router = Router(program, policy, arguments)
    return Peer(router.name, router.missing, router.start, cpu, frame)


LAUNCH: Final = ("launch", "--log-level", "warn")

ROUTERS: Final = (
    _peer("smg", "cache_aware", LAUNCH, 1.0, 1 / 0.7),
    _peer("vllm-router", "cache_aware", ("--log-level", "warning")),
    _peer("vllm-router", "round_robin", ("--log-level", "warning")),
    _peer("sglang-router", "cache_aware", LAUNCH),
)
