"""The faults of a soak. Each returns when it is over."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from tests.faults.soak.disk import make_immutable
from tests.faults.soak.place import Place
from tests.support.until import until

_ROW_STATEMENT = b"EXECUTE svc_rows_"
"""The beginning of the statement that writes a batch on PostgreSQL."""


@dataclass
class Fault:
    """A fault. ``only``: the database that it needs. ``takes_all``: it ends every worker.
    ``sets_clock``: it needs libfaketime."""

    name: str
    run: Callable[[Place, random.Random], None]
    only: str | None = None
    takes_all: bool = False
    sets_clock: bool = False


def a_while(dice: random.Random, shortest: float, longest: float) -> None:
    """Let a fault last for some seconds: its length is what is varied."""
    time.sleep(dice.uniform(shortest, longest))


def kill_a_worker(place: Place, dice: random.Random) -> None:
    place.kill_worker()
    place.wait_for_workers()


def kill_everything(place: Place, dice: random.Random) -> None:
    place.kill_all()
    place.start_gateway()


def kill_while_it_recovers(place: Place, dice: random.Random) -> None:
    """Kill everything five times in a row, with rows that only the journal has."""
    with _rows_locked(place):
        a_while(dice, 0.5, 1.5)
        place.kill_all()
    for _ in range(4):
        place.start_gateway()
        a_while(dice, 0, 0.3)
        place.kill_all()
    place.start_gateway()


def kill_while_locked(place: Place, dice: random.Random) -> None:
    with _rows_locked(place):
        a_while(dice, 0.3, 1.5)
        place.kill_worker()
        a_while(dice, 0, 1)
    place.wait_for_workers()


def lock_rows(place: Place, dice: random.Random) -> None:
    with _rows_locked(place):
        a_while(dice, 0.3, 6)


def stall(place: Place, dice: random.Random) -> None:
    """Let the database answer late: every piece of its answers is delayed."""
    assert place.database is not None
    place.database.delay(dice.uniform(0.3, 3))
    a_while(dice, 1, 6)
    place.database.heal()


def restart_database(place: Place, dice: random.Random) -> None:
    assert place.postgresql is not None
    place.postgresql.stop()
    a_while(dice, 0, 3)
    place.postgresql.start()


def lose_replies(place: Place, dice: random.Random) -> None:
    """Lose the replies to commits, one after the other."""
    database = place.database
    assert database is not None
    for _ in range(10):
        struck = database.struck
        database.lose_reply_to(_ROW_STATEMENT)
        with suppress(AssertionError):
            until(lambda: database.struck > struck, 5)  # noqa: B023
    database.heal()


def unreachable(seconds: float) -> Callable[[Place, random.Random], None]:
    def run(place: Place, dice: random.Random) -> None:
        assert place.database is not None
        place.database.refuse()
        time.sleep(seconds)
        place.database.heal()

    return run


def silent(place: Place, dice: random.Random) -> None:
    assert place.database is not None
    place.database.blackhole()
    a_while(dice, 2, 10)
    place.database.heal()


def fill_the_disk(place: Place, dice: random.Random) -> None:
    place.disk.fill()
    a_while(dice, 2, 5)
    place.disk.free()


def fill_the_disk_and_kill(place: Place, dice: random.Random) -> None:
    place.disk.fill()
    a_while(dice, 1, 3)
    place.kill_worker()
    a_while(dice, 0, 2)
    place.disk.free()
    place.wait_for_workers()


def freeze_the_journals_directory(place: Place, dice: random.Random) -> None:
    """Make the journal's directory immutable while rows are locked: existing segments must suffice."""
    make_immutable(place.journal, immutable=True)
    try:
        lock_rows(place, dice)
    finally:
        make_immutable(place.journal, immutable=False)


def lose_the_journals_directory(place: Place, dice: random.Random) -> None:
    aside = place.journal.with_name("aside")
    place.journal.rename(aside)
    place.journal.write_bytes(b"")
    a_while(dice, 0.5, 3)
    place.journal.unlink()
    aside.rename(place.journal)


def leave_unreadable_segments(place: Place, dice: random.Random) -> None:
    """Leave a directory named like a segment, and a file of random bytes, and kill a worker."""
    strange = place.journal / "00000000-strange.journal"
    strange.mkdir(exist_ok=True)
    noise = place.journal / f"{dice.getrandbits(64):016x}.journal"
    noise.write_bytes(dice.randbytes(5000))
    kill_a_worker(place, dice)
    strange.rmdir()


def fail_to_sync(place: Place, dice: random.Random) -> None:
    place.failing_sync.touch()
    with _rows_locked(place):
        a_while(dice, 0.3, 4)
    place.failing_sync.unlink()


def wrong_clock(place: Place, dice: random.Random) -> None:
    """Set the gateway's clock ten seconds ahead, then ten behind."""
    assert place.clock is not None
    right = place.clock.read_text()
    for wrong in (10, -10):
        place.clock.write_text(f"{float(right) + wrong:+.0f}")
        a_while(dice, 3, 6)
    place.clock.write_text(right)


def column_of_a_newer_version(place: Place, dice: random.Random) -> None:
    """Simulate a migration that ran ahead: the ledger has a column without a default that this
    version does not know. On SQLite a trigger refuses the row instead."""
    with closing(place.connect()) as other:
        if place.postgresql is None:
            other.execute(
                "CREATE TRIGGER newer BEFORE INSERT ON usage_usagerow "
                "BEGIN SELECT RAISE(ABORT, 'NOT NULL constraint failed'); END"
            )
        else:
            other.execute("ALTER TABLE usage_usagerow ADD newer integer NOT NULL DEFAULT 1")
            other.execute("ALTER TABLE usage_usagerow ALTER newer DROP DEFAULT")
        a_while(dice, 2, 6)
        if place.postgresql is None:
            other.execute("DROP TRIGGER newer")
        else:
            other.execute("ALTER TABLE usage_usagerow DROP newer")


def new_month_under_a_download(place: Place, dice: random.Random) -> None:
    """Begin a month by the gateway's clock during a slow read of the whole ledger, so that starting
    workers create the next partition."""
    assert place.clock is not None
    now = datetime.now(UTC)
    month = datetime(now.year + now.month // 12, now.month % 12 + 1, 1, tzinfo=UTC)
    with closing(place.connect()) as reader:
        reader.autocommit = False
        reader.execute("SELECT count(*) FROM usage_usagerow")
        place.clock.write_text(f"{(month - now).total_seconds() - 4:+.0f}")
        time.sleep(8)
        place.kill_worker()
        time.sleep(6)
        reader.rollback()
    place.wait_for_workers()


@contextmanager
def _rows_locked(place: Place) -> Iterator[None]:
    """Lock the ledger's rows against writers."""
    with closing(place.connect()) as other:
        if place.postgresql is None:
            other.execute("BEGIN IMMEDIATE")
        else:
            other.autocommit = False
            other.execute("LOCK TABLE usage_usagerow, usage_speechrow IN EXCLUSIVE MODE")
        yield
        other.rollback()


FAULTS = (
    Fault("a worker is killed", kill_a_worker),
    Fault("everything is killed", kill_everything, takes_all=True),
    Fault("everything is killed, recovery too, five times", kill_while_it_recovers, takes_all=True),
    Fault("a worker is killed while rows are locked", kill_while_locked),
    Fault("rows are locked for 0.3 to 6 s", lock_rows),
    Fault("the database answers 0.3 to 3 s late", stall, only="postgresql"),
    Fault("the database is restarted", restart_database, only="postgresql"),
    Fault("ten replies to commits are lost", lose_replies, only="postgresql"),
    Fault("the database refuses for 10 s", unreachable(10), only="postgresql"),
    Fault("the database is silent for 2 to 10 s", silent, only="postgresql"),
    Fault("the journal's disk is full", fill_the_disk),
    Fault("the journal's disk is full and a worker is killed", fill_the_disk_and_kill),
    Fault(
        "the journal's directory takes no new file, rows are locked", freeze_the_journals_directory
    ),
    Fault("the journal's directory is gone", lose_the_journals_directory),
    Fault("unreadable segments beside a killed worker's", leave_unreadable_segments),
    Fault("syncs fail while rows are locked", fail_to_sync),
    Fault("the clock is 10 s ahead, then 10 s behind", wrong_clock, sets_clock=True),
    Fault("a column of a newer version", column_of_a_newer_version),
    Fault(
        "a month begins under a slow reader",
        new_month_under_a_download,
        only="postgresql",
        sets_clock=True,
    ),
)
