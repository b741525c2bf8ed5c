"""Many streams at the pace of a real model: memory, and whether any frame is lost."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from benchmarks.payloads import SLOW_TOKENS, Pace, events_of
from benchmarks.processes import LoadRun, load
from benchmarks.tables import (
    RELAY,
    Goal,
    Part,
    Results,
    Run,
    Target,
    cpu_per_frame,
    plan_for,
    table,
    written,
)

SLOW_STREAMS: Final = 1000
_MOST_MEGABYTES: Final = 200.0
_MOST_OF_RELAY: Final = 1.15
_LIMIT_SECONDS: Final = 25.0


@dataclass(frozen=True, slots=True)
class _Memory:
    before: float
    most: float
    after: float


def slow(targets: Sequence[Target], gateway: Target) -> Part:
    """Measure each of ``targets`` once, because memory hardly varies; the goals are of ``gateway``."""
    seen = {target.name: _measure(target) for target in targets}
    results = Results({name: [run] for name, (run, _) in seen.items()})
    text = table(
        f"{SLOW_STREAMS} streams at once (10 frames/s each for {SLOW_TOKENS // 10} s)",
        [
            *("target", "frames", "failures", "CPU us/frame", "CPU of a core"),
            *("p50 ms to the first frame", "MB before", "MB most", "MB after", "rows / requests"),
        ],
        [_line(name, run, memory, results.rows(name)) for name, (run, memory) in seen.items()],
    )
    run, memory = seen[gateway.name]
    lost = SLOW_STREAMS * events_of(SLOW_TOKENS) - run.load.frames
    most = f"{memory.most:.0f} MB"
    of_relay = results.ratio(gateway.name, RELAY, cpu_per_frame)
    return Part(
        text,
        [
            Goal(
                f"{SLOW_STREAMS} slow streams: memory",
                most,
                f"<= {_MOST_MEGABYTES:.0f} MB",
                memory.most <= _MOST_MEGABYTES,
            ),
            Goal(
                f"{SLOW_STREAMS} slow streams: CPU of the relay's",
                f"{of_relay:.2f}x",
                f"<= {_MOST_OF_RELAY:g}x",
                of_relay <= _MOST_OF_RELAY,
            ),
            Goal(f"{SLOW_STREAMS} slow streams: lost frames", str(lost), "0", lost == 0),
            results.rows_goal(f"{SLOW_STREAMS} slow streams"),
        ],
    )


def _measure(target: Target) -> tuple[Run, _Memory]:
    server = target.server
    assert server is not None
    load(plan_for(target, Pace.EACH, 4, 0.3))
    before = most = server.resident_megabytes()
    rows = target.rows() if target.rows is not None else 0
    cpu = server.cpu_seconds()
    plan = plan_for(target, Pace.SLOW, SLOW_STREAMS, _LIMIT_SECONDS, SLOW_TOKENS)
    running = LoadRun(msgspec.structs.replace(plan, once=True, spread=2.0))
    while running.is_running:
        most = max(most, server.resident_megabytes())
        time.sleep(0.1)
    seen = running.result()
    used = server.cpu_seconds() - cpu
    run = Run(seen, used, written(target, rows, seen.requests))
    return run, _Memory(before, most, server.resident_megabytes())


def _line(name: str, run: Run, memory: _Memory, rows: str) -> list[str]:
    return [
        name,
        str(run.load.frames),
        str(run.load.failures),
        f"{cpu_per_frame(run):.0f}",
        f"{run.cpu_seconds / run.load.seconds:.0%}",
        f"{run.load.first_p50_ms:.1f}",
        f"{memory.before:.0f}",
        f"{memory.most:.0f}",
        f"{memory.after:.0f}",
        rows,
    ]
