"""Routers compiled from Rust, from ``.venv-peers`` (``make bench-compare``), in front of the stub.

They choose a server for each request. They have no keys, prices, exact limits or rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.bench import Bench
from benchmarks.peers.peer import Peer
from benchmarks.processes import ROOT, Server, free_port
from benchmarks.tables import Target

_PROGRAMS: Final = ROOT / ".venv-peers/bin"


@dataclass(frozen=True, slots=True)
class _Router:
    program: str
    policy: str
    arguments: Sequence[str]

    @property
    def name(self) -> str:
        return f"{self.program}, {self.policy}"

    def missing(self) -> str | None:
        if (_PROGRAMS / self.program).exists():
            return None
        return "it is not installed: run `make bench-compare`"

    def start(self, bench: Bench) -> Target:
        """Start the router with the number of threads that it chooses itself."""
        port = free_port()
        server = Server(
            [
                *(str(_PROGRAMS / self.program), *self.arguments),
                *("--host", "127.0.0.1", "--port", str(port)),
                *("--worker-urls", f"http://127.0.0.1:{bench.stub_port}"),
                *("--prometheus-port", str(free_port()), "--policy", self.policy),
            ],
            port,
            bench.directory / f"{self.program}-{self.policy}.log",
            {"NO_PROXY": "127.0.0.1"},
            program=str(_PROGRAMS / "python"),
        )
        bench.stack.callback(server.stop)
        return Target(self.name, port, server=server)


def _peer(
    program: str,
    policy: str,
    arguments: Sequence[str],
    cpu: float | None = None,
    frame: float | None = None,
) -> Peer:
    router = _Router(program, policy, arguments)
    return Peer(router.name, router.missing, router.start, cpu, frame)


_LAUNCH: Final = ("launch", "--log-level", "warn")

ROUTERS: Final = (
    _peer("smg", "cache_aware", _LAUNCH, 1.0, 1 / 0.7),
    _peer("vllm-router", "cache_aware", ("--log-level", "warning")),
    _peer("vllm-router", "round_robin", ("--log-level", "warning")),
    _peer("sglang-router", "cache_aware", _LAUNCH),
)
