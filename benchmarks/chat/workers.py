"""One, two and four workers behind one address: what several cost, and how the kernel balances them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from benchmarks.payloads import Pace
from benchmarks.processes import Server, load
from benchmarks.tables import (
    Part,
    Results,
    Target,
    cpu_per_request,
    measure,
    p50,
    p99,
    per_second,
    plan_for,
    table,
)

WORKERS: Final = (1, 2, 4)
_CONNECTIONS: Final = 64


@dataclass(slots=True)
class _Shares:
    """How much of all workers' CPU time the busiest one had, run by run."""

    busiest: list[float] = field(default_factory=list)

    def add(self, before: Mapping[int, float], after: Mapping[int, float]) -> None:
        spent = [seconds - before.get(pid, 0.0) for pid, seconds in after.items()]
        self.busiest.append(max(spent) / max(sum(spent), 1e-9))


def workers(targets: Mapping[int, Target], rounds: int, seconds: float) -> Part:
    """Measure gateways by their number of workers, in turns."""
    seen = Results()
    shares = {count: _Shares() for count in targets}
    for target in targets.values():
        load(plan_for(target, Pace.EACH, 16, 0.5))
    for _ in range(rounds):
        for count, target in targets.items():
            before = _by_worker(target.server, count)
            run = measure(target, plan_for(target, Pace.EACH, _CONNECTIONS, seconds))
            seen.add(target, run)
            shares[count].add(before, _by_worker(target.server, count))
    base = targets[min(targets)].name
    text = table(
        f"Workers (600-byte answers; {_CONNECTIONS} connections, limits in Redis)",
        [
            *("workers", "req/s", "of one", "CPU us/request", "busiest worker's part"),
            *("p50 ms", "p99 ms", "rows / requests", "failures"),
        ],
        [
            [
                str(count),
                f"{seen.of(target.name, per_second):.0f}",
                f"{seen.ratio(target.name, base, per_second):.0%}",
                f"{seen.of(target.name, cpu_per_request):.0f}",
                f"{median(shares[count].busiest):.0%} (even: {1 / count:.0%})",
                f"{seen.of(target.name, p50):.2f}",
                f"{seen.of(target.name, p99):.2f}",
                seen.rows(target.name),
                str(seen.failures(target.name)),
            ]
            for count, target in targets.items()
        ],
    )
    return Part(text, [seen.rows_goal("several workers")])


def _by_worker(server: Server | None, count: int) -> dict[int, float]:
    """The CPU time of each worker; one worker is the server itself, and its children are not workers."""
    assert server is not None
    return server.cpu_by_child() if count > 1 else {server.pid: server.cpu_seconds()}
