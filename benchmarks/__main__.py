"""``python -m benchmarks [--quick] [--only NAME]``: measure, and print Markdown tables, the goals last.

With ``SVC_TEST_DATABASE_URL`` set (a postgres:// address), svc is measured on PostgreSQL too.
"""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from benchmarks.bench import Bench, running_bench
from benchmarks.chat.clients import clients
from benchmarks.chat.paced import paced
from benchmarks.chat.slow import slow
from benchmarks.chat.streams import streams
from benchmarks.chat.whole import whole
from benchmarks.chat.workers import WORKERS, workers
from benchmarks.gateway import Serving, postgresql
from benchmarks.payloads import Pace
from benchmarks.processes import stop_on_sigterm
from benchmarks.relay import CLIENTS
from benchmarks.tables import RELAY, Goal, Part, Target, goals_table

NAMES: Final = ("whole", "streams", "slow", "paced", "workers", "clients")
_QUICK: Final = NAMES[:3]
_ONE_SERVER: Final = {"whole", "streams", "slow", "paced"}


@dataclass(frozen=True, slots=True)
class Length:
    """How many rounds the tables have, and the seconds of each load."""

    rounds: int
    seconds: float

    @property
    def short(self) -> Length:
        """For tables that only compare what has been measured with each other."""
        return Length(max(2, self.rounds - 2), self.seconds)


def parts(names: set[str], length: Length) -> Iterator[Part]:
    """Measure the tables of ``names``, one after the other."""
    if names & _ONE_SERVER:
        with running_bench() as bench:
            yield from _one_server(bench, names, length)
    if "workers" in names:
        with running_bench() as bench:
            yield _workers(bench, length.short)
    if "clients" in names:
        with running_bench() as bench:
            relays = {
                name: bench.relay(name, name) for name, kind in CLIENTS.items() if kind.is_installed
            }
            yield clients(relays, length.short.rounds, length.short.seconds)


def _one_server(bench: Bench, names: set[str], length: Length) -> Iterator[Part]:
    relay, svc = bench.relay(RELAY), bench.svc("svc")
    targets = [Target("stub, direct", bench.stub_port), relay, svc]
    if address := os.environ.get("SVC_TEST_DATABASE_URL"):
        database = bench.stack.enter_context(postgresql(address))
        targets.append(bench.svc("svc on PostgreSQL", database))
    if "whole" in names:
        yield whole(targets, svc, length.rounds, length.seconds)
    if "streams" in names:
        for pace in (Pace.EACH, Pace.BURST):
            yield streams(targets, svc, length.rounds, length.seconds, pace)
    if "slow" in names:
        yield slow([relay, svc], svc)
    if "paced" in names:
        yield paced([relay, svc], length.short.rounds, 2 * length.seconds)


def _workers(bench: Bench, length: Length) -> Part:
    redis = bench.redis()
    if redis is None:
        return Part("**Several workers are left out: `redis-server` is not installed.**\n")
    gateways = {
        count: bench.svc(f"{count} workers", serving=Serving(workers=count, redis=redis))
        for count in WORKERS
    }
    for each in gateways.values():
        assert each.server is not None
        each.server.settle()
    return workers(gateways, length.rounds, length.seconds)


def heading() -> str:
    """Where and when a run was made, and what else the machine did."""
    return (
        f"Python {platform.python_version()}, {os.cpu_count()} cores, "
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, load average {os.getloadavg()[0]:.1f}; "
        "one worker where the table does not say otherwise.\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--only", choices=NAMES, action="append", help="one table; repeatable")
    arguments = parser.parse_args()
    names = set(arguments.only or (_QUICK if arguments.quick else NAMES))
    stop_on_sigterm()
    print(heading(), flush=True)
    goals: list[Goal] = []
    for part in parts(names, Length(3, 0.5) if arguments.quick else Length(5, 1.5)):
        print(part.text, flush=True)
        goals += part.goals
    if goals:
        print(goals_table(goals))
    print(f"Load average at the end: {os.getloadavg()[0]:.1f}.")


if __name__ == "__main__":
    main()
