"""The ledger's thread: runs its database jobs one after the other.

Jobs come from the event loop, and their results go back to it.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from django.conf import settings
from django.db import Error, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from core.database.clocks import clock_difference
from core.database.threads import abort_connection, keep_usable
from usage.ledger import orphans, rows
from usage.ledger.admissions import NewAdmissions, OwnerLease
from usage.ledger.journal.adoption import AdoptionResult, RefusedRows, adopt_in_steps
from usage.ledger.journal.journal import Owed
from usage.receipts import AnyReceipt

_Result = TypeVar("_Result")

log = logging.getLogger(__name__)

LARGEST_BATCH: Final = 500

_STOP_SECONDS: Final = 5.0
_FINISH_SECONDS: Final = 1.0
"""How long ``close`` waits for a running statement before it cuts the connection."""
_WATCH_SECONDS: Final = 1.0
_GIVE_UP_SECONDS: Final = 8.0
"""After this long without an answer to a statement, the connection is replaced."""


class Written(msgspec.Struct):
    """The result of a batch.

    ``placed``: ids of requests whose row is in the database, or (``refused`` of them) in a synced
    file because the database refused it. ``unplaced``: ids of refused rows that no file accepted.
    ``unreadable``: places in the journal that could not be read. ``failure``: the database's error.
    """

    placed: list[str] = []
    new: int = 0
    refused: int = 0
    unplaced: list[str] = []
    unreadable: list[Owed] = []
    failure: Exception | None = None


class Adopted(msgspec.Struct):
    """The result of a pass of adoption so far; final once it is ``over``."""

    found: AdoptionResult
    over: bool


class JobWatch:
    """The writer's one running job, and what is done when it takes long; belongs to one event loop.

    ``late`` is called when a job has taken ``SVC_LEDGER_ANSWER_SECONDS``, and again after as long
    if it returns True. ``look`` is called once a second while jobs run.
    """

    def __init__(self, late: Callable[[], bool], look: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._late = late
        self._look = look
        self._timer: asyncio.TimerHandle | None = None
        self._watch: asyncio.TimerHandle | None = None
        self.is_busy = False
        """Whether a job runs."""

    def begin(self) -> None:
        """Begin to watch a job."""
        self.is_busy = True
        self._time()
        if self._watch is None:
            self._watch = self._loop.call_later(_WATCH_SECONDS, self._look_after)

    def end(self) -> None:
        """End the watch over a job that has ended."""
        self.is_busy = False
        if self._timer is not None:
            self._timer.cancel()

    def close(self) -> None:
        """End all watches."""
        self.end()
        if self._watch is not None:
            self._watch.cancel()

    def _time(self) -> None:
        seconds = settings.SVC_LEDGER_ANSWER_SECONDS
        self._timer = self._loop.call_later(seconds, self._timed_out)

    def _timed_out(self) -> None:
        if self.is_busy and self._late():
            self._time()

    def _look_after(self) -> None:
        self._watch = None
        if self.is_busy:
            self._look()
            self._watch = self._loop.call_later(_WATCH_SECONDS, self._look_after)


class LedgerWriter:
    """One thread with a database connection of its own.

    Results go to ``loop``. ``directory`` is the journal's; ``lease`` is that of this process.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, directory: Path, lease: OwnerLease) -> None:
        self._loop = loop
        self._directory = directory
        self._lease = lease
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._connection: BaseDatabaseWrapper | None = None
        self._statement_began: float | None = None
        """When the running statement began, on the monotonic clock; None between statements."""
        self._refused = RefusedRows(directory)
        self._adoption: Generator[None, None, None] | None = None
        self._found = AdoptionResult()
        self._thread = threading.Thread(target=self._work, name="ledger", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop after the queued jobs; cut the connection of a statement that does not answer.

        A connection that is still being opened cannot be cut, so its thread is left to end by itself:
        nothing waits for its rows, and a row that is written twice is stored once.
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
        ended: Collection[str] = (),
    ) -> None:
        """Write the rows of ``batch``, those that the journal owes the database, and the admissions
        ``admitted``, in one transaction. The admissions of the ids in ``ended`` are deleted with
        their row.
        """
        for each in owed:
            each.segment.hold()

        def finished(written: Written) -> None:
            for each in owed:
                each.segment.release()
            done(written)

        self._submit(lambda: self._write(batch, owed, admitted, ended), finished)

    def extend_lease(self, withdrawn: Sequence[str], done: Callable[[Written], None]) -> None:
        """Extend this process's lease and delete the admissions of refused requests."""
        self._submit(lambda: self._extend_lease(withdrawn), done)

    def heartbeat(self, done: Callable[[Written], None]) -> None:
        """Find out whether the database accepts rows when there are none to write."""
        self._submit(self._heartbeat, done)

    def adopt(self, done: Callable[[Adopted], None], *, refused_too: bool) -> None:
        """Do one step of adoption; ``refused_too`` applies when this step begins a pass."""
        self._submit(lambda: self._adopt(refused_too), done)

    def cut_stuck_statement(self) -> None:
        """Cut the connection when a statement gets no answer; the job then fails.

        A connection may die silently (a firewall drops it, a pooler hangs); waiting for it would keep
        the rows in the journal until the process ends. A retry is safe: a row that was written after
        all is not written twice.
        """
        began = self._statement_began
        if began is not None and time.monotonic() - began > _GIVE_UP_SECONDS:
            log.warning("ledger: the database does not answer; its connection is cut")
            self._cut()

    def _submit(self, work: Callable[[], _Result], done: Callable[[_Result], None]) -> None:
        def job() -> None:
            result = work()
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(done, result)

        self._jobs.put(job)

    def _is_connecting(self) -> bool:
        connection = self._connection
        return (
            self._statement_began is not None
            and connection is not None
            and connection.connection is None
        )

    def _cut(self) -> None:
        if self._connection is not None:
            abort_connection(self._connection)

    # -- in the thread -----------------------------------------------------------------------

    def _work(self) -> None:
        self._connection = connections["default"]
        while (job := self._jobs.get()) is not None:
            try:
                job()
            except Exception:
                log.exception("ledger: the writer failed")
            finally:
                self._statement_began = None
        if self._adoption is not None:
            self._adoption.close()  # unlocks the file that is being adopted
        self._refused.abandon()
        self._end_lease()
        connections.close_all()

    def _begin_statement(self) -> None:
        self._statement_began = time.monotonic()

    def _write(
        self,
        batch: Sequence[AnyReceipt],
        owed: Sequence[Owed],
        admitted: Sequence[AnyReceipt],
        ended: Collection[str],
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
        new_admissions = NewAdmissions(admitted, self._lease) if admitted else None
        try:
            inserted = self._try_twice(
                lambda: rows.insert_accepted(receipts, self._begin_statement, new_admissions, ended)
            )
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

    def _try_twice(self, ask: Callable[[], rows.Inserted]) -> rows.Inserted:
        """Retry once on a fresh connection when the first attempt failed at once.

        A dropped idle connection shows at the next statement. Its rows need not go through the
        journal, and usage need not lag, because of that.
        """
        keep_usable()
        began = time.monotonic()
        try:
            return ask()
        except rows.RefusesAllRows:
            raise
        except Error:
            connections.close_all()
            if time.monotonic() - began > settings.SVC_LEDGER_ANSWER_SECONDS:
                raise
            return ask()

    def _heartbeat(self) -> Written:
        try:
            keep_usable()
            self._begin_statement()
            rows.heartbeat()
        except Exception as error:
            connections.close_all()
            return Written(failure=error)
        return Written()

    def _extend_lease(self, withdrawn: Sequence[str]) -> Written:
        try:
            keep_usable()
            self._begin_statement()
            self._lease.extend()
            if withdrawn:
                self._begin_statement()
                self._lease.withdraw(withdrawn)
        except Exception as error:
            connections.close_all()
            return Written(failure=error)
        return Written()

    def _end_lease(self) -> None:
        """End the lease, so that no other process waits for it to run out; best effort."""
        if connections["default"].connection is not None:
            with suppress(Error):
                self._begin_statement()
                self._lease.end()

    def _adopt_all(self, refused_too: bool) -> Generator[None, None, None]:
        yield from adopt_in_steps(
            self._directory,
            self._begin_statement,
            self._refused,
            self._found,
            refused_too=refused_too,
        )
        closing = orphans.close_in_steps(self._lease, self._begin_statement)
        closed, self._found.others_admit = yield from closing
        self._found.new += closed
        self._begin_statement()
        self._found.clock_difference = clock_difference()

    def _adopt(self, refused_too: bool) -> Adopted:
        if self._adoption is None:
            self._found = AdoptionResult()
            self._adoption = self._adopt_all(refused_too)
        try:
            keep_usable()
            next(self._adoption)
            return Adopted(self._found, over=False)
        except StopIteration:
            pass
        except Exception as error:
            log.warning("ledger: adoption is postponed: %s", type(error).__name__)
            connections.close_all()
        self._adoption = None
        return Adopted(self._found, over=True)
