"""``python -m benchmarks.checkouts CHECKOUT ...``: the cost of a chat and a frame in several checkouts.

Prints a Markdown table of medians of CPU time, and of the ratios to the first checkout within one round;
all of them stand in front of the same stub, on SQLite, with one worker. Every second round goes backwards.
With ``--python PROGRAM``, given several times, each checkout runs on each of these interpreters, which
need requirements.txt installed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from statistics import median, quantiles
from typing import Final

from benchmarks.gateway import Gateway, Serving, gateway
from benchmarks.load import Plan
from benchmarks.payloads import FAST_TOKENS, Pace
from benchmarks.processes import Server, free_port, load
from benchmarks.tables import table

CONCURRENCY: Final = 32
WORK: Final = {
    "chat": (Pace.EACH, 0),
    "frame, one write each": (Pace.EACH, FAST_TOKENS),
    "frame, all in one write": (Pace.BURST, FAST_TOKENS),
}


def cost(made: Gateway, pace: Pace, tokens: int, seconds: float) -> float:
    """Return the gateway's CPU time in us for a request, or for a frame of a stream."""
    before = made.server.cpu_seconds()
    result = load(Plan(made.server.port, made.key, pace, CONCURRENCY, seconds, tokens))
    if result.failures:
        raise SystemExit(f"{result.failures} requests failed.")
    return 1e6 * (made.server.cpu_seconds() - before) / (result.frames or result.requests)


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
    arguments = parser.parse_args()
    works = arguments.only or list(WORK)
    targets = list(product(arguments.checkouts, arguments.python or [sys.executable]))
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="svc-bench-")))
        port = free_port()
        stub = Server(["-m", "benchmarks.stub", "--port", str(port)], port, directory / "stub.log")
        stack.callback(stub.stop)
        gateways = []
        for number, (checkout, python) in enumerate(targets):
            place = directory / str(number)
            place.mkdir()
            database = f"sqlite:///{place}/svc.sqlite3"
            running = gateway(place, database, port, Serving(checkout.resolve(), python=python))
            gateways.append(stack.enter_context(running))
        found: list[dict[str, list[float]]] = [{name: [] for name in works} for _ in gateways]
        for turn in range(arguments.rounds + 1):
            pairs = list(zip(gateways, found, strict=True))
            for made, costs in pairs if turn % 2 else reversed(pairs):
                for name in works:
                    spent = cost(made, *WORK[name], arguments.seconds)
                    if turn:  # the first round warms up
                        costs[name].append(spent)
    lines = [
        [str(checkout), _version(python), *(_cell(costs[name], found[0][name]) for name in works)]
        for (checkout, python), costs in zip(targets, found, strict=True)
    ]
    print(table("Checkouts", ["CPU in us", "Python", *works], lines))


if __name__ == "__main__":
    main()
