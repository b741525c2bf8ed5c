"""The four tables. Targets take turns, round by round; medians and ratios are what is shown."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median

import msgspec

from benchmarks.load import Load, Plan
from benchmarks.payloads import FAST_TOKENS, SLOW_TOKENS, Pace
from benchmarks.processes import LoadRun, Server, load

_SHIPPED_SECONDS = 10.0

RELAY = "bare relay"
CONCURRENCY = 32
STREAMS = 8
SLOW_STREAMS = 500


@dataclass(frozen=True, slots=True)
class Target:
    """Something that takes chat requests.

    ``server`` is the process whose CPU and memory count, None for the stub itself; ``rows``
    counts the ledger, where there is one.
    """

    name: str
    port: int
    key: str = "-"
    server: Server | None = None
    rows: Callable[[], int] | None = None


@dataclass(slots=True)
class Run:
    """One load on one target, with what it cost the target's process."""

    load: Load
    cpu_seconds: float
    rows: int | None


@dataclass(slots=True)
class Results:
    """The runs of each target, by name, in the order of the rounds."""

    runs: dict[str, list[Run]] = field(default_factory=dict)

    def add(self, target: Target, run: Run) -> None:
        self.runs.setdefault(target.name, []).append(run)

    def of(self, name: str, figure: Callable[[Run], float]) -> float:
        """The median of a figure over the rounds."""
        return median(map(figure, self.runs[name]))

    def ratio(self, name: str, base: str, figure: Callable[[Run], float]) -> float:
        """The median of the round-by-round ratio to another target."""
        pairs = zip(self.runs[name], self.runs[base], strict=True)
        return median(figure(run) / max(figure(other), 1e-9) for run, other in pairs)

    def added(self, name: str, base: str, figure: Callable[[Run], float]) -> float:
        """The median of the round-by-round difference to another target."""
        pairs = zip(self.runs[name], self.runs[base], strict=True)
        return median(figure(run) - figure(other) for run, other in pairs)

    def rows(self, name: str) -> str:
        """Rows written and requests sent; ``-`` where there is no ledger."""
        runs = self.runs[name]
        if any(run.rows is None for run in runs):
            return "-"
        written = sum(run.rows or 0 for run in runs)
        sent = sum(run.load.requests + run.load.failures for run in runs)
        return f"{written} / {sent}"

    def failures(self, name: str) -> int:
        return sum(run.load.failures for run in self.runs[name])


def _per_second(run: Run) -> float:
    return run.load.requests / run.load.seconds


def _frames_per_second(run: Run) -> float:
    return run.load.frames / run.load.seconds


def _cpu_per_request(run: Run) -> float:
    return run.cpu_seconds / max(run.load.requests, 1) * 1e6


def _cpu_per_frame(run: Run) -> float:
    return run.cpu_seconds / max(run.load.frames, 1) * 1e6


def _p50(run: Run) -> float:
    return run.load.p50_ms


def _p99(run: Run) -> float:
    return run.load.p99_ms


def plan_for(target: Target, pace: Pace, concurrency: int, seconds: float, tokens: int = 0) -> Plan:
    return Plan(target.port, target.key, pace, concurrency, seconds, tokens)


def measure(target: Target, plan: Plan) -> Run:
    """Run ``plan`` on ``target``."""
    rows = target.rows() if target.rows is not None else 0
    cpu = target.server.cpu_seconds() if target.server is not None else 0.0
    seen = load(plan)
    spent = target.server.cpu_seconds() - cpu if target.server is not None else 0.0
    return Run(seen, spent, _written(target, rows, seen.requests))


def _written(target: Target, before: int, expected: int) -> int | None:
    """The rows that a run added to the ledger.

    When a commit takes longer than ``SVC_LEDGER_ANSWER_SECONDS`` the journal vouches for its rows
    and they follow within seconds, so a count that is short is taken again for a while.
    """
    if target.rows is None:
        return None
    deadline = time.monotonic() + _SHIPPED_SECONDS
    while (new := target.rows() - before) < expected and time.monotonic() < deadline:
        time.sleep(0.2)
    return new


def interleave(targets: Sequence[Target], rounds: int, plan: Callable[[Target], Plan]) -> Results:
    """A short run on each to warm it up, then ``rounds`` times one run on each in turn."""
    for target in targets:
        load(msgspec.structs.replace(plan(target), concurrency=4, seconds=0.3))
    results = Results()
    for _ in range(rounds):
        for target in targets:
            results.add(target, measure(target, plan(target)))
    return results


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table under a heading."""
    lines = [f"## {title}", "", "| " + " | ".join(columns) + " |"]
    lines.append("|" + "|".join([" --- "] + [" ---: "] * (len(columns) - 1)) + "|")
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _ratio(results: Results, name: str, figure: Callable[[Run], float]) -> str:
    return f"{results.ratio(name, RELAY, figure):.0%}"


def _cpu(results: Results, target: Target, figure: Callable[[Run], float]) -> tuple[str, str]:
    """CPU time for each, and what a core does with it beside the bare relay."""
    if target.server is None:
        return "-", "-"
    used = results.of(target.name, figure)
    return f"{used:.3g}", f"{results.ratio(RELAY, target.name, figure):.0%}"


def whole(targets: Sequence[Target], rounds: int, seconds: float) -> str:
    """Answers that are not streamed."""
    many = interleave(
        targets, rounds, lambda target: plan_for(target, Pace.EACH, CONCURRENCY, seconds)
    )
    one = interleave(targets, rounds, lambda target: plan_for(target, Pace.EACH, 1, seconds / 2))
    return table(
        f"Not streamed (600-byte answers; {CONCURRENCY} connections, then 1)",
        [
            *("target", "req/s", "of the relay", "CPU us/request", "of the relay by CPU"),
            *("p50 ms", "p99 ms"),
            *("p50 ms alone", "added alone", "rows / requests", "failures"),
        ],
        [
            [
                target.name,
                f"{many.of(target.name, _per_second):.0f}",
                _ratio(many, target.name, _per_second),
                *_cpu(many, target, _cpu_per_request),
                f"{many.of(target.name, _p50):.2f}",
                f"{many.of(target.name, _p99):.2f}",
                f"{one.of(target.name, _p50):.3f}",
                f"{one.added(target.name, targets[0].name, _p50):.3f}",
                _both_rows(many, one, target.name),
                str(many.failures(target.name) + one.failures(target.name)),
            ]
            for target in targets
        ],
    )


def _both_rows(first: Results, second: Results, name: str) -> str:
    runs = Results({name: first.runs[name] + second.runs[name]})
    return runs.rows(name)


def streams(targets: Sequence[Target], rounds: int, seconds: float, pace: Pace) -> str:
    """Streams as fast as they come."""
    seen = interleave(
        targets, rounds, lambda target: plan_for(target, pace, STREAMS, seconds, FAST_TOKENS)
    )
    writes = "one write each" if pace is Pace.EACH else "all in one write"
    return table(
        f"Streamed at once ({FAST_TOKENS} frames of 250 bytes, {writes}; {STREAMS} connections)",
        [
            *("target", "frames/s", "of the relay", "CPU us/frame", "of the relay by CPU"),
            *("streams/s", "p50 ms of a stream", "rows / requests", "failures"),
        ],
        [
            [
                target.name,
                f"{seen.of(target.name, _frames_per_second):.0f}",
                _ratio(seen, target.name, _frames_per_second),
                *_cpu(seen, target, _cpu_per_frame),
                f"{seen.of(target.name, _per_second):.0f}",
                f"{seen.of(target.name, _p50):.2f}",
                seen.rows(target.name),
                str(seen.failures(target.name)),
            ]
            for target in targets
        ],
    )


def slow(targets: Sequence[Target]) -> str:
    """Many streams at the pace of a real model; one run each, for memory has no noise to speak of."""
    return table(
        f"{SLOW_STREAMS} streams at once (10 frames/s each for {SLOW_TOKENS // 10} s)",
        [
            *("target", "frames", "failures", "CPU us/frame", "CPU of a core"),
            *("p50 ms to the first frame", "MB before", "MB most", "MB after", "rows / requests"),
        ],
        [_slow_row(target) for target in targets],
    )


def _slow_row(target: Target) -> list[str]:
    server = target.server
    assert server is not None
    load(plan_for(target, Pace.EACH, 4, 0.3))
    before = most = server.resident_megabytes()
    rows = target.rows() if target.rows is not None else 0
    cpu = server.cpu_seconds()
    plan = plan_for(target, Pace.SLOW, SLOW_STREAMS, 15.0, SLOW_TOKENS)
    running = LoadRun(msgspec.structs.replace(plan, once=True, spread=1.0))
    while running.is_running:
        most = max(most, server.resident_megabytes())
        time.sleep(0.1)
    seen = running.result()
    used = server.cpu_seconds() - cpu
    written = _written(target, rows, seen.requests)
    run = Run(seen, used, written)
    return [
        target.name,
        str(seen.frames),
        str(seen.failures),
        f"{_cpu_per_frame(run):.0f}",
        f"{used / seen.seconds:.0%}",
        f"{seen.first_p50_ms:.1f}",
        f"{before:.0f}",
        f"{most:.0f}",
        f"{server.resident_megabytes():.0f}",
        Results({target.name: [run]}).rows(target.name),
    ]


def _client_plan(concurrency: int, seconds: float, tokens: int, target: Target) -> Plan:
    return plan_for(target, Pace.EACH, concurrency, seconds, tokens)


def clients(targets: Mapping[str, Target], rounds: int, seconds: float) -> str:
    """The bare relay with each HTTP client that is installed, the chosen one first."""
    seen = [
        interleave(
            list(targets.values()),
            rounds,
            partial(_client_plan, many, seconds, tokens),
        )
        for tokens, many in ((0, CONCURRENCY), (FAST_TOKENS, STREAMS))
    ]
    requests, frames = seen
    base = next(iter(targets.values())).name
    return table(
        "HTTP clients towards the model server (bare relay with each)",
        [
            *("client", "req/s", f"of {base}", "CPU us/request", "frames/s", f"of {base}"),
            *("CPU us/frame", "failures"),
        ],
        [
            [
                name,
                f"{requests.of(target.name, _per_second):.0f}",
                f"{requests.ratio(target.name, base, _per_second):.0%}",
                f"{requests.of(target.name, _cpu_per_request):.0f}",
                f"{frames.of(target.name, _frames_per_second):.0f}",
                f"{frames.ratio(target.name, base, _frames_per_second):.0%}",
                f"{frames.of(target.name, _cpu_per_frame):.2f}",
                str(requests.failures(target.name) + frames.failures(target.name)),
            ]
            for name, target in targets.items()
        ],
    )
