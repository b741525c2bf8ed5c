"""Measures a tenant's requests while attackers run, and prints the results.

    python -m tests.resilience.neighbours [--attacker NAME ...] [--seconds N] [--before N]
        [--database sqlite|postgresql] [--workers N] [--together] [--write]

Run by hand; it makes everything that it needs (a directory, a PostgreSQL cluster by ``initdb``, a
redis-server where there are several workers, a model simulator, a gateway, organizations and keys) and
removes it. Without ``--attacker`` it runs the twelve that docs/measurements/neighbours.md shows, one after
the other and then all at once as one tenant; ``--write`` puts the tables into that page. The exit status is 1
when the victim saw an error.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import django

from tests.resilience.attackers import NAMED
from tests.resilience.measuring.bounds import SETTINGS
from tests.support.servers.ends import end_on_sigterm
from tests.support.servers.own_servers import Postgresql, Redis

if TYPE_CHECKING:
    from tests.resilience.measuring.measure import Attack

_AUTOGROUP = Path("/proc/sys/kernel/sched_autogroup_enabled")
_ROWS = 60_000
"""Rows of an attacker's ledger: a download of 20 MB."""


@contextmanager
def environment(database: str, workers: int) -> Iterator[Path]:
    """A directory, and the settings of a gateway whose data is all in it."""
    directory = Path(tempfile.mkdtemp(prefix="svc-neighbours-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        (directory / "data").mkdir()
        (directory / "tmp").mkdir()
        url = f"sqlite:///{directory}/svc.sqlite3"
        if database == "postgresql":
            postgresql = Postgresql(directory)
            stack.callback(postgresql.stop)
            url = postgresql.url
        if workers > 1:
            redis = Redis(directory)
            stack.callback(redis.kill)
            redis.start()
            os.environ["REDIS_URL"] = redis.url
        os.environ.update(
            SETTINGS,
            DATABASE_URL=url,
            SVC_DATA_DIR=str(directory / "data"),
            TMPDIR=str(directory / "tmp"),
            DJANGO_SETTINGS_MODULE="svc_project.settings",
        )
        yield directory


def run(directory: Path, options: argparse.Namespace) -> bool:
    """Attack by attack; returns whether the victim saw no error."""
    from tests.resilience import tenants
    from tests.resilience.measuring import measure, table
    from tests.resilience.place import gateway
    from tests.resilience.programs import VictimProgram
    from tests.resilience.target import save

    names = tuple(options.attacker or NAMED)
    chosen: list[tuple[str, ...]] = [(name,) for name in names]
    if options.together:
        chosen = [names]
    elif not options.attacker:
        chosen.append(names)
    attacks: list[measure.Attack] = []
    load = os.getloadavg()[0]
    with ExitStack() as stack:
        if options.keep_log:
            stack.callback(shutil.copy, directory / "gateway.log", options.keep_log)
        place = stack.enter_context(gateway(directory, options.workers))
        new_keys = 4 * len(chosen) * int(options.seconds + options.before + 10)
        victim_organization, tenant = tenants.make_victim(new_keys)
        save(place.target(tenant), directory / "victim.json")
        with VictimProgram(directory / "victim.json") as victim:
            measure.quiet(victim, 1.0)
            for names in chosen:
                organization, attacker = tenants.make("attacker")
                tenants.fill_ledger(organization, victim_organization, _ROWS)
                path = directory / f"{'-'.join(names)[:60]}.json"
                save(place.target(attacker), path)
                before = measure.quiet(victim, options.before)
                found = measure.attack(
                    names, path, victim, before, place, options.seconds, idle=True
                )
                attacks.append(found)
                _say(found)
    setting = (
        f"Measured {datetime.now(tz=UTC):%Y-%m-%d}: {options.workers} workers on"
        f" {os.cpu_count()} cores, load average before {load:.1f}, {options.database},"
        f" {options.seconds:.0f} s each;"
        f" settings {', '.join(f'`{name}={value}`' for name, value in SETTINGS.items())}, the rest"
        f" as they are by default; {_autogroup()}."
    )
    written = table.tables(attacks, setting)
    print(f"\n{written}")
    if options.write:
        table.PAGE.write_text(table.with_tables(table.PAGE.read_text(), written))
    return not any(attack.whole.errors for attack in attacks)


def _autogroup() -> str:
    """Whether the kernel shares processors between sessions first (sched(7)), in words."""
    try:
        setting = _AUTOGROUP.read_text().strip()
    except OSError:
        setting = "0"
    return f"`kernel.sched_autogroup_enabled={setting}`"


def _say(attack: Attack) -> None:
    errors = Counter(attack.whole.errors)
    print(f"{'+'.join(attack.names)}: {attack.answers}", flush=True)
    print(f"  longest probe {attack.longest_probe * 1000:.0f} ms, {attack.taken}", flush=True)
    for error, count in errors.most_common(8):
        print(f"  {count} x {error}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--attacker", action="append", choices=NAMED)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each attack")
    parser.add_argument("--before", type=float, default=5.0, help="seconds of quiet before each")
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="postgresql")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--together", action="store_true", help="only all attackers at once")
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    parser.add_argument("--keep-log", metavar="FILE", help="copy the gateway's log there")
    options = parser.parse_args()
    end_on_sigterm()
    with environment(options.database, options.workers) as directory:
        django.setup()
        logging.getLogger("httpx2").setLevel(logging.WARNING)
        calm = run(directory, options)
    raise SystemExit(not calm)


if __name__ == "__main__":
    main()
