"""The only writer of usage rows and speech rows.

``admit`` notes a request in the local journal before it runs; ``record`` returns when its row is
durable, and only then may the answer's last bytes leave. Rows are written by group commit: while
one transaction runs in the writer's thread the next rows gather, so a row waits for no timer and
a busy worker pays for few commits.

When the database does not answer within ``SVC_LEDGER_ANSWER_SECONDS`` the rows are synced to the
journal instead and the answers are released; they are shipped when the database is back. With
neither place left, ``admit`` refuses: nothing is ever served unmetered.
See docs/explain/metering.md.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
from django.conf import settings
from django.db import Error

from svc_project.lib.errors import InternalError, ServerOverloaded
from usage.journal import Journal, Segment
from usage.ledger_writer import LARGEST_BATCH, LedgerWriter
from usage.receipts import AnyProgress, AnyReceipt

log = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0
_ADOPT_SECONDS = 15.0
_LOOK_SECONDS = 1.0


class _Waiting(msgspec.Struct, eq=False):
    """A receipt whose answer is held back; ``noted`` once the journal has it."""

    receipt: AnyReceipt
    durable: asyncio.Future[None]
    noted: bool = False


class Ledger:
    """Writes the rows of one process. All public methods belong to one event loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: list[_Waiting] = []
        self._writing: list[_Waiting] = []
        self._writer: LedgerWriter | None = None
        self._syncer: ThreadPoolExecutor | None = None
        self._unsynced: list[_Waiting] = []
        self._unsynced_segments: set[Segment] = set()
        self._syncing: asyncio.Task[None] | None = None
        self._stall: asyncio.TimerHandle | None = None
        self._look: asyncio.TimerHandle | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._adopt: asyncio.TimerHandle | None = None
        self._database_answers = True
        self._shipping = False
        self._journal = Journal(Path(), 0)
        self.rows_written = 0
        """Rows that this process brought into the database."""

    @property
    def rows_waiting(self) -> int:
        """Requests whose answer is held back until their row is durable."""
        return len(self._waiting) + len(self._writing) + len(self._unsynced)

    @property
    def journal_bytes(self) -> int:
        """Bytes of the journal of this process."""
        return self._journal.size

    @property
    def database_answers(self) -> bool:
        """Whether rows go to the database, and not to the journal instead."""
        return self._database_answers

    def has_place(self) -> bool:
        """Whether a row could be made durable now; asks the disk when the database is away."""
        return self._database_answers or self._journal.takes_more()

    async def start(self) -> None:
        """Take up work: adopt what dead processes left in the journal, start the writer."""
        if self._writer is not None:
            return
        self._loop = asyncio.get_running_loop()
        directory = settings.SVC_DATA_DIR / "journal"
        self._journal = Journal(directory, settings.SVC_JOURNAL_MAX_BYTES)
        self._syncer = ThreadPoolExecutor(1, thread_name_prefix="journal-sync")
        self._writer = LedgerWriter(self._tell)
        self._writer.start()
        self._adopt_orphans()

    async def stop(self) -> None:
        """Write what is waiting and end the writer; the journal keeps what could not be written."""
        if self._writer is None:
            return
        for timer in (self._retry, self._adopt, self._look):
            if timer is not None:
                timer.cancel()
        while held := [
            entry.durable
            for entry in (*self._writing, *self._waiting, *self._unsynced)
            if not entry.durable.done()
        ]:
            await asyncio.wait(held)
        await asyncio.to_thread(self._writer.stop)
        if self._syncer is not None:
            self._syncer.shutdown()
        self._journal.close()
        self._writer = None

    def admit(self, receipt: AnyReceipt) -> None:
        """Note an admitted request, as the row it becomes if this process dies.

        Raises ``ServerOverloaded`` when neither the journal nor the database can take it.
        """
        try:
            self._journal.admitted(receipt)
        except OSError as error:
            log.error("journal: admission not noted: %s", error)
            if not self._database_answers:
                raise ServerOverloaded from None

    def progress(self, figures: AnyProgress) -> None:
        """Note how far a running request has come."""
        self._journal.progress(figures)

    async def record(self, receipt: AnyReceipt) -> None:
        """Return when the row of ``receipt`` is durable.

        It is written also when the caller is cancelled while it waits. Raises ``InternalError``
        when no place would take it; the answer must then not be given.
        """
        if self._loop is None:
            await self.start()
        assert self._loop is not None  # noqa: S101  # start() sets it
        entry = _Waiting(receipt, self._loop.create_future())
        self._waiting.append(entry)
        if not self._database_answers:
            self._fall_back()
        elif not self._writing:
            self._dispatch()
        await asyncio.shield(entry.durable)

    # -- the event loop's side ---------------------------------------------------------------

    def _dispatch(self) -> None:
        assert self._loop is not None and self._writer is not None  # noqa: S101, PT018  # after start()
        self._writing = self._waiting[:LARGEST_BATCH]
        del self._waiting[:LARGEST_BATCH]
        self._watch()
        self._writer.write([entry.receipt for entry in self._writing], self._written)
        self._stall = self._loop.call_later(settings.SVC_LEDGER_ANSWER_SECONDS, self._stalled)

    def _watch(self) -> None:
        """Look after the writer once a second for as long as it owes an answer."""
        assert self._loop is not None  # noqa: S101  # only called after start()
        if self._look is None:
            self._look = self._loop.call_later(_LOOK_SECONDS, self._look_after_writer)

    def _look_after_writer(self) -> None:
        self._look = None
        if self._writer is not None:
            self._writer.give_up_if_silent()
        if self._writing or self._shipping:
            self._watch()

    def _stalled(self) -> None:
        """The database keeps a batch waiting: let the journal vouch for it meanwhile."""
        if self._database_answers:
            log.warning("ledger: the database does not answer; rows go to the journal")
        self._database_answers = False
        self._fall_back()

    def _fall_back(self) -> None:
        """Put every receipt that is held back into the journal, to be synced in one go."""
        assert self._loop is not None  # noqa: S101  # only called after start()
        for entry in (*self._writing, *self._waiting):
            if entry.noted or entry.durable.done():
                continue
            try:
                self._unsynced_segments.add(self._journal.settled(entry.receipt))
            except OSError as error:
                log.error("journal: row %s not noted: %s", entry.receipt.request_id, error)
                entry.durable.set_exception(InternalError())
                continue
            entry.noted = True
            self._unsynced.append(entry)
        self._waiting = []
        if self._unsynced and self._syncing is None:
            self._syncing = self._loop.create_task(self._sync())
        if self._retry is None and not self._writing:
            self._retry = self._loop.call_later(_RETRY_SECONDS, self._ship)

    async def _sync(self) -> None:
        """Sync the journal until nothing waits for it, releasing the answers each round."""
        assert self._loop is not None  # noqa: S101  # only called after start()
        while self._unsynced:
            entries, self._unsynced = self._unsynced, []
            segments, self._unsynced_segments = self._unsynced_segments, set()
            failed = False
            for segment in segments:
                try:
                    await self._loop.run_in_executor(self._syncer, segment.sync)
                except OSError as error:
                    log.error("journal: cannot be synced: %s", error)
                    failed = True
            for entry in entries:
                if entry.durable.done():
                    continue
                if failed:
                    entry.durable.set_exception(InternalError())
                else:
                    entry.durable.set_result(None)
        self._syncing = None

    def _written(self, error: Error | None) -> None:
        """The writer's answer to the batch that was dispatched."""
        assert self._loop is not None  # noqa: S101  # only called after start()
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
        if error is None:
            request_ids = [entry.receipt.request_id for entry in self._writing]
            self.rows_written += len(request_ids)
            for entry in self._writing:
                if not entry.durable.done():
                    entry.durable.set_result(None)
            self._writing = []
            self._journal.written(request_ids)
            if not self._database_answers:
                self._ship()
            elif self._waiting:
                self._dispatch()
            return
        log.warning("ledger: the database refused a batch: %s", type(error).__name__)
        self._database_answers = False
        self._waiting = self._writing + self._waiting
        self._writing = []
        self._fall_back()

    def _ship(self) -> None:
        """Try to bring what the journal owes into the database."""
        self._retry = None
        if self._shipping or self._writer is None:
            return
        self._shipping = True
        self._watch()
        self._writer.ship([segment.path for segment in self._journal.owed()], self._shipped)

    def _shipped(self, request_ids: list[str], complete: bool) -> None:
        assert self._loop is not None  # noqa: S101  # only called after start()
        self._shipping = False
        self.rows_written += len(request_ids)
        self._journal.written(request_ids)
        if not complete:
            self._retry = self._loop.call_later(_RETRY_SECONDS, self._ship)
            return
        if not self._database_answers:
            log.warning("ledger: the database answers again")
        self._database_answers = True
        if self._journal.owed():
            self._retry = self._loop.call_later(_RETRY_SECONDS, self._ship)
        if self._waiting and not self._writing:
            self._dispatch()

    def _adopt_orphans(self) -> None:
        assert self._loop is not None and self._writer is not None  # noqa: S101, PT018  # after start()
        self._writer.adopt(self._journal.directory)
        self._adopt = self._loop.call_later(_ADOPT_SECONDS, self._adopt_orphans)

    def _tell(self, what: Callable[[], None]) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(what)


ledger = Ledger()
