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
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
from django.conf import settings
from django.db import DataError, Error, IntegrityError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from svc_project.lib.connections import cut, keep_usable
from svc_project.lib.errors import InternalError, ServerOverloaded
from usage import rows
from usage.journal import Journal, Segment, orphans, read_segment
from usage.receipts import AnyProgress, AnyReceipt

log = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0
_ADOPT_SECONDS = 15.0
_STOP_SECONDS = 5.0
_LARGEST_BATCH = 500
_LOOK_SECONDS = 1.0
_GIVE_UP_SECONDS = 8.0
"""After which a database that took a statement and stays silent is asked on a new connection."""


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
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        self._syncer: ThreadPoolExecutor | None = None
        self._unsynced: list[_Waiting] = []
        self._unsynced_segments: set[Segment] = set()
        self._syncing: asyncio.Task[None] | None = None
        self._stall: asyncio.TimerHandle | None = None
        self._look: asyncio.TimerHandle | None = None
        self._connection: BaseDatabaseWrapper | None = None
        self._asked_at: float | None = None
        """When the writer's statement began, on the monotonic clock; None between statements."""
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
        self._writer = threading.Thread(target=self._write_forever, name="ledger", daemon=True)
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
        self._work.put(None)
        await asyncio.get_running_loop().run_in_executor(None, self._writer.join, _STOP_SECONDS)
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
        assert self._loop is not None  # noqa: S101  # only called after start()
        self._writing = self._waiting[:_LARGEST_BATCH]
        del self._waiting[:_LARGEST_BATCH]
        batch = [entry.receipt for entry in self._writing]
        self._watch()
        self._work.put(lambda: self._write(batch))
        self._stall = self._loop.call_later(settings.SVC_LEDGER_ANSWER_SECONDS, self._stalled)

    def _watch(self) -> None:
        """Look after the writer once a second for as long as it owes an answer."""
        assert self._loop is not None  # noqa: S101  # only called after start()
        if self._look is None:
            self._look = self._loop.call_later(_LOOK_SECONDS, self._look_after_writer)

    def _look_after_writer(self) -> None:
        """Give the writer's connection up when a statement gets no answer.

        A connection may die without a word (a firewall forgets it, a pooler hangs); waiting for
        it would keep the rows in the journal until the process ends. Asking again is safe: a row
        that was written after all is not written twice.
        """
        self._look = None
        asked_at = self._asked_at
        if asked_at is not None and time.monotonic() - asked_at > _GIVE_UP_SECONDS:
            log.warning("ledger: the database stays silent; its connection is given up")
            if self._connection is not None:
                cut(self._connection)
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

    def _written(self, request_ids: list[str], error: Error | None) -> None:
        """The writer's answer to the batch that was dispatched."""
        assert self._loop is not None  # noqa: S101  # only called after start()
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
        if error is None:
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
        if self._shipping:
            return
        self._shipping = True
        paths = [segment.path for segment in self._journal.owed()]
        self._watch()
        self._work.put(lambda: self._ship_segments(paths))

    def _shipped(self, request_ids: list[str], *, complete: bool) -> None:
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
        assert self._loop is not None  # noqa: S101  # only called after start()
        self._work.put(self._adopt_quietly)
        self._adopt = self._loop.call_later(_ADOPT_SECONDS, self._adopt_orphans)

    # -- the writer's side -------------------------------------------------------------------

    def _write_forever(self) -> None:
        self._connection = connections["default"]
        while (work := self._work.get()) is not None:
            try:
                work()
            except Exception:
                log.exception("ledger: the writer failed")
            finally:
                self._asked_at = None
        connections.close_all()

    def _asking(self) -> None:
        """The writer begins a statement."""
        self._asked_at = time.monotonic()

    def _write(self, batch: list[AnyReceipt]) -> None:
        request_ids = [receipt.request_id for receipt in batch]
        failure: Error | None = None
        try:
            keep_usable()
            _insert_all(batch, self._asking)
        except Error as error:
            failure = error
            connections.close_all()
        except BaseException:
            failure = Error()
            raise
        finally:
            self._tell(lambda: self._written(request_ids, failure))

    def _ship_segments(self, paths: list[Path]) -> None:
        shipped: list[str] = []
        complete = False
        try:
            keep_usable()
            for path in paths:
                settled = list(read_segment(path.read_bytes()).settled.values())
                _insert_all(settled, self._asking)
                shipped += [receipt.request_id for receipt in settled]
            if not paths:
                connections["default"].ensure_connection()
            complete = True
        except (Error, OSError):
            connections.close_all()
        finally:
            self._tell(lambda: self._shipped(shipped, complete=complete))

    def _adopt_quietly(self) -> None:
        try:
            adopt(self._journal.directory, self._asking)
        except Error as error:
            log.warning("ledger: nothing adopted, the database: %s", type(error).__name__)
            connections.close_all()

    def _tell(self, what: Callable[[], None]) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(what)


def _insert_all(receipts: Sequence[AnyReceipt], asking: Callable[[], None] = lambda: None) -> int:
    """Write ``receipts``; one that breaks a constraint is logged and left out, not the batch.

    ``asking`` is called before each statement. Returns how many were new.
    """
    new = 0
    for first in range(0, len(receipts), _LARGEST_BATCH):
        batch = receipts[first : first + _LARGEST_BATCH]
        asking()
        try:
            new += rows.insert(batch)
        except (IntegrityError, DataError):
            for receipt in batch:
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


def adopt(directory: Path, asking: Callable[[], None] = lambda: None) -> int:
    """Write the rows that dead processes left in ``directory``; returns how many were missing.

    A request last seen running becomes a row with the outcome ``interrupted`` and the figures
    last noted. Raises ``django.db.Error`` when the database does not answer; then nothing is lost
    and the next call tries again. ``asking`` is called before each statement.
    """
    adopted = 0
    for orphan in orphans(directory):
        found = orphan.read()
        receipts = [*found.settled.values(), *found.running.values()]
        try:
            keep_usable()
            new = _insert_all(receipts, asking)
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


ledger = Ledger()
