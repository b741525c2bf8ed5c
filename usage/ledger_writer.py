"""The ledger's thread: what it asks of the database, one job after the other.

Jobs come from the event loop and their results go back there.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from django.conf import settings
from django.db import Error, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from svc_project.lib.connections import cut, keep_usable
from usage import batches, orphans
from usage.admissions import Lease, Notes
from usage.adoption import Found, RefusedRows, adopt_in_steps
from usage.journal import Owed
from usage.receipts import AnyReceipt

_Result = TypeVar("_Result")

log = logging.getLogger(__name__)

LARGEST_BATCH: Final = 500

_STOP_SECONDS: Final = 5.0
_FINISH_SECONDS: Final = 1.0
"""What a running statement is given at the end, before its connection is cut."""
_GIVE_UP_SECONDS: Final = 8.0
"""After which a database that took a statement and stays silent is asked on a new connection."""


class Written(msgspec.Struct):
    """What became of a batch.

    ``placed``: requests whose row is in the database, or, ``refused`` of them, in a synced file
    because the database refuses them. ``unplaced``: refused ones that no file took. ``unreadable``:
    places in the journal that could not be read. ``failure``: why the database did not do its part.
    """

    placed: list[str] = []
    new: int = 0
    refused: int = 0
    unplaced: list[str] = []
    unreadable: list[Owed] = []
    failure: Exception | None = None


class Adopted(msgspec.Struct):
    """How far a pass of adoption has come: its sum once it is ``over``."""

    found: Found
    over: bool


class LedgerWriter:
    """One thread with a database connection of its own.

    ``tell`` hands a call over to whoever gave the job; it may be called from this thread.
    ``directory`` is the journal's; ``lease`` that of the notes of admissions, where there are any.
    """

    def __init__(
        self,
        tell: Callable[[Callable[[], None]], None],
        directory: Path,
        lease: Lease | None = None,
    ) -> None:
        self._tell = tell
        self._directory = directory
        self._lease = lease
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="ledger", daemon=True)
        self._connection: BaseDatabaseWrapper | None = None
        self._asked_at: float | None = None
        """When the running statement began, on the monotonic clock; None between statements."""
        self._refused = RefusedRows(directory)
        self._adoption: Generator[None, None, None] | None = None
        self._found = Found()

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def stop(self) -> None:
        """End after the jobs that were given; a statement that stays silent is cut off.

        A connection that is being made cannot be, so its thread is left to end by itself: nobody
        waits for what it writes, and what it writes twice is written once.
        """
        self._jobs.put(None)
        self._thread.join(_FINISH_SECONDS)
        if self._thread.is_alive() and not self._is_connecting():
            self._cut()
            self._thread.join(_STOP_SECONDS)

    def write(
        self,
        batch: Sequence[AnyReceipt],
        owed: Sequence[Owed],
        done: Callable[[Written], None],
        admitted: Sequence[AnyReceipt] = (),
    ) -> None:
        """Write the rows of ``batch``, and those that the journal has for the database.

        ``admitted`` are noted with them.
        """
        self._give(lambda: self._write(batch, owed, admitted), done)

    def extend_lease(self, withdrawn: Sequence[str], done: Callable[[Written], None]) -> None:
        """Say that this process lives, and delete the notes of requests that were refused."""
        self._give(lambda: self._extend_lease(withdrawn), done)

    def beat(self, done: Callable[[Written], None]) -> None:
        """Find out whether the database takes rows, where there are none to write."""
        self._give(self._beat, done)

    def adopt(self, done: Callable[[Adopted], None], *, refused_too: bool) -> None:
        """Do one step of adoption; ``refused_too`` counts for a pass that begins."""
        self._give(lambda: self._adopt(refused_too), done)

    def give_up_if_silent(self) -> None:
        """Cut the connection when a statement gets no answer; the job then fails.

        A connection may die without a word (a firewall forgets it, a pooler hangs); waiting for
        it would keep the rows in the journal until the process ends. Asking again is safe: a row
        that was written after all is not written twice.
        """
        asked_at = self._asked_at
        if asked_at is not None and time.monotonic() - asked_at > _GIVE_UP_SECONDS:
            log.warning("ledger: the database stays silent; its connection is given up")
            self._cut()

    def _give(self, work: Callable[[], _Result], done: Callable[[_Result], None]) -> None:
        def job() -> None:
            result = work()
            self._tell(lambda: done(result))

        self._jobs.put(job)

    def _is_connecting(self) -> bool:
        connection = self._connection
        return (
            self._asked_at is not None and connection is not None and connection.connection is None
        )

    def _cut(self) -> None:
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
        if self._adoption is not None:
            self._adoption.close()  # lets go of the file that is being adopted
        self._refused.let_go()
        self._end_lease()
        connections.close_all()

    def _asking(self) -> None:
        self._asked_at = time.monotonic()

    def _write(
        self,
        batch: Sequence[AnyReceipt],
        owed: Sequence[Owed],
        admitted: Sequence[AnyReceipt],
    ) -> Written:
        written = Written()
        receipts = list(batch)
        for each in owed:
            receipt = each.read()
            if receipt is None:
                written.unreadable.append(each)
            else:
                receipts.append(receipt)
        if not receipts and not admitted:
            return written
        notes = Notes(admitted, self._lease) if admitted and self._lease is not None else None
        try:
            inserted = self._try_twice(lambda: batches.insert(receipts, self._asking, notes))
        except Exception as error:
            connections.close_all()
            written.failure = error
            return written
        written.new = inserted.new
        refused = {receipt.request_id for receipt in inserted.refused}
        written.placed = [each.request_id for each in receipts if each.request_id not in refused]
        try:
            self._refused.keep(inserted.refused)
            written.placed += refused
            written.refused = len(refused)
        except OSError as error:
            log.error("journal: refused rows cannot be kept: %s", error)
            written.unplaced = list(refused)
        return written

    def _try_twice(self, ask: Callable[[], batches.Inserted]) -> batches.Inserted:
        """Ask once more, on a fresh connection, when the first one failed at once.

        An idle connection that was dropped says so at the next statement. Its rows need not go
        through the journal, and usage need not be behind, because of that.
        """
        keep_usable()
        began = time.monotonic()
        try:
            return ask()
        except batches.TakesNoRows:
            raise
        except Error:
            connections.close_all()
            if time.monotonic() - began > settings.SVC_LEDGER_ANSWER_SECONDS:
                raise
            return ask()

    def _beat(self) -> Written:
        try:
            keep_usable()
            self._asking()
            batches.beat()
        except Exception as error:
            connections.close_all()
            return Written(failure=error)
        return Written()

    def _extend_lease(self, withdrawn: Sequence[str]) -> Written:
        assert self._lease is not None  # noqa: S101  # nobody else asks
        try:
            keep_usable()
            self._asking()
            self._lease.extend()
            if withdrawn:
                self._asking()
                self._lease.withdraw(withdrawn)
        except Exception as error:
            connections.close_all()
            return Written(failure=error)
        return Written()

    def _end_lease(self) -> None:
        """Leave nothing that others wait for; of no consequence when it cannot be done."""
        if self._lease is not None and connections["default"].connection is not None:
            with suppress(Error):
                self._asking()
                self._lease.end()

    def _adopt_all(self, refused_too: bool) -> Generator[None, None, None]:
        yield from adopt_in_steps(
            self._directory, self._asking, self._refused, self._found, refused_too=refused_too
        )
        if self._lease is not None:
            self._found.new += yield from orphans.close_in_steps(self._lease, self._asking)

    def _adopt(self, refused_too: bool) -> Adopted:
        if self._adoption is None:
            self._found = Found()
            self._adoption = self._adopt_all(refused_too)
        try:
            keep_usable()
            next(self._adoption)
            return Adopted(self._found, over=False)
        except StopIteration:
            pass
        except Exception as error:
            log.warning("ledger: adoption is put off: %s", type(error).__name__)
            connections.close_all()
        self._adoption = None
        return Adopted(self._found, over=True)
