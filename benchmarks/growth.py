"""``python -m benchmarks.growth``: how the usage API's reads grow with the ledger, on PostgreSQL.

``fill --rows N NAME`` makes a database of that name on ``SVC_TEST_DATABASE_URL``'s server, migrates it with
this tree and fills it (the rows that ``benchmarks.usage`` measures; about 900 bytes each with indexes).
``measure NAME [NAME ...] [--before TREE] [--only READING]`` queries each of them in turns, with this
tree and an older checkout, and prints a Markdown table of medians.
``write NAME`` measures the cost of the index ``usage_by_key`` per row.
``drop NAME``. The last result is in docs/measurements/usage.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import psycopg
from psycopg import sql

from benchmarks.processes import ROOT
from benchmarks.tables import table

_RARE_KEY = "00000001-0000-03e7-0000-000000000000"
_PROBE = Path(__file__).with_name("growth_probe.py")


def _server() -> str:
    address = os.environ.get("SVC_TEST_DATABASE_URL")
    if address is None:
        raise SystemExit("Set SVC_TEST_DATABASE_URL to a postgres:// address.")
    return address


def _address(name: str) -> str:
    return f"{_server().rpartition('/')[0]}/{name}"


def fill(name: str, count: int) -> None:
    """Create the database with ``count`` rows of one organization."""
    with psycopg.connect(_server(), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    os.environ.update(DATABASE_URL=_address(name), DJANGO_SETTINGS_MODULE="svc_project.settings")
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    from accounts.models import Organization
    from benchmarks import ledger

    ids = [str(Organization.objects.create(name=each).pk) for each in ("bench", "other", "third")]
    began = time.monotonic()
    ledger.fill(ids[0], ids[1:], count)
    print(f"{count:,} rows in {time.monotonic() - began:.0f} s")


def drop(name: str) -> None:
    """Drop the database."""
    with psycopg.connect(_server(), autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def measure(names: list[str], before: Path | None, rounds: int, only: str) -> None:
    """Print the time of each reading in each database, with each tree."""
    trees = {**({"before": before} if before else {}), "now": ROOT}
    found: dict[str, dict[str, list[float]]] = {}
    columns = []
    for name in names:
        arguments, count = _arguments(name)
        columns += [f"{count:,} rows, {tree}" for tree in trees]
        # Sum the days as upkeep does; an older tree ignores them.
        _run(
            ROOT,
            name,
            "-c",
            "import django; django.setup(); from usage.queries import days; days.sum_closed_days()",
        )
        for _ in range(rounds):
            for tree, path in trees.items():
                answer = json.loads(_run(path, name, str(_PROBE), *arguments, only))
                for reading, value in answer.items():
                    taken = found.setdefault(reading, {})
                    taken.setdefault(f"{count:,} rows, {tree}", []).append(value)
    lines = [
        (reading, *(f"{median(taken[column]):,.0f}" for column in columns))
        for reading, taken in found.items()
    ]
    print(
        f"Load average at the end: {os.getloadavg()[0]:.1f}. Medians of {rounds} rounds in turns.\n"
    )
    print(table("Growth", ["", *columns], lines))


def write(name: str, rounds: int = 7, many: int = 20_000) -> None:
    """Print the time to insert a row with and without the index by key, in turns."""
    taken: dict[str, list[float]] = {"without": [], "with": []}
    with psycopg.connect(_address(name), autocommit=True) as connection:
        for kind in taken:
            connection.execute(f"DROP TABLE IF EXISTS growth_{kind}")
            connection.execute(
                f"CREATE TABLE growth_{kind} (LIKE usage_usagerow INCLUDING CONSTRAINTS)"
            )
            connection.execute(
                f"ALTER TABLE growth_{kind} ADD PRIMARY KEY (request_id, organization_id)"
            )
            connection.execute(
                f"CREATE INDEX ON growth_{kind} (organization_id, occurred_at, request_id)"
            )
        connection.execute("CREATE INDEX ON growth_with (api_key_id, occurred_at)")
        for round_ in range(rounds):
            for kind, times in taken.items():
                began = time.perf_counter()
                connection.execute(
                    f"INSERT INTO growth_{kind} SELECT * FROM usage_usagerow"
                    f" ORDER BY request_id OFFSET {round_ * many} LIMIT {many}"
                )
                times.append((time.perf_counter() - began) * 1e6 / many)
        for kind in taken:
            connection.execute(f"DROP TABLE growth_{kind}")
    plain, indexed = median(taken["without"]), median(taken["with"])
    print(f"us a row: without {plain:.1f}, with {indexed:.1f}, ratio {indexed / plain:.2f}")


def _arguments(name: str) -> tuple[list[str], int]:
    """The probe's arguments, and the organization's number of rows."""
    with psycopg.connect(_address(name)) as connection:
        row = connection.execute(
            "SELECT organization_id::text, sum(requests)::bigint, min(hour)::date::text,"
            " (max(hour)::date + 1)::text FROM usage_usagerollup GROUP BY 1 ORDER BY 2 DESC LIMIT 1"
        ).fetchone()
    assert row is not None
    organization_id, count, start, end = row
    moments = [f"{day}T00:00:00+00:00" for day in (start, end)]
    return [organization_id, _RARE_KEY, *moments, str(count)], count


def _run(tree: Path, name: str, *arguments: str) -> str:
    environment: dict[str, Any] = {
        **os.environ,
        "DATABASE_URL": _address(name),
        "DJANGO_SETTINGS_MODULE": "svc_project.settings",
        "LOG_LEVEL": "WARNING",
    }
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=tree,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth")
    parser.add_argument("command", choices=("fill", "measure", "write", "drop"))
    parser.add_argument("names", nargs="+", metavar="NAME")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--before", type=Path, metavar="TREE")
    parser.add_argument("--only", default="", help="only readings whose name begins so")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    match arguments.command:
        case "measure":
            measure(arguments.names, arguments.before, arguments.rounds, arguments.only)
        case command:
            for name in arguments.names:
                if command == "fill":
                    fill(name, arguments.rows)
                elif command == "write":
                    write(name)
                else:
                    drop(name)


if __name__ == "__main__":
    main()
