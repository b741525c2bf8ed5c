"""``python -m benchmarks.servers``: a chat by ``serve`` (uvicorn) and by ``runserver`` (Daphne), in turns.

Prints a Markdown table of medians; docs/decisions/0012 rests on it.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from benchmarks.gateway import Serving, gateway, stub_catalog
from benchmarks.load import Load, Plan
from benchmarks.payloads import Pace
from benchmarks.processes import Server, free_port, load
from benchmarks.tables import table

ROUNDS = 4
SECONDS = 4.0
CONCURRENCY = 32


def main() -> None:
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="svc-bench-")))
        port = free_port()
        stub = Server(["-m", "benchmarks.stub", "--port", str(port)], port, directory / "stub.log")
        stack.callback(stub.stop)
        gateways = {}
        for name, development in (("uvicorn (serve)", False), ("Daphne (runserver)", True)):
            place = directory / ("runserver" if development else "serve")
            place.mkdir()
            database = f"sqlite:///{place}/svc.sqlite3"
            gateways[name] = stack.enter_context(
                gateway(place, database, stub_catalog(port), Serving(development=development))
            )
        found: dict[str, list[tuple[Load, float]]] = {name: [] for name in gateways}
        for number in range(ROUNDS + 1):
            for name, each in gateways.items():
                before = each.server.cpu_seconds()
                result = load(Plan(each.server.port, each.key, Pace.EACH, CONCURRENCY, SECONDS))
                spent = each.server.cpu_seconds() - before
                if number:  # the first round warms up
                    found[name].append((result, 1e6 * spent / result.requests))
        lines = [
            [
                name,
                f"{median(each.requests / each.seconds for each, _ in runs):.0f}",
                f"{median(cost for _, cost in runs):.0f}",
                f"{median(each.p50_ms for each, _ in runs):.1f}",
            ]
            for name, runs in found.items()
        ]
        header = ["Server", "chats a second", "CPU of the gateway, us a chat", "p50, ms"]
        print(table("Servers", header, lines))


if __name__ == "__main__":
    main()
