"""Commits the rows and admissions of one process: one job of the writer after the other.

While one transaction runs in the writer's thread the next rows gather, so a row waits for no timer
and a busy worker pays for few commits. When the database does not answer in time rows go to the
journal; when it is back they are written a slice at a time, between the rows of running requests.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

from django.conf import settings

from core.database.clocks import LARGEST_DIFFERENCE
from usage.ledger.admissions import AdmissionQueue, OwnerLease
from usage.ledger.journal.journal import Journal, Owed
from usage.ledger.journal_fallback import JournalFallback, Waiting
from usage.ledger.writer import LARGEST_BATCH, Adopted, JobWatch, LedgerWriter, Written
from usage.receipts import AnyReceipt

log = logging.getLogger(__name__)

_ROUND_SECONDS: Final = 15.0
_REFUSED_SECONDS: Final = 300.0
_AGREE_AGAIN: Final = LARGEST_DIFFERENCE / 2
"""Clocks that differed agree again below this, so that one that sways around the limit is logged once."""
_RETRY_SECONDS: Final = 1.0
_AGAIN: Final = "answers again"
_AWAY: Final = "does not answer; rows go to the journal"


class AdoptionRounds:
    """Schedule the rounds that adopt the rows of dead processes, and keep what the last one found.

    A round is due at once, and then every 15 seconds; belongs to one event loop.

    ``wake`` is called when a round is due. Rows that the database refused are retried in the first
    round and every 5 minutes.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._wake = wake
        self._refused_tried_at = float("-inf")
        self.is_going_on = False
        """Whether a round is due or has begun; its next step is ``step``."""
        self.rows_written = 0
        """Rows of other processes that the rounds wrote to the database."""
        self.refused_waiting = 0
        """Rows in files that the database refuses: as of the last retry, plus those found since."""
        self.unreadable_files: frozenset[str] = frozenset()
        """Files that the last round could not adopt."""
        self.others_admit = False
        """Whether other processes had admissions in the database in the last round."""
        self.clock_difference: float | None = None
        """Seconds by which this host's clock was ahead of the database's when they were compared."""
        self._clocks_differ = False
        self._timer: asyncio.Handle = self._loop.call_soon(self._begin)

    def step(self, writer: LedgerWriter, done: Callable[[], None]) -> None:
        """Give the writer the next step of the round; ``done`` is called after it."""
        refused_too = time.monotonic() - self._refused_tried_at > _REFUSED_SECONDS

        def adopted(result: Adopted) -> None:
            if result.over:
                self._end(result, refused_too=refused_too)
            done()

        writer.adopt(adopted, refused_too=refused_too)

    def close(self) -> None:
        """Begin no further round."""
        self.is_going_on = False
        self._timer.cancel()

    def _begin(self) -> None:
        self.is_going_on = True
        seconds = min(_ROUND_SECONDS, settings.SVC_ADMISSION_LEASE_SECONDS / 2)
        self._timer = self._loop.call_later(seconds, self._begin)
        self._wake()

    def _end(self, result: Adopted, *, refused_too: bool) -> None:
        self.is_going_on = False
        self.rows_written += result.found.new
        self.unreadable_files = frozenset(result.found.unreadable)
        self.others_admit = result.found.others_admit
        if (difference := result.found.clock_difference) is not None:
            self._note_clocks(difference)
        if refused_too:
            self._refused_tried_at = time.monotonic()
            self.refused_waiting = 0
        self.refused_waiting += result.found.refused_rows

    def _note_clocks(self, difference: float) -> None:
        """Log when the clocks begin to differ, and when they agree again."""
        if abs(difference) > LARGEST_DIFFERENCE and not self._clocks_differ:
            self._clocks_differ = True
            log.warning(
                "ledger: the clock of this host is %.1f s %s the database's",
                abs(difference),
                "ahead of" if difference > 0 else "behind",
            )
        elif abs(difference) < _AGREE_AGAIN and self._clocks_differ:
            self._clocks_differ = False
            log.warning("ledger: the clocks of this host and of the database agree again")
        self.clock_difference = difference


class GroupCommit:
    """Writes the rows and admissions of one process; belongs to one event loop.

    ``admits_always``: every request is admitted in the database, not only while the journal takes
    no record.
    """

    def __init__(self, journal: Journal, *, admits_always: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self.fallback = JournalFallback(journal, self._may_still_write)
        lease = OwnerLease(settings.SVC_ADMISSION_LEASE_SECONDS)
        self._writer = LedgerWriter(self._loop, journal.directory, lease)
        self._job = JobWatch(self._is_late, self._writer.cut_stuck_statement)
        self.adoption = AdoptionRounds(self._adoption_is_due)
        self.admissions = AdmissionQueue(self._pump_soon, is_always_used=admits_always)
        self._waiting: list[Waiting] = []
        self._writing: list[Waiting] = []
        self._at_database: frozenset[str] = frozenset()
        self._pumping = False
        self._last_was_alone = False
        self._backlog_next = False
        self._backlog_after = 0.0
        self._heartbeat_next = False
        self._retry: asyncio.TimerHandle | None = None
        self._late = asyncio.Lock()
        self.is_closed = False
        """Whether ``close`` has begun to stop the writer."""
        self.database_answers = True
        """Whether rows go to the database: not when a job fails or is late, again after a write."""
        self.rows_written = self.rows_refused = 0  # of requests of this process

    @property
    def unfinished(self) -> list[Waiting]:
        """Receipts whose answer waits for their row."""
        return [*self._writing, *self.fallback.unsynced, *self._waiting]

    @property
    def is_away(self) -> bool:
        """Whether the database does not answer, and no job may show that it does again."""
        return not self.database_answers and not self._job.is_busy

    def add(self, entry: Waiting) -> None:
        """Write the row of ``entry`` with the next batch."""
        self._waiting.append(entry)
        self._pump_soon()

    def settle(self, request_ids: Sequence[str]) -> None:
        """Release the answers of rows that are stored, and clear them from memory and journal."""
        placed = set(request_ids)
        for entry in (*self._writing, *self.fallback.unsynced):
            if entry.request_id in placed:
                entry.release()
        self.fallback.written(request_ids)
        self.admissions.ended(placed)

    def withdraw(self) -> None:
        """Begin no round of adoption and no admission any more, because the process stops."""
        self.adoption.close()
        self.admissions.close()

    async def close(self) -> None:
        """Stop the writer after its job; the journal keeps rows that failed."""
        self.is_closed = True
        if withdrawn := self.admissions.withdrawals():
            self._writer.extend_lease(withdrawn, lambda _: None)
        if self._retry is not None:
            self._retry.cancel()
        await asyncio.to_thread(self._writer.close)
        await asyncio.sleep(0)  # runs the writer's last callback
        self._job.close()
        await self.fallback.close()

    async def write_late(self, entry: Waiting) -> None:
        """Write the row of a request that ended after ``close``."""
        async with self._late:
            written: asyncio.Future[Written] = self._loop.create_future()
            lease = OwnerLease(settings.SVC_ADMISSION_LEASE_SECONDS)
            writer = LedgerWriter(self._loop, self.fallback.journal.directory, lease)
            admitted = self.admissions.held_of([entry.request_id])
            writer.write([entry.receipt], [], written.set_result, ended=admitted)
            await asyncio.to_thread(writer.close)
            await asyncio.sleep(0)  # runs the writer's last callback
            if written.done() and written.result().placed:
                self.settle(written.result().placed)
                return
            self.fallback.keep(entry)
            await self.fallback.close()
            await entry.answer

    # -- the next job ------------------------------------------------------------------------

    def _pump_soon(self) -> None:
        """Give the writer its next batch once the callbacks due now have run, so that rows gather.

        While the writer works, its answer triggers the next batch. A worker whose last batch had one
        row does not wait for others.
        """
        if self._pumping or (self._job.is_busy and self.database_answers):
            return
        if self._last_was_alone and not self._job.is_busy:
            self._pump()
        else:
            self._pumping = True
            self._loop.call_soon(self._pump)

    def _pump(self) -> None:
        """Give the writer its next job; write to the journal the rows that must not wait for it."""
        self._pumping = False
        if not self.database_answers:
            self._journal_waiting_rows()
        if self._job.is_busy or self.is_closed:
            return
        if not self.database_answers:
            self._retry_later()
            return
        if self.admissions.lease_due:
            self._extend_lease()
            return
        owes = self.fallback.rows_owed and time.monotonic() >= self._backlog_after
        has_backlog = self.adoption.is_going_on or owes
        has_new = self._waiting or self.admissions.is_pending
        if has_new and not (has_backlog and self._backlog_next):
            self._backlog_next = True
            self._write_waiting()
        elif has_backlog:
            self._backlog_next = False
            if owes:
                self._submit(*self.fallback.owed())
            else:
                self._job.begin()
                self.adoption.step(self._writer, self._adopted)
        elif self.fallback.rows_owed:
            self._retry_later()

    def _write_waiting(self) -> None:
        self._writing = self._waiting[:LARGEST_BATCH]
        self._last_was_alone = len(self._writing) == 1
        del self._waiting[:LARGEST_BATCH]
        admitted = self.admissions.take(LARGEST_BATCH)
        self._submit([entry.receipt for entry in self._writing], [], admitted)

    def _submit(
        self, receipts: list[AnyReceipt], owed: list[Owed], admitted: Sequence[AnyReceipt] = ()
    ) -> None:
        self._at_database = frozenset(each.request_id for each in (*receipts, *owed))
        self._job.begin()
        self._writer.write(
            receipts,
            owed,
            lambda written: self._written(written, admitted=bool(admitted)),
            admitted,
            self.admissions.held_of(self._at_database) | self.fallback.withheld(self._at_database),
        )

    def _written(self, written: Written, *, admitted: bool) -> None:
        """Handle the writer's answer to a batch."""
        self._end_job()
        self.rows_written += written.new
        self.rows_refused += written.refused
        self.adoption.refused_waiting += written.refused
        self.settle(written.placed)
        for each in written.unreadable:
            log.critical("journal: row %s cannot be read back", each.request_id)
        self.fallback.unplaced(written.unplaced, written.unreadable)
        writing, self._writing = self._writing, []
        left = [entry for entry in writing if not entry.durable.done() and entry.segment is None]
        if written.failure is not None:
            self._fail(written.failure)
            self._waiting = left + self._waiting
        else:
            if admitted:
                self.admissions.written()
            # Else the rows cannot be read, or are refused and no file accepts them.
            came_through = admitted or bool(written.placed)
            self._heartbeat_next = not came_through
            if came_through:
                self._set_database_answers(answers=True)
            else:
                self._backlog_after = time.monotonic() + _RETRY_SECONDS
            for entry in left:
                self.fallback.keep(entry)
        self._pump()

    def _extend_lease(self) -> None:
        """Extend this process's lease and delete the admissions of refused requests."""
        withdrawn, began = self.admissions.withdrawals(), time.monotonic()

        def extended(written: Written) -> None:
            self._end_job()
            if written.failure is not None:
                self.admissions.lease_due = True
                self._fail(written.failure)
            else:
                self.admissions.drop_withdrawals(withdrawn, began)
                if not self.database_answers and not self.is_closed:
                    self._retry_database()  # a working lease does not prove that rows are accepted
            self._pump()

        self.admissions.lease_due = False
        self._job.begin()
        self._writer.extend_lease(withdrawn, extended)

    def _adoption_is_due(self) -> None:
        self.fallback.journal.flush_written()
        self._pump_soon()

    def _adopted(self) -> None:
        self._end_job()
        self.admissions.watch_others(there_are_some=self.adoption.others_admit)
        self._pump()

    def _end_job(self) -> None:
        self._job.end()
        self._at_database = frozenset()

    # -- whether the database answers --------------------------------------------------------

    def _set_database_answers(self, *, answers: bool) -> None:
        if answers != self.database_answers:
            log.warning("ledger: the database %s", _AGAIN if answers else _AWAY)
        self.database_answers = answers

    def _fail(self, failure: Exception) -> None:
        """Handle a failed job: rows go to the journal, admissions in the database are refused."""
        log.warning("ledger: the database failed: %s", type(failure).__name__)
        self._set_database_answers(answers=False)
        self.admissions.failed()

    def _is_late(self) -> bool:
        """Write the waiting rows to the journal, because the database answers too slowly.

        Return whether none waits, and the job may go on.
        """
        if not (self._writing or self._waiting or self.admissions.is_awaited):
            return True
        self._set_database_answers(answers=False)
        self._journal_waiting_rows()
        return False

    def _journal_waiting_rows(self) -> None:
        """Write every waiting receipt to the journal, to be synced together."""
        waiting, self._waiting = self._waiting, []
        for entry in (*self._writing, *waiting):
            if entry.segment is None and not entry.durable.done():
                self.fallback.keep(entry)

    def _may_still_write(self, entry: Waiting) -> bool:
        """Whether the row is in the batch that the database works on; then it waits for that."""
        if entry.request_id not in self._at_database:
            return False
        if entry not in self._writing:
            self._writing.append(entry)
        return True

    def _retry_later(self) -> None:
        if self._retry is None:
            self._retry = self._loop.call_later(_RETRY_SECONDS, self._retry_now)

    def _retry_now(self) -> None:
        """Retry a database that was away: with the rows it is owed, else with a heartbeat."""
        self._retry = None
        if self._job.is_busy or self.is_closed:
            return
        self.fallback.retry()
        if self.admissions.lease_due:
            self._extend_lease()
        else:
            self._retry_database()

    def _retry_database(self) -> None:
        if self.fallback.rows_owed and not self._heartbeat_next:
            self._submit(*self.fallback.owed())
        elif not self.database_answers:
            self._heartbeat_next = False
            self._job.begin()
            self._writer.heartbeat(self._heartbeat_done)
        else:
            self._pump()

    def _heartbeat_done(self, written: Written) -> None:
        self._end_job()
        if written.failure is not None:
            self._fail(written.failure)
        self._set_database_answers(answers=written.failure is None)
        self._pump()
