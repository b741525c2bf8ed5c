"""Admissions on their way to the journal: those of one turn of the event loop are written together."""

from __future__ import annotations

import asyncio

import msgspec

from usage.ledger.journal.journal import Journal
from usage.receipts import AnyReceipt


class _Pending(msgspec.Struct, eq=False):
    receipt: AnyReceipt
    written: asyncio.Future[None]


class JournalAdmissions:
    """Writes admissions to ``journal``; belongs to the running event loop.

    Each ``write(2)`` releases the interpreter's lock, and the event loop then waits until the ledger's
    thread releases it. One write for each request took a seventh of a worker's processor time.
    """

    def __init__(self, journal: Journal) -> None:
        self._loop = asyncio.get_running_loop()
        self._journal = journal
        self._pending: list[_Pending] = []

    async def admit(self, receipt: AnyReceipt) -> None:
        """Return when the admission is in the journal. Raises ``OSError`` when it has no room.

        A request that is cancelled meanwhile is not admitted.
        """
        if not self._pending:
            self._loop.call_soon(self._write)
        entry = _Pending(receipt, self._loop.create_future())
        self._pending.append(entry)
        try:
            await entry.written
        except asyncio.CancelledError:
            if not entry.written.cancelled():
                # It is in the journal, where it must not look like a request that still runs.
                self._journal.written([receipt.request_id])
            raise

    def _write(self) -> None:
        pending = [entry for entry in self._pending if not entry.written.done()]
        self._pending = []
        if not pending:
            return
        try:
            self._journal.admitted(*(entry.receipt for entry in pending))
        except Exception as error:
            # Of any kind: a request whose future gets no outcome waits for ever.
            for entry in pending:
                entry.written.set_exception(error)
        else:
            for entry in pending:
                entry.written.set_result(None)
