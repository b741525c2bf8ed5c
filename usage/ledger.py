"""The only writer of usage rows and speech rows.

``admit`` notes a request in the local journal before it runs; ``record`` returns when its row is
durable, and only then may the answer's last bytes leave. Rows are written by group commit: while
one transaction runs in the writer's thread the next rows gather, so a row waits for no timer and
a busy worker pays for few commits.

With ``SVC_DURABLE_ADMISSIONS`` that note is in the database too before the request runs
(``usage.noting``).

When the database does not answer within ``SVC_LEDGER_ANSWER_SECONDS`` the rows are synced to the
journal instead and the answers are released; they are written, a slice at a time between the rows of
living requests, when the database is back. What neither place takes stays in memory until one does,
its answer is not given, and nothing is admitted meanwhile: nothing is ever served unmetered.
See docs/explain/metering.md.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec
from django.conf import settings
from django.db import connection

from svc_project.lib.errors import InternalError, ServerOverloaded
from usage.admissions import RENEWALS, Lease
from usage.adoption import SLICE
from usage.journal import Journal, Owed
from usage.ledger_writer import LARGEST_BATCH, Adopted, LedgerWriter, Written
from usage.noting import Noting
from usage.receipts import AnyProgress, AnyReceipt, withheld
from usage.segments import Segment

log = logging.getLogger(__name__)

MOST_KEPT: Final = 10_000
"""Rows in memory, for want of another place, with which nothing more is admitted."""

_RETRY_SECONDS = 1.0
_ADOPT_SECONDS = 15.0
_REFUSED_SECONDS = 300.0
_LOOK_SECONDS = 1.0
_LATE_SECONDS = 1.0
"""What requests that are still being settled are given when the ledger stops."""


class _Waiting(msgspec.Struct, eq=False):
    """A receipt whose answer is held back; ``noted`` in a segment, to be synced."""

    receipt: AnyReceipt
    durable: asyncio.Future[None]
    begun: bool | None = None
    noted: Segment | None = None
    failed_syncs: int = 0

    @property
    def request_id(self) -> str:
        return self.receipt.request_id

    def release(self) -> None:
        if not self.durable.done():
            self.durable.set_result(None)


class Ledger:
    """Writes the rows of one process. All public methods belong to one event loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._writer: LedgerWriter | None = None
        self._syncer: ThreadPoolExecutor | None = None
        self._journal = Journal(Path(), 0)
        self._waiting: list[_Waiting] = []
        self._writing: list[_Waiting] = []
        self._unsynced: list[_Waiting] = []
        self._kept: dict[str, AnyReceipt] = {}
        self._noting: Noting | None = None
        self._renewal: asyncio.TimerHandle | None = None
        self._at_database: frozenset[str] = frozenset()
        self._syncing: asyncio.Task[None] | None = None
        self._late = asyncio.Lock()
        self._pumping = False
        self._comes_alone = False
        self._busy = False
        self._backlog_next = False
        self._backlog_after = 0.0
        self._beat_next = False
        self._adopting = False
        self._refused_tried_at = float("-inf")
        self._database_answers = True
        self._stall: asyncio.TimerHandle | None = None
        self._look: asyncio.TimerHandle | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._adopt: asyncio.TimerHandle | None = None
        self.rows_written = 0
        """Rows that this process brought into the database, each counted once."""
        self.rows_refused = 0
        """Rows of this process that the database refused and a file keeps."""
        self.refused_waiting = 0
        """Rows in such files, of any process, when they were last tried, and refused since."""
        self.unreadable_files: frozenset[str] = frozenset()
        """Files of the journal's directory that could not be adopted in the last pass."""

    @property
    def rows_waiting(self) -> int:
        """Requests whose answer is held back until their row is durable."""
        return len(self._waiting) + len(self._writing) + len(self._unsynced)

    @property
    def rows_owed(self) -> int:
        """Rows that the database does not have and the journal, or memory, has."""
        return self._journal.owes + len(self._kept)

    @property
    def rows_kept(self) -> int:
        """Rows in memory because neither the database nor the journal took them."""
        return len(self._kept)

    @property
    def journal_bytes(self) -> int:
        """Bytes of the journal of this process."""
        return self._journal.size

    @property
    def journal_works(self) -> bool:
        """Whether the journal took its last record."""
        return self._journal.works

    @property
    def database_answers(self) -> bool:
        """Whether rows go to the database, and not to the journal instead."""
        return self._database_answers

    def has_place(self) -> bool:
        """Whether a row could be made durable now; asks the disk when the database is away."""
        if len(self._kept) >= MOST_KEPT:
            return False
        if self._noting is not None:
            return self._database_answers
        return self._database_answers or self._journal.takes_more()

    async def start(self) -> None:
        """Take up work: start the writer, adopt what dead processes left in the journal."""
        if self._writer is not None:
            return
        self._loop = asyncio.get_running_loop()
        self._busy = False
        directory = settings.SVC_DATA_DIR / "journal"
        self._journal = Journal(directory, settings.SVC_JOURNAL_MAX_BYTES)
        self._syncer = ThreadPoolExecutor(1, thread_name_prefix="journal-sync")
        lease = None
        if settings.SVC_DURABLE_ADMISSIONS and connection.vendor == "postgresql":
            lease = Lease(settings.SVC_ADMISSION_LEASE_SECONDS)
            self._noting = Noting(self._pump_soon)
            self._renew()
        self._writer = LedgerWriter(self._tell, directory, lease)
        self._writer.start()
        self._begin_adoption()

    async def stop(self) -> None:
        """Write what is waiting and end the writer; the journal keeps what could not be written."""
        if self._writer is None:
            return
        self._cancel(self._adopt)
        self._cancel(self._renewal)
        self._adopting = False
        if self._noting is not None:
            self._noting.failed()
        deadline = time.monotonic() + _LATE_SECONDS
        while held := [entry.durable for entry in self._held() if not entry.durable.done()]:
            await asyncio.wait(held)
        # Requests that were cut off are being settled beside this.
        while self._journal.running and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        while held := [entry.durable for entry in self._held() if not entry.durable.done()]:
            await asyncio.wait(held)
        writer, self._writer = self._writer, None
        if self._noting is not None and (withdrawn := self._noting.withdrawn()):
            writer.extend_lease(withdrawn, lambda _: None)
        self._cancel(self._retry)
        await asyncio.to_thread(writer.stop)
        await asyncio.sleep(0)  # what the writer told last
        self._cancel(self._look)
        self._cancel(self._stall)
        self._retry = self._adopt = self._look = self._stall = None
        await self._end_journal()

    def admit(self, receipt: AnyReceipt) -> None:
        """Note an admitted request, as the row it becomes if this process dies.

        Raises ``ServerOverloaded`` when neither the journal nor the database can take its row.
        """
        if len(self._kept) >= MOST_KEPT:
            raise ServerOverloaded
        try:
            self._journal.admitted(receipt)
        except OSError:
            if not self._database_answers:
                raise ServerOverloaded from None

    async def admit_durably(self, receipt: AnyReceipt) -> None:
        """Note an admitted request wherever it has to be before it is dispatched.

        That is ``admit``, and with ``SVC_DURABLE_ADMISSIONS`` the database as well. Raises
        ``ServerOverloaded``.
        """
        if self._noting is None:
            self.admit(receipt)
            return
        is_away = not self._database_answers and not self._busy
        if is_away or self._writer is None or len(self._kept) >= MOST_KEPT:
            raise ServerOverloaded
        await self._noting.note(receipt)
        with suppress(OSError):  # the database vouches for it; the journal knows more of it later
            self._journal.admitted(receipt)

    def progress(self, figures: AnyProgress) -> None:
        """Note how far a running request has come."""
        self._journal.progress(figures)

    async def record(self, receipt: AnyReceipt, *, begun: bool | None = None) -> None:
        """Return when the row of ``receipt`` is durable.

        ``begun``: whether the client has got the beginning of its answer; by default one that is
        streamed has.

        It is written also when the caller is cancelled while it waits, and when the ledger has
        stopped. Raises ``InternalError`` when no place would take it; the answer must then not be
        given, and the row says so (``withheld``).
        """
        if self._loop is None:
            await self.start()
        elif self._writer is None:
            await self._record_late(receipt, begun)
            return
        assert self._loop is not None  # noqa: S101  # start() sets it
        entry = _Waiting(receipt, self._loop.create_future(), begun)
        self._waiting.append(entry)
        self._pump_soon()
        await asyncio.shield(entry.durable)

    # -- what goes to the database -----------------------------------------------------------

    def _pump_soon(self) -> None:
        """Look for work when all that can run now has run, so that rows come together.

        While the writer works nothing needs to look: its answer does. A worker whose last batch was
        of one row has nothing to wait for, and looks at once.
        """
        assert self._loop is not None  # noqa: S101  # only called after start()
        if self._pumping or (self._busy and self._database_answers):
            return
        if self._comes_alone and not self._busy:
            self._pump()
        else:
            self._pumping = True
            self._loop.call_soon(self._pump)

    def _pump(self) -> None:
        """Give the writer its next job, and the journal what must not wait for it."""
        self._pumping = False
        if not self._database_answers:
            self._fall_back()
        if self._busy or self._writer is None:
            return
        if not self._database_answers:
            self._retry_later()
            return
        if self._noting is not None and self._noting.lease_due:
            self._extend_lease(self._noting)
            return
        has_backlog = self._adopting or (self.rows_owed and time.monotonic() >= self._backlog_after)
        has_living = self._waiting or (self._noting is not None and self._noting.waits)
        if has_living and not (has_backlog and self._backlog_next):
            self._backlog_next = True
            self._write_waiting()
        elif has_backlog:
            self._backlog_next = False
            if self.rows_owed and time.monotonic() >= self._backlog_after:
                self._write_owed()
            else:
                self._adopt_some()
        elif self.rows_owed:
            self._retry_later()

    def _write_waiting(self) -> None:
        self._writing = self._waiting[:LARGEST_BATCH]
        self._comes_alone = len(self._writing) == 1
        del self._waiting[:LARGEST_BATCH]
        admitted = self._noting.take(LARGEST_BATCH) if self._noting is not None else []
        self._give([entry.receipt for entry in self._writing], [], admitted)

    def _write_owed(self) -> None:
        """Write a slice of what memory and the journal have for the database."""
        self._give(list(islice(self._kept.values(), SLICE)), self._journal.owed(SLICE))

    def _give(
        self, receipts: list[AnyReceipt], owed: list[Owed], admitted: Sequence[AnyReceipt] = ()
    ) -> None:
        assert self._writer is not None  # noqa: S101  # only called after start()
        self._at_database = frozenset(
            [*(each.request_id for each in receipts), *(each.request_id for each in owed)]
        )
        for each in owed:
            each.segment.hold()
        self._begin_job()
        self._writer.write(
            receipts,
            owed,
            lambda written: self._written(written, owed, noted=bool(admitted)),
            admitted,
        )

    def _extend_lease(self, noting: Noting) -> None:
        """Say that this process lives, and that requests which were refused are not admitted."""
        assert self._writer is not None  # noqa: S101  # only called after start()
        withdrawn, began = noting.withdrawn(), time.monotonic()

        def extended(written: Written) -> None:
            self._end_job()
            if written.failure is not None:
                noting.lease_due = True
                self._fail(written.failure)
            else:
                noting.withdrew(withdrawn, began)
                if not self._database_answers and self._writer is not None:
                    self._ask_again()  # that it takes this does not say that it takes rows
            self._pump()

        noting.lease_due = False
        self._begin_job()
        self._writer.extend_lease(withdrawn, extended)

    def _renew(self) -> None:
        """Have the lease extended, again and again."""
        assert self._loop is not None and self._noting is not None  # noqa: S101, PT018
        self._noting.lease_due = True
        self._pump_soon()
        every = settings.SVC_ADMISSION_LEASE_SECONDS / RENEWALS
        self._renewal = self._loop.call_later(every, self._renew)

    def _fail(self, failure: Exception) -> None:
        """The database has failed: rows go to the journal, admissions nowhere."""
        log.warning("ledger: the database failed: %s", type(failure).__name__)
        self._judge(answers=False)
        if self._noting is not None:
            self._noting.failed()

    def _begin_job(self) -> None:
        assert self._loop is not None  # noqa: S101  # only called after start()
        self._busy = True
        self._stall = self._loop.call_later(settings.SVC_LEDGER_ANSWER_SECONDS, self._stalled)
        if self._look is None:
            self._look = self._loop.call_later(_LOOK_SECONDS, self._look_after_writer)

    def _end_job(self) -> None:
        self._busy = False
        self._at_database = frozenset()
        self._cancel(self._stall)

    def _look_after_writer(self) -> None:
        """Look after the writer once a second for as long as it owes an answer."""
        assert self._loop is not None  # noqa: S101  # only called after start()
        self._look = None
        if self._busy:
            if self._writer is not None:
                self._writer.give_up_if_silent()
            self._look = self._loop.call_later(_LOOK_SECONDS, self._look_after_writer)

    def _written(self, written: Written, owed: list[Owed], *, noted: bool = False) -> None:
        """The writer's answer to a batch."""
        self._end_job()
        for each in owed:
            each.segment.release()
        self.rows_written += written.new
        self.rows_refused += written.refused
        self.refused_waiting += written.refused
        self._place(written.placed)
        for each in written.unreadable:
            log.critical("journal: row %s cannot be read back", each.request_id)
        self._journal.put_last(written.unreadable)
        writing, self._writing = self._writing, []
        left = [entry for entry in writing if not entry.durable.done()]
        if written.failure is not None:
            self._fail(written.failure)
            self._waiting = [entry for entry in left if entry.noted is None] + self._waiting
        else:
            if noted and self._noting is not None:
                self._noting.written()
            came_through = noted or bool(written.placed)
            if came_through:
                self._judge(answers=True)
            # Else nothing came through: it cannot be read, or is refused and no file takes it.
            self._beat_next = not came_through
            if not came_through:
                self._backlog_after = time.monotonic() + _RETRY_SECONDS
            for request_id in written.unplaced:
                if request_id in self._kept:
                    self._kept[request_id] = self._kept.pop(request_id)
            for entry in left:
                if entry.noted is None:
                    self._note(entry)
        self._pump()

    def _place(self, request_ids: Iterable[str]) -> None:
        """These rows are where they belong: whoever waits for them need not any more."""
        placed = set(request_ids)
        for entry in (*self._writing, *self._unsynced):
            if entry.request_id in placed:
                entry.release()
        if self._kept:
            for request_id in placed:
                self._kept.pop(request_id, None)
        self._journal.written(request_ids)

    def _held(self) -> list[_Waiting]:
        return [*self._writing, *self._unsynced, *self._waiting]

    # -- whether the database answers --------------------------------------------------------

    def _judge(self, *, answers: bool) -> None:
        """The one place that says so: away when a job fails or takes too long, back after a write."""
        if answers != self._database_answers:
            log.warning(
                "ledger: the database answers again"
                if answers
                else "ledger: the database does not answer; rows go to the journal"
            )
        self._database_answers = answers

    def _stalled(self) -> None:
        """The database keeps rows waiting: let the journal vouch for them meanwhile."""
        assert self._loop is not None  # noqa: S101  # only called after start()
        self._stall = None
        is_awaited = self._noting is not None and self._noting.is_awaited
        if self._writing or self._waiting or is_awaited:
            self._judge(answers=False)
            self._fall_back()
        elif self._busy:
            self._stall = self._loop.call_later(settings.SVC_LEDGER_ANSWER_SECONDS, self._stalled)

    def _retry_later(self) -> None:
        assert self._loop is not None  # noqa: S101  # only called after start()
        if self._retry is None:
            self._retry = self._loop.call_later(_RETRY_SECONDS, self._try_again)

    def _try_again(self) -> None:
        """Ask a database that was away, with what it is owed, else with a heartbeat."""
        self._retry = None
        if self._busy or self._writer is None:
            return
        self._note_kept()
        if self._noting is not None and self._noting.lease_due:
            self._extend_lease(self._noting)
        else:
            self._ask_again()

    def _ask_again(self) -> None:
        assert self._writer is not None  # noqa: S101  # only called before the end
        if self.rows_owed and not self._beat_next:
            self._write_owed()
        elif not self._database_answers:
            self._beat_next = False
            self._begin_job()
            self._writer.beat(self._beaten)
        else:
            self._pump()

    def _beaten(self, written: Written) -> None:
        self._end_job()
        self._judge(answers=written.failure is None)
        if written.failure is not None and self._noting is not None:
            self._noting.failed()
        self._pump()

    # -- the journal -------------------------------------------------------------------------

    def _fall_back(self) -> None:
        """Put every receipt that is held back into the journal, to be synced in one go."""
        waiting, self._waiting = self._waiting, []
        for entry in (*self._writing, *waiting):
            if entry.noted is None and not entry.durable.done():
                self._note(entry)

    def _note(self, entry: _Waiting) -> None:
        """Put one receipt into the journal, and withhold its answer when that takes nothing."""
        assert self._loop is not None  # noqa: S101  # only called after start()
        try:
            entry.noted = self._journal.settled(entry.receipt)
        except OSError:
            self._withhold(entry)
            return
        self._unsynced.append(entry)
        if self._syncing is None:
            self._syncing = self._loop.create_task(self._sync())

    def _withhold(self, entry: _Waiting) -> None:
        """No place takes the row: its answer is not given, and memory has it until one does.

        What is at the database may be written yet, so that is waited for.
        """
        if entry.request_id in self._at_database:
            if entry not in self._writing:
                self._writing.append(entry)
            entry.noted = None
            return
        receipt = withheld(entry.receipt, entry.begun)
        self._kept[receipt.request_id] = receipt
        # If this process dies now, what was noted before must not be found.
        try:
            self._journal.settled(receipt)
        except OSError:
            log.error("ledger: no place for row %s; its answer is withheld", receipt.request_id)
        if not entry.durable.done():
            entry.durable.set_exception(InternalError())

    def _note_kept(self) -> None:
        """Offer what is only in memory to the journal again."""
        for request_id, receipt in self._kept.items():
            if not self._journal.owes_row_of(request_id):
                try:
                    self._journal.settled(receipt)
                except OSError:
                    return

    async def _sync(self) -> None:
        """Sync the journal until nothing waits for it, releasing the answers each round."""
        assert self._loop is not None  # noqa: S101  # only called after start()
        while self._unsynced:
            entries = list(self._unsynced)
            failed: set[Segment] = set()
            for segment in {entry.noted for entry in entries if entry.noted is not None}:
                if all(entry.durable.done() for entry in entries if entry.noted is segment):
                    continue  # the database was faster
                segment.hold()
                try:
                    await self._loop.run_in_executor(self._syncer, segment.sync)
                except OSError as error:
                    log.error("journal: cannot be synced: %s", error)
                    self._journal.failed_to_sync(segment)
                    failed.add(segment)
                finally:
                    segment.release()
            self._unsynced = self._unsynced[len(entries) :]
            for entry in entries:
                if entry.noted not in failed:
                    entry.release()
                elif not entry.durable.done():
                    entry.failed_syncs += 1
                    if entry.failed_syncs == 1:
                        self._note(entry)  # in a segment that has not failed
                    else:
                        self._withhold(entry)
        self._syncing = None

    # -- adoption ----------------------------------------------------------------------------

    def _begin_adoption(self) -> None:
        assert self._loop is not None  # noqa: S101  # only called after start()
        self._adopting = True
        self._journal.say_what_is_written()
        every = _ADOPT_SECONDS
        if self._noting is not None:
            every = min(every, settings.SVC_ADMISSION_LEASE_SECONDS / 2)
        self._adopt = self._loop.call_later(every, self._begin_adoption)
        self._pump_soon()

    def _adopt_some(self) -> None:
        assert self._writer is not None  # noqa: S101  # only called after start()
        refused_too = time.monotonic() - self._refused_tried_at > _REFUSED_SECONDS
        self._begin_job()
        self._writer.adopt(
            lambda adopted: self._adopted(adopted, refused_too), refused_too=refused_too
        )

    def _adopted(self, adopted: Adopted, refused_too: bool) -> None:
        self._end_job()
        if adopted.over:
            self._adopting = False
            self.rows_written += adopted.found.new
            self.unreadable_files = frozenset(adopted.found.unreadable)
            if refused_too:
                self._refused_tried_at = time.monotonic()
                self.refused_waiting = 0
            self.refused_waiting += adopted.found.refused_rows
        self._pump()

    # -- the end -----------------------------------------------------------------------------

    async def _record_late(self, receipt: AnyReceipt, begun: bool | None) -> None:
        """Write the row of a request that ended after the ledger did."""
        assert self._loop is not None  # noqa: S101  # the ledger had started
        async with self._late:
            written: asyncio.Future[Written] = self._loop.create_future()
            writer = LedgerWriter(self._tell, self._journal.directory)
            writer.start()
            writer.write([receipt], [], written.set_result)
            await asyncio.to_thread(writer.stop)
            await asyncio.sleep(0)  # what the writer told last
            if written.done() and written.result().placed:
                self._place(written.result().placed)
                return
            entry = _Waiting(receipt, self._loop.create_future(), begun)
            self._note(entry)
            await self._end_journal()
            await entry.durable

    async def _end_journal(self) -> None:
        self._note_kept()
        if self._syncing is not None:
            await self._syncing
        if self._syncer is not None:
            self._syncer.shutdown()
            self._syncer = None
        if lost := [each for each in self._kept if not self._journal.owes_row_of(each)]:
            log.critical("ledger: no place took %d rows before the end", len(lost))
        self._journal.close()

    def _tell(self, what: Callable[[], None]) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(what)

    @staticmethod
    def _cancel(timer: asyncio.TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()


ledger = Ledger()
