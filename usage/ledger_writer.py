"""The ledger's thread: what it asks of the database, one job after the other.

Jobs come from the event loop and their results go back there. A row that breaks a constraint is
logged and left out, so that it cannot hold up the others.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from django.db import DataError, Error, IntegrityError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from svc_project.lib.connections import cut, keep_usable
from usage import rows
from usage.journal import orphans, read_segment
from usage.receipts import AnyReceipt

log = logging.getLogger(__name__)

LARGEST_BATCH = 500

_STOP_SECONDS = 5.0
_GIVE_UP_SECONDS = 8.0
"""After which a database that took a statement and stays silent is asked on a new connection."""

Asking = Callable[[], None]
"""Called before each statement."""


class LedgerWriter:
    """One thread with a database connection of its own.

    ``tell`` hands a call over to whoever gave the job; it may be called from this thread.
    """

    def __init__(self, tell: Callable[[Callable[[], None]], None]) -> None:
        self._tell = tell
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="ledger", daemon=True)
        self._connection: BaseDatabaseWrapper | None = None
        self._asked_at: float | None = None
        """When the running statement began, on the monotonic clock; None between statements."""

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def stop(self) -> None:
        """End after the jobs that were given; waits for it, for a while."""
        self._jobs.put(None)
        self._thread.join(_STOP_SECONDS)

    def write(self, batch: list[AnyReceipt], done: Callable[[Error | None], None]) -> None:
        """Write the rows of ``batch``; ``done`` is told of the failure, or None."""
        self._jobs.put(lambda: self._write(batch, done))

    def ship(self, segments: list[Path], done: Callable[[list[str], bool], None]) -> None:
        """Write what was settled in journal ``segments``.

        ``done`` is told the ids of the rows that are there now, and whether those are all. Without
        segments it only tells whether the database answers.
        """
        self._jobs.put(lambda: self._ship(segments, done))

    def adopt(self, directory: Path) -> None:
        """Write the rows that dead processes left in the journal's ``directory``, if any."""
        self._jobs.put(lambda: self._adopt(directory))

    def give_up_if_silent(self) -> None:
        """Cut the connection when a statement gets no answer; the job then fails.

        A connection may die without a word (a firewall forgets it, a pooler hangs); waiting for
        it would keep the rows in the journal until the process ends. Asking again is safe: a row
        that was written after all is not written twice.
        """
        asked_at = self._asked_at
        if asked_at is not None and time.monotonic() - asked_at > _GIVE_UP_SECONDS:
            log.warning("ledger: the database stays silent; its connection is given up")
            if self._connection is not None:
                cut(self._connection)

    # -- in the thread -----------------------------------------------------------------------

    def _work(self) -> None:
        self._connection = connections["default"]
        while (job := self._jobs.get()) is not None:
            try:
                job()
            except Exception:
                log.exception("ledger: the writer failed")
            finally:
                self._asked_at = None
        connections.close_all()

    def _asking(self) -> None:
        self._asked_at = time.monotonic()

    def _write(self, batch: list[AnyReceipt], done: Callable[[Error | None], None]) -> None:
        failure: Error | None = None
        try:
            keep_usable()
            _insert(batch, self._asking)
        except Error as error:
            failure = error
            connections.close_all()
        except BaseException:
            failure = Error()
            raise
        finally:
            self._tell(lambda: done(failure))

    def _ship(self, segments: list[Path], done: Callable[[list[str], bool], None]) -> None:
        shipped: list[str] = []
        complete = False
        try:
            keep_usable()
            for path in segments:
                settled = list(read_segment(path.read_bytes()).settled.values())
                _insert(settled, self._asking)
                shipped += [receipt.request_id for receipt in settled]
            if not segments:
                connections["default"].ensure_connection()
            complete = True
        except (Error, OSError):
            connections.close_all()
        finally:
            self._tell(lambda: done(shipped, complete))

    def _adopt(self, directory: Path) -> None:
        try:
            adopt(directory, self._asking)
        except Error as error:
            log.warning("ledger: nothing adopted, the database: %s", type(error).__name__)
            connections.close_all()


def adopt(directory: Path, asking: Asking = lambda: None) -> int:
    """Write the rows that dead processes left in ``directory``; returns how many were missing.

    A request last seen running becomes a row with the outcome ``interrupted`` and the figures
    last noted. Raises ``django.db.Error`` when the database does not answer; then nothing is lost
    and the next call tries again.
    """
    adopted = 0
    for orphan in orphans(directory):
        found = orphan.read()
        receipts = [*found.settled.values(), *found.running.values()]
        try:
            keep_usable()
            new = _insert(receipts, asking)
        except Error:
            orphan.let_go()
            raise
        orphan.finish(keep=found.damaged)
        adopted += new
        if found.damaged:
            log.critical("journal: %s is damaged and was set aside", orphan.path.name)
        if new:
            log.warning("ledger: %d requests of a dead process were closed", new)
    return adopted


def _insert(receipts: Sequence[AnyReceipt], asking: Asking) -> int:
    """Write ``receipts`` batch by batch; returns how many were new."""
    new = 0
    for first in range(0, len(receipts), LARGEST_BATCH):
        batch = receipts[first : first + LARGEST_BATCH]
        asking()
        try:
            new += rows.insert(batch)
        except (IntegrityError, DataError):
            new += _insert_each(batch, asking)
    return new


def _insert_each(receipts: Sequence[AnyReceipt], asking: Asking) -> int:
    new = 0
    for receipt in receipts:
        asking()
        try:
            new += rows.insert([receipt])
        except (IntegrityError, DataError) as error:
            log.critical(
                "ledger: row %s is refused by the database: %s",
                receipt.request_id,
                type(error).__name__,
            )
    return new
