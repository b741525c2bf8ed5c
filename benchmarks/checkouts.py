"""``python -m benchmarks.checkouts CHECKOUT ...``: the cost of a chat and a frame in several checkouts.

Prints Markdown tables of medians of CPU time and of throughput, and of the ratios to the first checkout
within one round; all of them stand in front of the same stub, on SQLite, with ``--workers`` (1; several need
redis-server). Every second round goes backwards. With ``--python PROGRAM``, given several times, each
checkout runs on each of these interpreters, which need requirements.txt installed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path
from statistics import median, quantiles
from typing import Final, NamedTuple

from benchmarks.bench import Bench, running_bench
from benchmarks.gateway import Gateway, Serving, gateway, stub_catalog
from benchmarks.load import Plan
from benchmarks.payloads import FAST_TOKENS, Pace
from benchmarks.processes import load
from benchmarks.tables import table

CONCURRENCY: Final = 32
WORK: Final = {
    "chat": (Pace.EACH, 0),
    "frame, one write each": (Pace.EACH, FAST_TOKENS),
    "frame, all in one write": (Pace.BURST, FAST_TOKENS),
}


class Measured(NamedTuple):
    """``cpu`` is the gateway's CPU time in us for a request, or for a frame of a stream."""

    cpu: float
    per_second: float


def measured(made: Gateway, pace: Pace, tokens: int, seconds: float) -> Measured:
    """Load ``made`` for ``seconds``. Raises ``SystemExit`` when a request fails."""
    before = made.server.cpu_seconds()
    result = load(Plan(made.server.port, made.key, pace, CONCURRENCY, seconds, tokens))
    if result.failures:
        raise SystemExit(f"{result.failures} requests failed.")
    count = result.frames or result.requests
    return Measured(1e6 * (made.server.cpu_seconds() - before) / count, count / result.seconds)


def _cell(costs: list[float], base: list[float]) -> str:
    """The median, and the median and quartiles of the ratios to ``base`` within one round."""
    ratios = [own / other for own, other in zip(costs, base, strict=True)]
    low, middle, high = quantiles(ratios, n=4)
    return f"{median(costs):.1f} ({middle:.0%}, {low:.0%} to {high:.0%})"


def _version(python: str) -> str:
    done = subprocess.run([python, "-V"], capture_output=True, text=True, check=True)
    return done.stdout.split()[-1]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.checkouts")
    parser.add_argument("checkouts", nargs="+", type=Path)
    parser.add_argument("--python", action="append", help="an interpreter; repeatable")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=WORK, action="append", help="one column; repeatable")
    parser.add_argument("--seconds", type=float, default=1.5, help="of each measurement")
    parser.add_argument("--workers", type=int, default=1, help="of each gateway")
    arguments = parser.parse_args()
    works = arguments.only or list(WORK)
    targets = list(product(arguments.checkouts, arguments.python or [sys.executable]))
    with running_bench() as bench:
        gateways = [_started(bench, *target, arguments.workers) for target in targets]
        found: list[dict[str, list[Measured]]] = [{name: [] for name in works} for _ in gateways]
        for turn in range(arguments.rounds + 1):
            pairs = list(zip(gateways, found, strict=True))
            for made, results in pairs if turn % 2 else reversed(pairs):
                for name in works:
                    result = measured(made, *WORK[name], arguments.seconds)
                    if turn:  # the first round warms up
                        results[name].append(result)
    for number, what in enumerate(("CPU in us", "A second")):
        values = [{name: [each[number] for each in own[name]] for name in works} for own in found]
        lines = [
            [
                str(checkout),
                _version(python),
                *(_cell(own[name], values[0][name]) for name in works),
            ]
            for (checkout, python), own in zip(targets, values, strict=True)
        ]
        print(table("Checkouts", [what, "Python", *works], lines))


def _started(bench: Bench, checkout: Path, python: str, workers: int) -> Gateway:
    """A gateway of ``checkout``, with a directory, a database and a Redis of its own."""
    directory = Path(tempfile.mkdtemp(dir=bench.directory))
    redis = bench.redis() if workers > 1 else ""
    if redis is None:
        raise SystemExit("Several workers need redis-server. Install it, or leave --workers out.")
    serving = Serving(checkout.resolve(), workers=workers, redis=redis, python=python)
    database, catalog = f"sqlite:///{directory}/svc.sqlite3", stub_catalog(bench.stub_port)
    running = gateway(directory, database, catalog, serving)
    return bench.stack.enter_context(running)


if __name__ == "__main__":
    main()
