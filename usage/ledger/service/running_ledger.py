"""The running ledger: admits requests, and holds their answers back until their rows are durable."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Final

from django.conf import settings
from django.db import connection

from svc_project.lib.errors import ServerOverloaded
from usage.ledger.admissions.lease import Lease
from usage.ledger.journal.journal import Journal
from usage.ledger.service.figures import Figures
from usage.ledger.service.group_commit import GroupCommit
from usage.ledger.service.journal_admissions import JournalAdmissions
from usage.ledger.service.waiting import Waiting
from usage.ledger.writer import LedgerWriter, Written
from usage.receipts import AnyProgress, AnyReceipt

_SETTLE_SECONDS: Final = 1.0
"""How long ``close`` waits for requests that are still being settled."""


class RunningLedger:
    """The rows of one process from now until ``close``, in the running event loop.

    After ``close`` nothing is admitted, and the row of a request that ends later is still written.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._directory = settings.SVC_DATA_DIR / "journal"
        self._journal = Journal(self._directory, settings.SVC_JOURNAL_MAX_BYTES)
        self._journal_admissions = JournalAdmissions(self._journal)
        admits_always = settings.SVC_DURABLE_ADMISSIONS and connection.vendor == "postgresql"
        self._commits = GroupCommit(self._journal, admits_always=admits_always)
        self._admissions = self._commits.admissions
        self._fallback = self._commits.fallback
        self._late = asyncio.Lock()
        self.is_closed = False
        """Whether ``close`` has begun to stop the writer."""

    @property
    def figures(self) -> Figures:
        """The state of this ledger."""
        adoption = self._commits.adoption
        return Figures(
            rows_written=self._commits.rows_written + adoption.rows_written,
            rows_waiting=len(self._commits.unfinished),
            rows_owed=self._fallback.rows_owed,
            rows_in_memory=self._fallback.rows_in_memory,
            rows_refused=self._commits.rows_refused,
            refused_waiting=adoption.refused_waiting,
            unreadable_files=adoption.unreadable_files,
            journal_bytes=self._journal.size,
            journal_works=self._journal.works,
            database_answers=self._commits.database_answers,
        )

    def accepts_rows(self) -> bool:
        """Whether a row could be made durable now; tries the disk when the database is away."""
        if self._fallback.is_full:
            return False
        if self._commits.database_answers:
            return True
        return not self._admissions.is_always_used and self._journal.accepts_records()

    async def admit(self, receipt: AnyReceipt) -> None:
        """Store an admitted request (``usage.ledger.ledger.Ledger.admit_durably``)."""
        if self._fallback.is_full:
            raise ServerOverloaded
        if self._admissions.is_always_used:
            await self._commit_admission(receipt)
            with suppress(OSError):  # the database has it; the journal only adds progress
                self._journal.admitted(receipt)
            return
        try:
            await self._journal_admissions.admit(receipt)
        except OSError:
            await self._commit_admission(receipt)

    def progress(self, progress: AnyProgress) -> None:
        """Journal the progress of a running request."""
        self._journal.progress(progress)

    async def record(self, receipt: AnyReceipt, begun: bool | None) -> None:
        """Return when the row is durable (``usage.ledger.ledger.Ledger.record``)."""
        entry = Waiting(receipt, self._loop.create_future(), begun)
        if self.is_closed:
            await self._record_late(entry)
            return
        self._commits.add(entry)
        await asyncio.shield(entry.durable)

    async def close(self) -> None:
        """Write the waiting rows and stop the writer; the journal keeps rows that failed."""
        self._commits.withdraw()
        deadline = time.monotonic() + _SETTLE_SECONDS
        await self._until_nothing_is_held()
        # Aborted requests are settled concurrently.
        while self._is_settling() and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await self._until_nothing_is_held()
        self.is_closed = True
        await self._commits.close()

    def _is_settling(self) -> bool:
        return bool(self._journal.running or self._admissions.running)

    async def _until_nothing_is_held(self) -> None:
        while held := [
            entry.durable for entry in self._commits.unfinished if not entry.durable.done()
        ]:
            await asyncio.wait(held)

    async def _commit_admission(self, receipt: AnyReceipt) -> None:
        if self._commits.is_away or self.is_closed:
            raise ServerOverloaded
        await self._admissions.commit(receipt)

    async def _record_late(self, entry: Waiting) -> None:
        """Write the row of a request that ended after the end."""
        async with self._late:
            written: asyncio.Future[Written] = self._loop.create_future()
            lease = Lease(settings.SVC_ADMISSION_LEASE_SECONDS)
            writer = LedgerWriter(self._loop, self._directory, lease)
            admitted = self._admissions.held_of([entry.request_id])
            writer.write([entry.receipt], [], written.set_result, ended=admitted)
            await asyncio.to_thread(writer.close)
            await asyncio.sleep(0)  # runs the writer's last callback
            if written.done() and written.result().placed:
                self._commits.settle(written.result().placed)
                return
            self._fallback.keep(entry)
            await self._fallback.close()
            await entry.durable
