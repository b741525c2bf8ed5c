"""``python -m benchmarks.placement.llama [--servers 2] [--users 6]``: real llama.cpp servers.

svc and nginx take turns, each in front of servers of its own that keep prompts, with the same conversations
(``small``). The weights say one text, and compute as long as others of ``--width`` and ``--layers``.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Final

import uvloop

from benchmarks.__main__ import heading
from benchmarks.bench import running_bench
from benchmarks.placement.__main__ import Cell, use
from benchmarks.placement.engine import TOKEN_BYTES
from benchmarks.placement.gateways import NGINX, Kind, Place, places
from benchmarks.placement.workloads import Run, Seen
from benchmarks.processes import stop_on_sigterm
from benchmarks.tables import table, written
from tests.real.servers.llama_process import SLOTS
from tests.real.servers.weights import write_speaker

_NAMES: Final = (NGINX, "svc 1 worker")
_SAYS: Final = "The ledger has a row for each request, and what it says is what the server counted."


def _later(each: Seen) -> bool:
    """Whether most of a prompt was sent before; ``ideal`` counts four bytes as a token, llama.cpp one."""
    return each.ideal * TOKEN_BYTES > each.prompt / 2


def _milliseconds(seen: Sequence[Seen]) -> str:
    first = sorted(each.first * 1000 for each in seen) or [0.0]
    return f"{first[len(first) // 2]:.0f} / {first[int(len(first) * 0.9)]:.0f}"


def _line(name: str, runs: Sequence[Run], rows: str) -> list[str]:
    seen = [each for run in runs for each in run.seen]
    later = [each for each in seen if _later(each)]
    return [
        name,
        str(len(seen)),
        f"{sum(each.cached for each in later) / max(sum(each.prompt for each in later), 1):.0%}",
        _milliseconds([each for each in seen if not _later(each)]),
        _milliseconds(later),
        str(sum(run.failures for run in runs)),
        rows,
    ]


def _play(place: Place, cell: Cell, seed: str, seconds: float) -> tuple[Run, int, int]:
    """Run the users; return what they saw, the rows that it brought, and the requests."""
    rows = place.target.rows() if place.target.rows is not None else 0
    run, client = uvloop.run(use(place, cell, seed, seconds, 1.0))
    return run, written(place.target, rows, client.sent) or 0, client.sent


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.placement.llama")
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--users", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each run")
    parser.add_argument("--seeds", default="101,202,303", help="one for each round")
    parser.add_argument("--width", type=int, default=128, help="of the weights")
    parser.add_argument("--layers", type=int, default=4, help="of the weights")
    given = parser.parse_args()
    stop_on_sigterm()
    print(heading())
    cell, lines = Cell(f"small:{given.users}"), []
    with running_bench() as bench:
        weights = bench.directory / "weights.gguf"
        write_speaker(weights, _SAYS, given.width, given.layers)
        arguments = ["-m", "tests.real.servers.llama_process", str(weights)]
        started = list(places(bench, _NAMES, Kind(given.servers, arguments, SLOTS, "auto")))
        found: dict[str, list[tuple[Run, int, int]]] = {each.target.name: [] for each in started}
        for seed in given.seeds.split(","):
            for place in started:
                found[place.target.name].append(_play(place, cell, seed, given.seconds))
    for name, runs in found.items():
        rows = f"{sum(run[1] for run in runs)} / {sum(run[2] for run in runs)}"
        lines.append(_line(name, [run for run, _, _ in runs], "-" if name == NGINX else rows))
    columns = [
        "gateway",
        "answers",
        "cached of later turns",
        "first text of first turns, p50 / p90 ms",
    ]
    columns += ["of later turns", "failures", "rows / requests"]
    print(table(f"llama.cpp, {given.servers} servers, {given.users} users", columns, lines))
    print(f"Load average at the end: {os.getloadavg()[0]:.1f}.")


if __name__ == "__main__":
    main()
