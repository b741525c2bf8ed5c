"""``python -m benchmarks.ledger_rows [--quick]``: the cost of a row of the ledger on PostgreSQL.

Compares the writer with its former version: through Django's cursor, stamped by the worker's
clock, every writer adding to one roll-up. Both in turns in one run, medians. Needs
``SVC_TEST_DATABASE_URL`` (a postgres:// address); creates a database there and drops it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING

import django

from benchmarks.gateway import manage, postgresql
from benchmarks.tables import table

if TYPE_CHECKING:
    from usage.receipts import Receipt

Write = Callable[["Sequence[Receipt]"], object]
BATCHES = (1, 10, 50)
WORKERS = 4
TICK = os.sysconf("SC_CLK_TCK")


def _ways() -> dict[str, Write]:
    """The writers to compare; imported late, because Django must be set up first."""
    from usage.ledger import rows

    return {"before": _write_before, "now": rows.insert}


@cache
def _statement_before() -> str:
    from django.db import connection

    from usage.models.statements import CHAT, column_list

    types = ", ".join(
        f'"{field.attname}" {field.db_type(connection)}' for field in CHAT.rows._meta.local_fields
    )
    return (
        f'WITH inserted AS (INSERT INTO "{CHAT.row_table}" ({column_list(CHAT.columns)}) '
        f"SELECT {column_list(CHAT.columns)} FROM jsonb_to_recordset(%s::jsonb) AS receipt({types}) "
        f"ON CONFLICT ({column_list(CHAT.identity)}) DO NOTHING RETURNING *), "
        f"summed AS ({CHAT.add_to_sums('inserted')}) SELECT count(*) FROM inserted"
    )


def _write_before(receipts: Sequence[Receipt]) -> object:
    import msgspec
    from django.db import connection

    from core.clock import now
    from core.money import price_units
    from usage.models.statements import CHAT

    moment, values = now(), []
    for receipt in receipts:
        row = msgspec.structs.asdict(receipt) | {"occurred_at": moment}
        for name in CHAT.price_columns:
            row[name] = price_units(row[name])
        values.append(row)
    with connection.cursor() as cursor:
        cursor.execute(_statement_before(), [msgspec.json.encode(values).decode()])
        return cursor.fetchone()


def _receipts(count: int) -> list[Receipt]:
    from benchmarks.ledger import receipt

    return [receipt("00000000-0000-0000-0000-000000000001", 0) for _ in range(count)]


def _server_seconds(pid: int) -> float:
    """Processor time of a server process on this host; 0 if it runs elsewhere."""
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK
    return 0.0


def _cpu_table(rounds: int, rows_a_round: int) -> str:
    from django.db import connection

    ways = _ways()
    lines = []
    for size in BATCHES:
        client: dict[str, list[float]] = {name: [] for name in ways}
        server = dict.fromkeys(ways, 0.0)
        many = max(4, rows_a_round // size)
        for _ in range(rounds):
            for name, write in ways.items():
                batches = [_receipts(size) for _ in range(many)]
                write(_receipts(size))
                pid = connection.connection.info.backend_pid
                began, began_server = time.thread_time(), _server_seconds(pid)
                for batch in batches:
                    write(batch)
                client[name].append((time.thread_time() - began) / many / size * 1e6)
                server[name] += (_server_seconds(pid) - began_server) / many / size * 1e6 / rounds
        old, new = median(client["before"]), median(client["now"])
        lines.append(
            (
                str(size),
                f"{old:.0f}",
                f"{new:.0f}",
                f"{new / old:.2f}",
                f"{server['before']:.0f}",
                f"{server['now']:.0f}",
            )
        )
    return table(
        "Processor time of a row, one writer",
        ("Rows in a batch", "worker, before (us)", "now", "ratio", "server, before (us)", "now"),
        lines,
    )


def _work() -> None:
    """Run a worker: for each line ``way size seconds`` write for that time and print the rows a second."""
    ways = _ways()
    for write in ways.values():
        write(_receipts(1))
    print("ready", flush=True)
    for line in sys.stdin:
        way, size, seconds = line.split()
        done, began = 0, time.monotonic()
        while time.monotonic() < began + float(seconds):
            ways[way](_receipts(int(size)))
            done += int(size)
        print(done / (time.monotonic() - began), flush=True)


@contextmanager
def _workers() -> Iterator[Callable[[str, int, float], float]]:
    """Start the workers; yield a function that runs all at once and returns their total rows a second."""
    arguments = [sys.executable, "-m", "benchmarks.ledger_rows", "--worker"]
    with ExitStack() as stack:
        links: list[tuple[IO[str], IO[str]]] = []
        for _ in range(WORKERS):
            worker = stack.enter_context(
                subprocess.Popen(
                    arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
            )
            assert worker.stdin is not None
            assert worker.stdout is not None
            links.append((worker.stdin, worker.stdout))
        for _, answers in links:
            answers.readline()

        def together(way: str, size: int, seconds: float) -> float:
            for orders, _ in links:
                orders.write(f"{way} {size} {seconds}\n")
                orders.flush()
            return sum(float(answers.readline()) for _, answers in links)

        yield together


def _workers_table(rounds: int, seconds: float) -> str:
    lines = []
    with _workers() as together:
        for size in (1, 10):
            found: dict[str, list[float]] = {name: [] for name in _ways()}
            for _ in range(rounds):
                for name, rates in found.items():
                    rates.append(together(name, size, seconds))
            old, new = median(found["before"]), median(found["now"])
            lines.append((str(size), f"{old:.0f}", f"{new:.0f}", f"{new / old:.2f}"))
    title = f"{WORKERS} workers that share one roll-up"
    return table(title, ("Rows in a batch", "rows/s, before", "now", "ratio"), lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ledger_rows")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    os.environ["DJANGO_SETTINGS_MODULE"] = "svc_project.settings"
    if arguments.worker:
        django.setup()
        _work()
        return
    rounds, many, seconds = (3, 100, 1.5) if arguments.quick else (9, 400, 4.0)
    with (
        TemporaryDirectory(prefix="svc-bench-") as directory,
        postgresql(os.environ["SVC_TEST_DATABASE_URL"]) as address,
    ):
        os.environ |= {"SVC_DATA_DIR": directory, "DATABASE_URL": address}
        manage({}, "migrate", "-v0")
        django.setup()
        from django.db import connections

        print(_cpu_table(rounds, many), flush=True)
        connections.close_all()
        print(_workers_table(rounds, seconds))


if __name__ == "__main__":
    main()
