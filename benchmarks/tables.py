"""Targets that take turns, round by round; medians and ratios of their runs; Markdown tables and goals."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final

import msgspec

from benchmarks.load import Load, Plan
from benchmarks.payloads import Pace
from benchmarks.processes import Server, load

_SHIPPED_SECONDS: Final = 10.0

RELAY: Final = "bare relay"
CONCURRENCY: Final = 32
STREAMS: Final = 8


@dataclass(frozen=True, slots=True)
class Target:
    """A server of chat requests.

    ``server`` is the process tree whose CPU and memory count, None for the stub itself; ``rows``
    counts the ledger, where there is one. ``headers`` are sent with each request. ``exact``: its
    streams have the stub's events, neither more nor fewer.
    """

    name: str
    port: int
    key: str = "-"
    server: Server | None = None
    rows: Callable[[], int] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Goal:
    """A figure that a table has, beside what it should be."""

    what: str
    measured: str
    wanted: str
    met: bool


@dataclass(frozen=True, slots=True)
class Part:
    """A table in Markdown, and the goals that it measures."""

    text: str
    goals: list[Goal] = field(default_factory=list)


@dataclass(slots=True)
class Run:
    """One load on one target, with the resources of the target's processes."""

    load: Load
    cpu_seconds: float
    rows: int | None

    @property
    def sent(self) -> int:
        return self.load.requests + self.load.failures


@dataclass(slots=True)
class Results:
    """The runs of each target, by name, in the order of the rounds."""

    runs: dict[str, list[Run]] = field(default_factory=dict)

    def add(self, target: Target, run: Run) -> None:
        self.runs.setdefault(target.name, []).append(run)

    def of(self, name: str, figure: Callable[[Run], float]) -> float:
        """The median of a measure over the rounds."""
        return median(map(figure, self.runs[name]))

    def ratio(self, name: str, base: str, figure: Callable[[Run], float]) -> float:
        """The median of the round-by-round ratio to another target."""
        pairs = zip(self.runs[name], self.runs[base], strict=True)
        return median(figure(run) / max(figure(other), 1e-9) for run, other in pairs)

    def added(self, name: str, base: str, figure: Callable[[Run], float]) -> list[float]:
        """The difference to another target, round by round."""
        pairs = zip(self.runs[name], self.runs[base], strict=True)
        return [figure(run) - figure(other) for run, other in pairs]

    def rows(self, name: str) -> str:
        """Rows written and requests sent; ``-`` where there is no ledger."""
        runs = self.runs[name]
        if any(run.rows is None for run in runs):
            return "-"
        return f"{sum(run.rows or 0 for run in runs)} / {sum(run.sent for run in runs)}"

    def rows_goal(self, what: str) -> Goal:
        """Every target that has a ledger wrote a row for each request."""
        runs = [run for each in self.runs.values() for run in each if run.rows is not None]
        written, sent = sum(run.rows or 0 for run in runs), sum(run.sent for run in runs)
        met = all(run.rows == run.sent for run in runs)
        return Goal(f"rows equal requests: {what}", f"{written} / {sent}", "equal", met)

    def failures(self, name: str) -> int:
        return sum(run.load.failures for run in self.runs[name])


def per_second(run: Run) -> float:
    return run.load.requests / run.load.seconds


def frames_per_second(run: Run) -> float:
    return run.load.frames / run.load.seconds


def cpu_per_request(run: Run) -> float:
    return run.cpu_seconds / max(run.load.requests, 1) * 1e6


def cpu_per_frame(run: Run) -> float:
    return run.cpu_seconds / max(run.load.frames, 1) * 1e6


def p50(run: Run) -> float:
    return run.load.p50_ms


def p99(run: Run) -> float:
    return run.load.p99_ms


def plan_for(target: Target, pace: Pace, concurrency: int, seconds: float, tokens: int = 0) -> Plan:
    return Plan(
        target.port,
        target.key,
        pace,
        concurrency,
        seconds,
        tokens,
        headers=target.headers,
        exact=target.exact,
    )


def measure(target: Target, plan: Plan) -> Run:
    """Run ``plan`` on ``target``."""
    rows = target.rows() if target.rows is not None else 0
    cpu = target.server.cpu_seconds() if target.server is not None else 0.0
    seen = load(plan)
    spent = target.server.cpu_seconds() - cpu if target.server is not None else 0.0
    return Run(seen, spent, written(target, rows, seen.requests))


def written(target: Target, before: int, expected: int) -> int | None:
    """The rows that a run added to the ledger.

    When a commit takes longer than ``SVC_LEDGER_ANSWER_SECONDS`` its rows go to the journal and
    reach the database within seconds, so a count that is too low is repeated for a while.
    """
    if target.rows is None:
        return None
    deadline = time.monotonic() + _SHIPPED_SECONDS
    while (new := target.rows() - before) < expected and time.monotonic() < deadline:
        time.sleep(0.2)
    return new


def interleave(targets: Sequence[Target], rounds: int, plan: Callable[[Target], Plan]) -> Results:
    """Warm each target up with a short run, then run ``rounds`` rounds over all in turn."""
    for target in targets:
        load(msgspec.structs.replace(plan(target), concurrency=4, seconds=0.3, rate=0.0))
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


def cpu(results: Results, target: Target, figure: Callable[[Run], float]) -> tuple[str, str]:
    """CPU time per request or frame, and the ratio to the bare relay's."""
    if target.server is None:
        return "-", "-"
    used = results.of(target.name, figure)
    return f"{used:.3g}", f"{results.ratio(RELAY, target.name, figure):.0%}"


def of_relay(results: Results, name: str, figure: Callable[[Run], float]) -> str:
    """The ratio to the bare relay's."""
    return f"{results.ratio(name, RELAY, figure):.0%}"


def at_least(what: str, found: float, wanted: float) -> Goal:
    """A ratio that should be at least ``wanted``."""
    return Goal(what, f"{found:.0%}", f">= {wanted:.0%}", found >= wanted)


def times_at_least(what: str, found: float, wanted: float) -> Goal:
    """A multiple that should be at least ``wanted``."""
    return Goal(what, f"{found:.1f}x", f">= {wanted:.3g}x", found >= wanted)


def goals_table(goals: Iterable[Goal]) -> str:
    """Each goal with what was measured, and whether it was met."""
    return table(
        "Goals",
        ["goal", "measured", "wanted", ""],
        [
            [each.what, each.measured, each.wanted, "met" if each.met else "**not met**"]
            for each in goals
        ],
    )
