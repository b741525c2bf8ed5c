"""Keeps rows that the database does not accept in time: in the journal, else in memory."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Final

import msgspec

from core.errors import InternalError
from core.monitoring.current_request import without_request
from usage.ledger.journal.adoption import SLICE
from usage.ledger.journal.journal import Journal, Owed
from usage.ledger.journal.segments import Segment
from usage.receipts import AnyReceipt, withheld

log = logging.getLogger(__name__)

MAX_IN_MEMORY: Final = 10_000
"""Rows in memory, accepted by neither database nor journal, at which admissions stop."""


class Waiting(msgspec.Struct, eq=False):
    """A receipt whose answer is held back until its row is durable.

    The request awaits ``answer``, which its cancellation cancels; ``durable`` ends all the same, with
    the row. ``begun``: whether the client has received the beginning of its answer; ``segment``: the
    journal segment to be synced.
    """

    receipt: AnyReceipt
    answer: asyncio.Future[None]
    durable: asyncio.Future[None]
    begun: bool | None = None
    segment: Segment | None = None
    failed_syncs: int = 0

    @property
    def request_id(self) -> str:
        return self.receipt.request_id

    def release(self) -> None:
        """Release the answer, because its row is durable."""
        if not self.durable.done():
            self.durable.set_result(None)
            if not self.answer.done():
                self.answer.set_result(None)

    def withhold(self) -> None:
        """Fail the answer, because its row could not be stored."""
        if not self.durable.done():
            self.durable.set_result(None)
            if not self.answer.done():
                self.answer.set_exception(InternalError())


class JournalFallback:
    """Syncs rows to ``journal`` and releases their answers; belongs to one event loop.

    A row that the journal does not accept stays in memory, and its answer is withheld. ``may_wait``
    says whether the database may still write a row, whose answer then waits for that.
    """

    def __init__(self, journal: Journal, may_wait: Callable[[Waiting], bool]) -> None:
        self.journal = journal
        self._may_wait = may_wait
        self._loop = asyncio.get_running_loop()
        # None after the end: then rows are synced in a thread of the event loop's.
        self._syncer: ThreadPoolExecutor | None = ThreadPoolExecutor(
            1, thread_name_prefix="journal-sync"
        )
        self._syncing: asyncio.Task[None] | None = None
        self._in_memory: dict[str, AnyReceipt] = {}
        self.unsynced: list[Waiting] = []
        """Receipts in the journal whose answer waits until they are synced."""

    @property
    def rows_owed(self) -> int:
        """Rows that are in the journal or in memory and not yet in the database."""
        return self.journal.owes + len(self._in_memory)

    @property
    def rows_in_memory(self) -> int:
        """Rows in memory only."""
        return len(self._in_memory)

    @property
    def is_full(self) -> bool:
        """Whether so many rows are in memory that nothing may be admitted."""
        return len(self._in_memory) >= MAX_IN_MEMORY

    def withheld(self, request_ids: frozenset[str]) -> frozenset[str]:
        """Those of ``request_ids`` whose row is in memory, because their answer was withheld."""
        return request_ids.intersection(self._in_memory) if self._in_memory else frozenset()

    def owed(self) -> tuple[list[AnyReceipt], list[Owed]]:
        """A slice of the rows that the database is owed: from memory, and from the journal."""
        return list(islice(self._in_memory.values(), SLICE)), self.journal.owed(SLICE)

    def keep(self, entry: Waiting) -> None:
        """Write one receipt to the journal, to be synced; withhold its answer when that fails."""
        try:
            entry.segment = self.journal.settled(entry.receipt)
        except OSError:
            self._withhold(entry)
            return
        self.unsynced.append(entry)
        if self._syncing is None:
            self._syncing = self._loop.create_task(self._sync(), context=without_request())

    def written(self, request_ids: Iterable[str]) -> None:
        """Drop rows that the database has, or a file of refused rows."""
        if self._in_memory:
            for request_id in request_ids:
                self._in_memory.pop(request_id, None)
        self.journal.written(request_ids)

    def unplaced(self, request_ids: Iterable[str], unreadable: Iterable[Owed]) -> None:
        """Move rows that could not be written behind the others that are owed."""
        for request_id in request_ids:
            if request_id in self._in_memory:
                self._in_memory[request_id] = self._in_memory.pop(request_id)
        self.journal.move_to_end(unreadable)

    def retry(self) -> None:
        """Retry to journal the rows that are only in memory."""
        for request_id, receipt in self._in_memory.items():
            if not self.journal.owes_row_of(request_id):
                try:
                    self.journal.settled(receipt)
                except OSError:
                    return

    async def close(self) -> None:
        """Sync what waits and close the journal, which keeps the rows that it owes.

        May be called again, when a row came later.
        """
        self.retry()
        if self._syncing is not None:
            await self._syncing
        if self._syncer is not None:
            self._syncer.shutdown()
            self._syncer = None
        if lost := [each for each in self._in_memory if not self.journal.owes_row_of(each)]:
            log.critical("ledger: %d rows could not be stored before the stop", len(lost))
        self.journal.close()

    def _withhold(self, entry: Waiting) -> None:
        """Withhold the answer of a row that cannot be stored; keep the row in memory until it can."""
        if self._may_wait(entry):
            entry.segment = None
            return
        receipt = withheld(entry.receipt, entry.begun)
        self._in_memory[receipt.request_id] = receipt
        # If this process dies now, the earlier record must not be adopted.
        try:
            self.journal.settled(receipt)
        except OSError:
            log.error("ledger: row %s cannot be stored; its answer is withheld", receipt.request_id)
        entry.withhold()

    async def _sync(self) -> None:
        """Sync the journal until no row waits for it; release the synced answers each round."""
        while self.unsynced:
            entries = list(self.unsynced)
            failed: set[Segment] = set()
            for segment in {entry.segment for entry in entries if entry.segment is not None}:
                if all(entry.durable.done() for entry in entries if entry.segment is segment):
                    continue  # the database was faster
                segment.hold()
                try:
                    await self._loop.run_in_executor(self._syncer, segment.sync)
                except OSError as error:
                    log.error("journal: cannot be synced: %s", error)
                    self.journal.failed_to_sync(segment)
                    failed.add(segment)
                finally:
                    segment.release()
            self.unsynced = self.unsynced[len(entries) :]
            for entry in entries:
                if entry.segment not in failed:
                    entry.release()
                elif not entry.durable.done():
                    entry.failed_syncs += 1
                    if entry.failed_syncs == 1:
                        self.keep(entry)  # in a segment that has not failed
                    else:
                        self._withhold(entry)
        self._syncing = None
