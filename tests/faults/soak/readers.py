"""Readers that follow ``next_cursor`` beside writers of unequal batches, on PostgreSQL.

    DATABASE_URL=postgres://... python -m tests.faults.soak.readers [--minutes 60] [--round-trip-ms 1]

Run by hand. It makes a database of its own on that server and drops it. Each reader and each writer is
a process; readers, and writers of single rows, are a round trip away from the database. Writers are
killed now and then, and one process closes the requests that others leave behind. Then every reader
reads to the end, and the ids that it was given are compared with the ledger: the exit status is 1 when
one is missing, or was given to a reader that did not ask for its page twice.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import django
import psycopg
from django.core.management import call_command
from django.db import connection, connections

from tests.support.servers.tcp_proxy import FaultProxy

ORGANIZATION: Final = "5bb2f3a4-7a83-4b1c-9d7e-0d8f4d5a9e11"
NEIGHBOUR: Final = "0e0c3b9d-26a5-4a55-8f57-5f4a3a1f6c02"

ROLES: Final = ("backlog", "single", "single", "single", "leaving", "closing")
"""Who writes: batches of 200 rows of which one is the readers', single rows, requests that are admitted
and never ended, and the process that closes those."""

LIMITS: Final = (10, 100)
"""The page of each reader."""

_TICK: Final = 0.05
_KILLS_EVERY: Final = (2.0, 6.0)


def main() -> int:
    options = _options()
    with (
        _database() as address,
        _distant(address, options.round_trip_ms / 1000) as port,
        tempfile.TemporaryDirectory(prefix="svc-readers-") as folder,
    ):
        run = _Run(Path(folder), port)
        kills = run.play(options.minutes * 60, random.Random(options.seed))
        return _report(Path(folder), kills, address)


class _Run:
    """The processes of a run, forked from this one, which has no connection to the database.

    ``folder``: where each reader notes what it was given. ``port``: of the distant database.
    """

    def __init__(self, folder: Path, port: int) -> None:
        self._folder, self._port = folder, port
        self._stop = folder / "stop"

    def play(self, seconds: float, dice: random.Random) -> int:
        """Let them write, read and die for ``seconds``; return how many writers were killed."""
        readers = [self._start(_read, self._port, limit, self._folder) for limit in LIMITS]
        writers = [self._writer(role) for role in ROLES]
        deadline, kills = time.monotonic() + seconds, 0
        while (left := deadline - time.monotonic()) > 0:
            time.sleep(min(dice.uniform(*_KILLS_EVERY), left))
            if not all(process.is_alive() for process in (*readers, *writers)):
                raise SystemExit("a process failed")
            number = dice.randrange(len(writers))
            writers[number].kill()
            writers[number].join()
            writers[number] = self._writer(ROLES[number])
            kills += 1
        for process in writers:
            process.kill()
            process.join()
        self._stop.touch()
        for process in readers:
            process.join(120)
            if process.exitcode:
                raise SystemExit("a reader failed")
        return kills

    def _writer(self, role: str) -> BaseProcess:
        return self._start(_write, self._port if role == "single" else None, role)

    @staticmethod
    def _start(work: Callable[..., None], port: int | None, *arguments: object) -> BaseProcess:
        process = multiprocessing.get_context("fork").Process(
            target=_work, args=(work, port, arguments)
        )
        process.start()
        return process


def _work(work: Callable[..., None], port: int | None, arguments: tuple[object, ...]) -> None:
    if port is not None:
        connection.settings_dict |= {"HOST": "127.0.0.1", "PORT": port}
    work(*arguments)


def _report(folder: Path, kills: int, address: str) -> int:
    with psycopg.connect(address) as link:
        stored = {
            row[0]
            for row in link.execute(
                "SELECT request_id FROM usage_usagerow WHERE organization_id = %s", [ORGANIZATION]
            )
        }
    wrong = 0
    print(f"{len(stored)} rows, {kills} writers killed")
    for limit in LIMITS:
        given = (folder / f"{limit}.ids").read_text().split()
        missed = stored - set(given)
        wrong += len(missed) + len(given) - len(set(given))
        print(f"pages of {limit}: {len(missed)} missed, {len(given) - len(set(given))} given twice")
        for each in sorted(missed)[:20]:
            print(f"  {each}")
    return int(wrong > 0 or not stored)


@contextmanager
def _database() -> Iterator[str]:
    """Make a migrated database on the server of ``DATABASE_URL``; yield its address."""
    server = os.environ["DATABASE_URL"]
    name = f"svc_soak_readers_{os.getpid()}"
    address = urlsplit(server)._replace(path=f"/{name}").geturl()
    with psycopg.connect(server, autocommit=True) as link:
        link.execute(f"CREATE DATABASE {name}")
        try:
            os.environ["DATABASE_URL"] = address
            os.environ.setdefault("DJANGO_SETTINGS_MODULE", "svc_project.settings")
            import tests.support.environment  # noqa: F401  # before Django reads its settings

            django.setup()
            call_command("migrate", verbosity=0)
            connections.close_all()
            yield address
        finally:
            link.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def _distant(address: str, round_trip: float) -> Iterator[int]:
    """Yield the port of a proxy to the database that is ``round_trip`` seconds farther away."""
    place = urlsplit(address)
    with FaultProxy(place.port or 5432, place.hostname or "127.0.0.1") as proxy:
        if round_trip:
            proxy.delay(round_trip)
        yield proxy.port


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--round-trip-ms", type=float, default=1)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def _read(limit: int, folder: Path) -> None:
    """Follow ``next_cursor`` until the run ends, then to the last page; note each id once given."""
    from core import clock  # after Django's setup
    from core.errors import ServerOverloaded
    from usage.api.export import complete_page
    from usage.queries.cursors import Cursor
    from usage.queries.periods import Period
    from usage.queries.selection import Filters

    day = timedelta(days=1)
    period = Period(clock.now() - day, clock.now() + day)
    after: Cursor | None = None
    given: list[str] = []
    while True:
        is_over = (folder / "stop").exists()
        try:
            page = complete_page(ORGANIZATION, period, Filters(), limit, after)
        except ServerOverloaded:
            continue
        last_page = [str(row["request_id"]) for row in page.rows]
        if page.next_cursor is not None:
            given += last_page
            after = page.next_cursor
        elif is_over:
            break
        else:
            time.sleep(_TICK)  # its rows come again
    (folder / f"{limit}.ids").write_text("\n".join([*given, *last_page]))


def _write(role: str) -> None:
    """Write until killed."""
    from tests.support.builders.receipts import receipt
    from usage.ledger import rows
    from usage.ledger.admissions import NewAdmissions, OwnerLease
    from usage.ledger.orphans import close_in_steps

    def backlog() -> None:
        ours = receipt(organization_id=ORGANIZATION)
        rows.insert([ours, *(receipt(organization_id=NEIGHBOUR) for _ in range(199))])
        time.sleep(5 * pause)

    def single() -> None:
        rows.insert([receipt(organization_id=ORGANIZATION)])
        time.sleep(pause)

    def leaving() -> None:
        lease = OwnerLease(1)
        lease.extend()
        left = [receipt(organization_id=ORGANIZATION) for _ in range(3)]
        rows.insert_with_admissions((), NewAdmissions(left, lease))
        time.sleep(0.5)

    closer = OwnerLease(1)

    def closing() -> None:
        closer.extend()
        for _ in close_in_steps(closer, lambda: None):
            pass
        time.sleep(0.1)

    pause = 0.01
    turn: Callable[[], None] = locals()[role]
    while True:
        turn()


if __name__ == "__main__":
    sys.exit(main())
