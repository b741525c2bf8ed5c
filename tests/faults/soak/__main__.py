"""Mixed load on a real gateway of two workers during faults; then the books are compared.

    python -m tests.faults.soak kills [--kills 200] [--database sqlite|postgresql]
    python -m tests.faults.soak faults [--minutes 20] [--only PART-OF-A-NAME] [--spare-one]
    python -m tests.faults.soak outage [--minutes 10]

Run by hand, as root (it mounts a disk of its own), with PostgreSQL's and Redis' programs; libfaketime
for wrong clocks. It creates and removes everything else. ``--spare-one`` leaves out faults that end
the oldest worker, whose memory and descriptors can then be followed over the whole run.
Prints a Markdown table and the oracle's findings: the exit status is 1 when a row was missing, doubled
or wrong, or a worker did not use the database again within five seconds of the end of the fault.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from statistics import quantiles
from typing import Final

import django

import tests.support.environment  # noqa: F401  # before Django reads its settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "svc_project.settings")
django.setup()

from tests.faults.soak.books import disagreements  # noqa: E402
from tests.faults.soak.faults import FAULTS, Fault, a_while, unreachable  # noqa: E402
from tests.faults.soak.load import Load  # noqa: E402
from tests.faults.soak.place import Place, place  # noqa: E402
from tests.faults.soak.watch import Watch, thirds  # noqa: E402
from tests.support.until import until  # noqa: E402

BACK_SECONDS: Final = 5.0
_PATIENCE: Final = 60.0
_CALM_SECONDS: Final = 5.0


def seconds_until_back(place: Place) -> float:
    """Wait until every worker uses the database and owes it no row; return the seconds."""

    def is_back() -> bool:
        up = place.figures("svc_ledger_database_up")
        return len(up) >= 2 and all(up) and not any(place.figures("svc_ledger_rows_owed"))

    began = time.monotonic()
    with suppress(AssertionError):
        until(is_back, _PATIENCE)
    return time.monotonic() - began


def p99(load: Load, since: float, end: float) -> float:
    """The 99th percentile of the probes that ended between two moments, in milliseconds."""
    took = [seconds for ended, seconds in load.probes if since <= ended < end]
    return 1000 * quantiles(took, n=100)[98] if len(took) > 1 else float("nan")


def kills(place: Place, load: Load, options: argparse.Namespace, dice: random.Random) -> list[str]:
    """Kill one worker or everything, at random instants of two workers that serve."""
    late = []
    for number in range(1, options.kills + 1):
        a_while(dice, 0.1, 1.5)
        if dice.random() < 0.8:
            place.kill_worker(dice.choice(place.workers))
            place.wait_for_workers()
        else:
            place.kill_all()
            place.start_gateway()
        back = seconds_until_back(place)
        if back > BACK_SECONDS:
            late.append(f"kill {number}: back after {back:.1f} s")
        if number % 10 == 0:
            cut = sum(not each.seen.complete and not each.left for each in load.chats)
            print(f"{number} kills, {len(load.chats)} chats, {cut} cut off", flush=True)
    return late


def faults(place: Place, load: Load, options: argparse.Namespace, dice: random.Random) -> list[str]:
    """Run each fault in turn, in a random order, with pauses between them."""
    database = "postgresql" if place.postgresql else "sqlite"
    chosen = [
        each
        for each in FAULTS
        if each.only in (None, database)
        and options.only in each.name
        and (place.clock is not None or not each.sets_clock)
        and not (options.spare_one and each.takes_all)
    ]
    late = []
    deadline = time.monotonic() + options.minutes * 60
    print(
        "| Fault | Back after, s | p99 before, ms | 5 to 10 s after | Chats |\n|---|---:|---:|---:|---:|"
    )
    while time.monotonic() < deadline:
        dice.shuffle(chosen)
        for fault in chosen:
            late += _one(place, load, fault, dice)
            if time.monotonic() > deadline:
                break
    return late


def _one(place: Place, load: Load, fault: Fault, dice: random.Random) -> list[str]:
    time.sleep(_CALM_SECONDS)
    before = time.monotonic()
    asked = len(load.chats)
    fault.run(place, dice)
    over = time.monotonic()
    back = seconds_until_back(place)
    time.sleep(max(0.0, over + 2 * _CALM_SECONDS - time.monotonic()))
    told = [
        p99(load, before - _CALM_SECONDS, before),
        p99(load, over + _CALM_SECONDS, over + 2 * _CALM_SECONDS),
    ]
    print(
        f"| {fault.name} | {back:.1f} | {told[0]:.0f} | {told[1]:.0f} | {len(load.chats) - asked} |",
        flush=True,
    )
    return [f"{fault.name}: back after {back:.1f} s"] if back > BACK_SECONDS else []


def outage(place: Place, load: Load, options: argparse.Namespace, dice: random.Random) -> list[str]:
    """Run one long outage of the database."""
    print(
        "| Fault | Back after, s | p99 before, ms | 5 to 10 s after | Chats |\n|---|---:|---:|---:|---:|"
    )
    fault = Fault(
        f"no database for {options.minutes:.0f} minutes", unreachable(options.minutes * 60)
    )
    return _one(place, load, fault, dice)


def summary(load: Load) -> str:
    """The number of requests by outcome."""
    chats = Counter(
        _ending(complete=each.seen.complete, told=each.seen.told) for each in load.chats
    )
    speeches = Counter(
        _ending(complete=each.complete, told=(each.status, each.code)) for each in load.speeches
    )
    return (
        f"{len(load.chats)} chats: {dict(chats)}\n{len(load.speeches)} speeches: {dict(speeches)}"
    )


def _ending(*, complete: bool, told: tuple[object, object]) -> str:
    if complete:
        return "whole"
    return " ".join(str(each) for each in told if each is not None) or "no answer"


PROGRAMS = {"kills": kills, "faults": faults, "outage": outage}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="postgresql")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--spare-one", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=8)
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # stops the started processes
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # the proxy's cut connections
    with place(options.database, clock=options.program == "faults") as here:
        load, watch = Load(here), Watch(here)
        load.start(options.at_once, options.seed)
        watch.start()
        late = PROGRAMS[options.program](here, load, options, random.Random(options.seed))
        load.stop()
        watch.stop()
        # A gateway without load adopts the journals of the last workers, and closes what they had
        # admitted in the database.
        here.kill_all()
        here.start_gateway()
        seconds_until_back(here)
        here.wait_for_no_admission()
        wrong = disagreements(here, load)
        print(f"\n{summary(load)}")
        for title, figures in thirds(watch.samples):
            print(f"{title}: {figures}")
        print("\n".join([*wrong, *late]) or "0 rows missing, 0 twice, 0 wrong; never late.")
    return bool(wrong or late)


if __name__ == "__main__":
    sys.exit(main())
