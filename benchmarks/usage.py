"""``python -m benchmarks.usage [--rows N] [--quick]``: measures the usage API on PostgreSQL.

Needs ``SVC_TEST_DATABASE_URL`` (a postgres:// address); creates a database there and drops it. Prints
a Markdown table. The last result is in docs/measurements/usage.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlencode

import django

from benchmarks.gateway import manage, postgresql
from benchmarks.processes import Server, free_port
from benchmarks.tables import table

Row = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Reader:
    """A client with a read key of the organization that has the rows."""

    server: Server
    key: str
    organization_id: str
    period: dict[str, str]

    def ask(self, path: str, **parameters: Any) -> bytes:
        """Send a request; return the body of its answer."""
        return b"".join(self.blocks(path, **parameters))

    def blocks(self, path: str, **parameters: Any) -> Iterator[bytes]:
        client = HTTPConnection("127.0.0.1", self.server.port, timeout=600)
        query = urlencode({**self.period, **parameters})
        client.request("GET", f"{path}?{query}", headers={"authorization": f"Bearer {self.key}"})
        answer = client.getresponse()
        if answer.status != 200:
            raise SystemExit(answer.read().decode())
        while block := answer.read(1 << 18):
            yield block
        client.close()


@contextmanager
def gateway_with_rows(count: int) -> Iterator[Reader]:
    """Run a gateway on a database with ``count`` rows of one organization.

    Django of this process uses that database from then on.
    """
    address = os.environ.get("SVC_TEST_DATABASE_URL")
    if address is None:
        raise SystemExit("Set SVC_TEST_DATABASE_URL to a postgres:// address.")
    with (
        postgresql(address) as database,
        tempfile.TemporaryDirectory(prefix="svc-bench-") as name,
    ):
        environment = {"DATABASE_URL": database, "SVC_DATA_DIR": name, "LOG_LEVEL": "WARNING"}
        os.environ.update(environment, DJANGO_SETTINGS_MODULE="svc_project.settings")
        django.setup()
        from benchmarks import ledger

        manage(environment, "migrate", "-v0")
        ids = [
            json.loads(manage(environment, "create_organization", name, "--json"))[
                "organization_id"
            ]
            for name in ("bench", "other", "third")
        ]
        ledger.fill(ids[0], ids[1:], count)
        key = json.loads(manage(environment, *["create_key", "bench", "--scope", "read", "--json"]))
        port, speech_port = free_port(), free_port()
        server = Server(
            ["manage.py", "serve", "--port", str(port), "--speech-port", str(speech_port)],
            port,
            Path(name) / "gateway.log",
            environment,
        )
        span = ledger.span()
        period = {"start": f"{span.start:%Y-%m-%d}", "end": f"{span.end:%Y-%m-%d}"}
        try:
            yield Reader(server, key["key"], ids[0], period)
        finally:
            server.stop()
            django.db.connections.close_all()


def _milliseconds(rounds: int, ask: Callable[[], object]) -> str:
    """The median time of ``rounds``, after one run to warm up."""
    ask()
    taken = []
    for _ in range(rounds):
        began = time.perf_counter()
        ask()
        taken.append((time.perf_counter() - began) * 1000)
    return f"{median(taken):.0f} ms"


def _summaries(reader: Reader, rounds: int) -> Iterator[Row]:
    for bucket in ("day", "hour"):
        yield (
            f"summary, all three breakdowns, 93 days by {bucket}",
            _milliseconds(
                rounds,
                lambda bucket=bucket: reader.ask(  # type: ignore[misc]  # bound per loop
                    "/v1/usage", group_by="model,api_key,time", bucket=bucket
                ),
            ),
            "100 ms",
        )


def _pages(reader: Reader, rounds: int) -> Iterator[Row]:
    from benchmarks import ledger
    from usage.queries import cursors

    last = cursors.encode(ledger.position(reader.organization_id, 10_000))
    asked: tuple[tuple[str, dict[str, Any]], ...] = (
        ("first JSON page of 10 000", {}),
        ("last JSON page of 10 000", {"cursor": last}),
        ("JSON page of a key with a row in 1000", {"api_key_id": ledger.RARE_KEY}),
    )
    for name, parameters in asked:

        def ask(parameters: dict[str, Any] = parameters) -> None:
            rows = json.loads(reader.ask("/v1/usage/export", limit=10_000, **parameters))["rows"]
            assert rows

        yield name, _milliseconds(rounds, ask), "500 ms"


def _csv(reader: Reader, count: int, rounds: int) -> Iterator[Row]:
    before = most = reader.server.resident_megabytes()
    rates, firsts = [], []
    for _ in range(rounds):
        began = time.perf_counter()
        lines = 0
        for number, block in enumerate(reader.blocks("/v1/usage/export", format="csv")):
            if number == 0:
                firsts.append((time.perf_counter() - began) * 1000)
            lines += block.count(b"\n")
            if number % 20 == 0:
                most = max(most, reader.server.resident_megabytes())
        assert lines == count + 1, lines
        rates.append(count / (time.perf_counter() - began))
    yield "CSV of everything, rows a second", f"{median(rates):,.0f}", "100 000"
    yield "CSV, first block", f"{median(firsts):.0f} ms", ""
    yield "CSV, growth of the gateway's memory", f"{most - before:.0f} MB", "50 MB"


def _commits(reader: Reader, rounds: int) -> Iterator[Row]:
    from benchmarks import ledger

    for batch in (1, 32):
        bare, rolled = ledger.commit_milliseconds(reader.organization_id, batch, rounds)
        yield f"commit of {batch} rows without roll-ups", f"{bare:.2f} ms", ""
        added = (rolled - bare) * 1000 / batch
        yield f"commit of {batch} rows with roll-ups", f"{rolled:.2f} ms", f"{added:+.0f} us a row"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.usage")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the organization")
    parser.add_argument("--quick", action="store_true", help="100 000 rows and fewer rounds")
    arguments = parser.parse_args()
    count = 100_000 if arguments.quick else arguments.rows
    rounds = 5 if arguments.quick else 20
    print(
        f"Python {platform.python_version()}, {os.cpu_count()} cores, one worker, "
        f"PostgreSQL on the same machine, {datetime.now(UTC):%Y-%m-%d}."
    )
    print(f"Load average at the start: {os.getloadavg()[0]:.1f}.\n", flush=True)
    with gateway_with_rows(count) as reader:
        from benchmarks import ledger

        print(f"{ledger.rollups(reader.organization_id):,} roll-ups.\n", flush=True)
        # Last, because it changes the ledger.
        found = [
            *_summaries(reader, rounds),
            *_csv(reader, count, 3),
            *_pages(reader, min(rounds, 10)),
            *_commits(reader, rounds * 20),
        ]
    print(f"Load average at the end: {os.getloadavg()[0]:.1f}.\n")
    print(table(f"{count:,} rows over 93 days", ["", "median", "wanted"], found))


if __name__ == "__main__":
    main()
