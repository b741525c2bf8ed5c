"""``python -m benchmarks.revocation DATABASE_URL CHECKOUT ...``: what the revocation of one key costs.

Makes a database for each checkout on the PostgreSQL server of the address, with ``--keys`` keys (50 000), and
drops it at the end. Two processes authenticate ``--busy`` of the keys (2 000), each once a second, while
keys are revoked. Prints medians: statements in each process within a second of a revocation beyond those
of the second before, the time until the key is refused, the slowest authentication meanwhile, the time
that a process takes to begin, and the memory that the keys take in it. Rounds of the checkouts alternate.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import psycopg

from benchmarks.tables import table

PROBE: Final = Path(__file__).with_name("revocation_probe.py")
COLUMNS: Final = {
    "statements": "{:.0f}",
    "refused_ms": "{:.0f}",
    "slowest_ms": "{:.1f}",
    "authenticate_us": "{:.2f}",
    "start_s": "{:.2f}",
    "memory_mb": "{:.1f}",
}


def run(checkout: Path, url: str, *words: str) -> str:
    """Run the probe in ``checkout``; return what it prints."""
    environment = {
        **os.environ,
        "DATABASE_URL": url,
        "DJANGO_SETTINGS_MODULE": "svc_project.settings",
        "SVC_KEY_PEPPERS": "benchmark",
        "SECRET_KEY": "benchmark" * 8,
    }
    done = subprocess.run(
        [sys.executable, *words], cwd=checkout, env=environment, check=True, stdout=subprocess.PIPE
    )
    return done.stdout.decode()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.revocation")
    parser.add_argument("database")
    parser.add_argument("checkouts", nargs="+", type=Path)
    parser.add_argument("--keys", type=int, default=50_000)
    parser.add_argument("--busy", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    names = [f"svc_revocation_{number}" for number in range(len(arguments.checkouts))]
    found: list[dict[str, list[float]]] = [defaultdict(list) for _ in names]
    with psycopg.connect(arguments.database, autocommit=True) as server:
        urls = [urlunsplit(urlsplit(arguments.database)._replace(path=name)) for name in names]
        try:
            for checkout, url, name in zip(arguments.checkouts, urls, names, strict=True):
                server.execute(f"DROP DATABASE IF EXISTS {name}")
                server.execute(f"CREATE DATABASE {name}")
                run(checkout, url, "manage.py", "migrate", "-v0")
                run(checkout, url, str(PROBE), "fill", str(arguments.keys))
            for turn in range(arguments.rounds):
                targets = list(zip(arguments.checkouts, urls, found, strict=True))
                for checkout, url, results in targets if turn % 2 else reversed(targets):
                    for line in run(
                        checkout, url, str(PROBE), "measure", str(arguments.busy)
                    ).splitlines():
                        for name, value in json.loads(line).items():
                            results[name].append(value)
        finally:
            for name in names:
                server.execute(f"DROP DATABASE IF EXISTS {name}")
    rows = [
        [str(checkout), *(form.format(median(results[name])) for name, form in COLUMNS.items())]
        for checkout, results in zip(arguments.checkouts, found, strict=True)
    ]
    print(table("A revocation among many keys", ["checkout", *COLUMNS], rows))


if __name__ == "__main__":
    main()
