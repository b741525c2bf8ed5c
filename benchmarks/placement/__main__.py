"""``python -m benchmarks.placement [--cells conv:32,...] [--gateways svc,smg]``: ``make bench-placement``.

svc with one, two and four workers, nginx and the routers of others take turns in front of modelled model
servers (``replica``), each with a fleet of its own, with the same users. Times and rates are in the model's
seconds: ``--scale 2`` makes each of them two real ones, so that a slow machine can keep up. A cell is
WORKLOAD:USERS (``workloads``); ``conv+kill:32`` kills the second server after a third of the run and starts
it again after two thirds, ``conv+slow:32`` makes it half as fast. svc is on PostgreSQL where
``SVC_TEST_DATABASE_URL`` is set.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

import uvloop

from benchmarks.__main__ import heading
from benchmarks.bench import running_bench
from benchmarks.placement.client import Client
from benchmarks.placement.gateways import NAMES, SLOTS, Fleet, Place, missing, modelled, places
from benchmarks.placement.workloads import Run, Summary, summary
from benchmarks.processes import stop_on_sigterm
from benchmarks.tables import Goal, goals_table, table, written

_CELLS: Final = "conv:32,conv:96,none:32,shared:96,agents:40,fair:24,conv+slow:32,conv+kill:32"
_WARM: Final = 0.25
"""The part of a run that does not count."""
_SECOND: Final = 1
"""The server of events."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A workload, its users, and what happens to the second server: "", "kill" or "slow"."""

    name: str

    @property
    def workload(self) -> str:
        return self.name.partition(":")[0].partition("+")[0]

    @property
    def event(self) -> str:
        return self.name.partition(":")[0].partition("+")[2]

    @property
    def users(self) -> int:
        return int(self.name.partition(":")[2])


@dataclass(frozen=True, slots=True)
class Played:
    """The figures of a cell in front of one gateway.

    ``others``: those of every tenant but the first, where there are several. ``spread`` and ``second``: the
    most requests of a server, and those of the second, of the mean. ``cores``: the gateway's processor time.
    """

    all: Summary
    others: Summary
    spread: float
    second: float
    failures: int
    sent: int
    rows: int | None
    most_at_once: int
    cores: float

    def __str__(self) -> str:
        return (
            f"{self.all}; spread {self.spread:.2f}, {self.failures} failed, {self.rows} rows of {self.sent}, "
            f"{self.most_at_once} at once, {self.cores:.2f} cores"
        )


async def _happen(fleet: Fleet, event: str, seconds: float) -> None:
    """Let ``event`` happen to the second server, in a run of ``seconds`` real seconds."""
    if event == "kill":
        await asyncio.sleep(seconds / 3)
        await asyncio.to_thread(fleet.kill, _SECOND)
        await asyncio.sleep(seconds / 3)
        await asyncio.to_thread(fleet.restart, _SECOND)


async def use(
    place: Place, cell: Cell, seed: str, seconds: float, scale: float
) -> tuple[Run, Client]:
    """Let the users of ``cell`` send requests to ``place`` for ``seconds`` of the model."""
    loop = asyncio.get_running_loop()
    began = loop.time()

    def clock() -> float:
        return (loop.time() - began) / scale

    client = Client(place.target.port, place.keys, place.model, clock)
    run = Run(seed, seconds, client.ask, clock, lambda pause: asyncio.sleep(pause * scale))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_happen(place.fleet, cell.event, seconds * scale))
        await run.workload(cell.workload, cell.users)
    client.close()
    return run, client


def _play(place: Place, cell: Cell, seed: str, seconds: float, scale: float) -> Played:
    target, fleet = place.target, place.fleet
    assert target.server is not None
    fleet.control_all(reset=True, slow=1)
    if cell.event == "slow":
        fleet.control(_SECOND, slow=2)
    rows = target.rows() if target.rows is not None else 0
    cpu, began = target.server.cpu_seconds(), time.monotonic()
    run, client = uvloop.run(use(place, cell, seed, seconds, scale))
    spent = (target.server.cpu_seconds() - cpu) / (time.monotonic() - began)
    for complaint, count in client.complaints.items():
        print(f"{target.name}, {cell.name}: {count} times {complaint}", file=sys.stderr)
    counters = fleet.control_all()
    asked = [each.requests for each in counters]
    mean = max(sum(asked), 1) / len(asked)
    seen = [each for each in run.seen if _WARM * seconds <= each.at <= seconds]
    counted = (1 - _WARM) * seconds
    return Played(
        summary(seen, counted),
        summary([each for each in seen if each.tenant], counted),
        max(asked) / mean,
        asked[_SECOND] / mean,
        run.failures,
        client.sent,
        written(target, rows, client.sent),
        max(each.most_at_once for each in counters),
        spent,
    )


def _of(runs: Sequence[Played], figure: Callable[[Played], float]) -> float:
    return median(map(figure, runs))


def _first_text(runs: Sequence[Played], part: Callable[[Played], Summary]) -> str:
    figures: tuple[Callable[[Summary], float], ...] = (
        lambda found: found.p50,
        lambda found: found.p90,
        lambda found: found.p99,
    )
    return " / ".join(f"{median(each(part(run)) for run in runs):.0f}" for each in figures)


def _cell_table(cell: Cell, by_gateway: dict[str, list[Played]]) -> str:
    is_fair = cell.workload == "fair"
    columns = ["gateway", "cached of possible", "first text p50 / p90 / p99 ms", "tokens/s"]
    columns += ["of the talkers"] if is_fair else []
    columns += ["spread", "second", "failures", "rows / requests", "most at once", "cores"]
    lines = []
    for name, runs in by_gateway.items():
        rows = [run.rows for run in runs if run.rows is not None]
        lines.append(
            [
                name,
                f"{_of(runs, lambda run: run.all.cached / max(run.all.ideal, 1e-9)):.0%}",
                _first_text(runs, lambda run: run.all),
                f"{_of(runs, lambda run: run.all.output):.0f}",
                *([_first_text(runs, lambda run: run.others)] if is_fair else []),
                f"{_of(runs, lambda run: run.spread):.2f}",
                f"{_of(runs, lambda run: run.second):.2f}",
                str(sum(run.failures for run in runs)),
                f"{sum(rows)} / {sum(run.sent for run in runs)}" if rows else "-",
                str(max(run.most_at_once for run in runs)),
                f"{_of(runs, lambda run: run.cores):.2f}",
            ]
        )
    return table(cell.name, columns, lines)


def _goals(seen: dict[str, list[Played]]) -> list[Goal]:
    """What holds of svc in every cell, whatever the machine does."""
    svc = [run for name, runs in seen.items() if name.startswith("svc") for run in runs]
    if not svc:
        return []
    rows, sent = sum(run.rows or 0 for run in svc), sum(run.sent for run in svc)
    most = max(run.most_at_once for run in svc)
    return [
        Goal("svc: rows equal requests", f"{rows} / {sent}", "equal", rows == sent),
        Goal("svc: most requests at once at a server", str(most), f"<= {SLOTS}", most <= SLOTS),
    ]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.placement")
    parser.add_argument("--cells", default=_CELLS)
    parser.add_argument(
        "--gateways", default="", help="only those whose names begin so, with commas between"
    )
    parser.add_argument("--seeds", default="101,202,303", help="of the rounds, in turn")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0, help="the model's, of each run")
    parser.add_argument("--scale", type=float, default=2.0, help="real seconds of a model's second")
    return parser.parse_args()


def main() -> None:
    given = _arguments()
    cells = [Cell(name) for name in given.cells.split(",")]
    names = [name for name in NAMES if name.startswith(tuple(given.gateways.split(",")))]
    reasons = {name: missing(name) for name in names}
    stop_on_sigterm()
    print(heading())
    for name, reason in reasons.items():
        if reason:
            print(f"**LEFT OUT: {name}, because {reason}.**")
    seeds = given.seeds.split(",")
    seen: dict[str, dict[str, list[Played]]] = {cell.name: {} for cell in cells}
    with running_bench() as bench:
        all_places = list(
            places(bench, [name for name in names if not reasons[name]], modelled(given.scale))
        )
        for number in range(given.rounds):
            for cell in cells:
                for place in all_places:
                    seed = seeds[number % len(seeds)]
                    played = _play(place, cell, seed, given.seconds, given.scale)
                    seen[cell.name].setdefault(place.target.name, []).append(played)
                    print(
                        f"{cell.name} seed {seed}, {place.target.name}: {played}, "
                        f"load average {os.getloadavg()[0]:.1f}",
                        file=sys.stderr,
                        flush=True,
                    )
    goals = []
    for cell in cells:
        print(_cell_table(cell, seen[cell.name]))
    everything = {
        f"{name}, {cell.name}": runs for cell in cells for name, runs in seen[cell.name].items()
    }
    goals = _goals(everything)
    if goals:
        print(goals_table(goals))
    print(f"Load average at the end: {os.getloadavg()[0]:.1f}.")


if __name__ == "__main__":
    main()
