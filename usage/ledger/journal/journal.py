"""The local journal of one process: the requests that the database may not have yet.

One directory (``SVC_DATA_DIR/journal``) with files of records (``usage.ledger.journal.records``) that
the process holds locked (``usage.ledger.journal.segments``). ``write(2)`` of a record survives the
death of the process; only settled records are also synced to disk, because an answer is released
only after one of those.

Running requests are in the newest segment: when a segment is full, they are copied to the next. So
an older segment holds only settled requests that are owed to the database; it is deleted with the
last of them, however long another request runs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from core.monitoring.logs import Outages
from usage.ledger.journal import records, segments
from usage.ledger.journal.segments import Segment
from usage.receipts import AnyProgress, AnyReceipt

log = logging.getLogger(__name__)

SEGMENT_BYTES = 16 * 1024 * 1024
_PROBE_BYTES: Final = 16 * 1024
"""What must fit before a journal that refused a record counts as working again. A record that is cut off
frees a page, so that the next, smaller one is taken."""


class _Running(msgspec.Struct, eq=False):
    """An admitted request, as it is copied to the next segment."""

    admitted: AnyReceipt
    progress: AnyProgress | None = None


class _Pending(msgspec.Struct, eq=False):
    """A request whose admission is written in this turn of the event loop."""

    receipt: AnyReceipt
    written: asyncio.Future[None]


class Owed(msgspec.Struct, eq=False):
    """The place of a settled request that the database does not have."""

    request_id: str
    segment: Segment
    offset: int
    length: int

    def read(self) -> AnyReceipt | None:
        """Return the receipt; None when the place cannot be read or was overwritten."""
        try:
            return records.settled_in(self.segment.read(self.offset, self.length))
        except OSError as error:
            log.error("journal: %s cannot be read: %s", self.segment.path.name, error.strerror)
            return None


class Journal:
    """The segments of one process. Not thread-safe; ``Segment.sync`` and ``Owed.read`` are.

    ``max_bytes`` bounds all live segments together; beyond it appending raises ``OSError``.
    """

    def __init__(self, directory: Path, max_bytes: int) -> None:
        self.directory = directory
        self._max_bytes = max_bytes
        self._segments: list[Segment] = []
        self._running: dict[str, _Running] = {}
        self._owed: dict[str, Owed] = {}
        self._unflushed: list[str] = []
        self._pending: list[_Pending] = []
        self.works = True
        """Whether the last record was written."""
        self._outages = Outages(log)

    def try_disk(self) -> None:
        """Write a file, so that a directory that takes none is known before the first request."""
        if self._max_bytes <= 0:
            return  # the journal is switched off
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            segments.try_disk(self.directory, _PROBE_BYTES)
        except OSError as error:
            self._failed(error)

    async def admit(self, receipt: AnyReceipt) -> None:
        """Return when the admission is in the journal. Raises ``OSError`` when it has no room.

        A request that is cancelled meanwhile is not admitted. The admissions of one turn of the
        event loop are written together: each ``write(2)`` releases the interpreter's lock, and the
        event loop then waits until the ledger's thread releases it. One write for each request took
        a seventh of a worker's processor time.
        """
        loop = asyncio.get_running_loop()
        if not self._pending:
            loop.call_soon(self._admit_pending)
        entry = _Pending(receipt, loop.create_future())
        self._pending.append(entry)
        try:
            await entry.written
        except asyncio.CancelledError:
            if not entry.written.cancelled():
                # It is in the journal, where it must not look like a request that still runs.
                self.written([receipt.request_id])
            raise

    def _admit_pending(self) -> None:
        pending = [entry for entry in self._pending if not entry.written.done()]
        self._pending = []
        if not pending:
            return
        try:
            self.admitted(*(entry.receipt for entry in pending))
        except Exception as error:
            # Of any kind: a request whose future gets no outcome waits for ever.
            for entry in pending:
                entry.written.set_exception(error)
        else:
            for entry in pending:
                entry.written.set_result(None)

    def admitted(self, *receipts: AnyReceipt) -> None:
        """Write admitted requests, all of them or none.

        Raises ``OSError`` when there is no room for them.
        """
        self._append(b"".join([records.encode("admitted", receipt) for receipt in receipts]))
        for receipt in receipts:
            self._running[receipt.request_id] = _Running(receipt)

    def progress(self, progress: AnyProgress) -> None:
        """Write the progress of a request; best effort."""
        running = self._running.get(progress.request_id)
        if running is not None:
            with suppress(OSError):
                self._append(records.encode("progress", progress))
                running.progress = progress

    def settled(self, receipt: AnyReceipt) -> Segment:
        """Write how a request ended; replaces its earlier records.

        Durable after ``sync`` of the returned segment. Raises ``OSError`` when there is no room for it.
        """
        line = records.encode("settled", receipt)
        segment = self._append(line)
        self._running.pop(receipt.request_id, None)
        before = self._owed.pop(receipt.request_id, None)
        self._owed[receipt.request_id] = Owed(
            receipt.request_id, segment, segment.size - len(line), len(line)
        )
        segment.owed += 1
        segment.has_settled = True
        if before is not None:
            before.segment.owed -= 1
            if before.segment is not segment:
                self._tidy(before.segment, [receipt.request_id])
        return segment

    def written(self, request_ids: Iterable[str]) -> None:
        """Forget requests that the database has; delete segments that hold nothing else."""
        here: dict[Segment, list[str]] = {}
        for request_id in request_ids:
            if self._running.pop(request_id, None) is not None:
                self._unflushed.append(request_id)
            elif (owed := self._owed.pop(request_id, None)) is not None:
                owed.segment.owed -= 1
                here.setdefault(owed.segment, []).append(request_id)
        for segment, ids in here.items():
            self._tidy(segment, ids)
        if self._unflushed and self._is_done(self._segments[-1]):
            self._remove(self._segments[-1])
            self._unflushed.clear()

    def flush_written(self) -> None:
        """Write the ids that were passed to ``written`` now, rather than with the next record."""
        if self._unflushed:
            with suppress(OSError):
                self._append(b"")

    def owed(self, at_most: int) -> list[Owed]:
        """The settled requests that the database does not have, oldest first."""
        return list(islice(self._owed.values(), at_most))

    def move_to_end(self, owed: Iterable[Owed]) -> None:
        """Move these requests behind all others that are owed."""
        for each in owed:
            if self._owed.get(each.request_id) is each:
                self._owed[each.request_id] = self._owed.pop(each.request_id)

    def failed_to_sync(self, segment: Segment) -> None:
        """Write no more to ``segment``: after a failed sync, a successful one proves nothing."""
        segment.broken = True

    @property
    def owes(self) -> int:
        """Settled requests that the database does not have."""
        return len(self._owed)

    def owes_row_of(self, request_id: str) -> bool:
        """Whether the request is settled here and missing in the database."""
        return request_id in self._owed

    @property
    def running(self) -> int:
        """Admitted requests that are not settled."""
        return len(self._running)

    @property
    def size(self) -> int:
        """Bytes of all live segments."""
        return sum(segment.size for segment in self._segments)

    def accepts_records(self) -> bool:
        """Whether a record can be written now; tries it with an empty one, after a failure with many."""
        empty = records.NOTHING
        with suppress(OSError):
            self._append(empty if self.works else empty * (_PROBE_BYTES // len(empty)))
        return self.works

    def close(self) -> None:
        """Delete segments whose requests the database has; leave the others to be adopted."""
        self.flush_written()
        for segment in self._segments:
            if segment.owed or (segment is self._segments[-1] and self._running):
                segment.abandon()
            else:
                segment.remove()
        self._segments.clear()
        self._running.clear()
        self._owed.clear()
        self._unflushed.clear()

    # -- segments ------------------------------------------------------------------------------

    def _append(self, line: bytes) -> Segment:
        try:
            segment = self._current()
            # Written together with the next record: a written row costs no system call of its own.
            segment.append(records.written(self._unflushed) + line if self._unflushed else line)
            self._unflushed.clear()
        except OSError as error:
            self._failed(error)
            raise
        if not self.works:
            self._outages.ended("journal: can write records again")
        self.works = True
        return segment

    def _failed(self, error: OSError) -> None:
        self.works = False
        self._outages.failed(logging.ERROR, "journal: cannot write records: %s", error)

    def _current(self) -> Segment:
        """Return the segment to append to. Raises ``OSError`` when there is none, or no room."""
        if not self._segments:
            if self._max_bytes <= 0:
                raise OSError("the journal has reached SVC_JOURNAL_MAX_BYTES")
            self._segments.append(Segment(self.directory))
        current = self._segments[-1]
        if (
            current.broken
            or current.size - current.born >= SEGMENT_BYTES
            or self._is_stale(current)
        ):
            current = self._rotate(current)
        if self.size >= self._max_bytes:
            raise OSError("the journal has reached SVC_JOURNAL_MAX_BYTES")
        return current

    def _rotate(self, full: Segment) -> Segment:
        """Begin the next segment with the requests that still run.

        When that fails a full segment stays in use; a broken one does not.
        """
        try:
            following = Segment(self.directory)
            try:
                for running in self._running.values():
                    following.append(records.encode("admitted", running.admitted))
                    if running.progress is not None:
                        following.append(records.encode("progress", running.progress))
            except OSError:
                following.remove()
                raise
        except OSError:
            if full.broken:
                raise
            return full
        following.born = following.size
        self._segments.append(following)
        if full.owed:
            with suppress(OSError):  # the newer record counts anyway
                full.append(records.written([*self._running, *self._unflushed]))
        else:
            self._remove(full)
        self._unflushed.clear()
        return following

    def _is_stale(self, current: Segment) -> bool:
        """Whether the journal is full, mostly with records that ``current`` no longer needs."""
        return (
            self.size >= self._max_bytes
            and not current.owed
            and (not self._running or current.size - current.born > current.born)
        )

    def _tidy(self, segment: Segment, ids: list[str]) -> None:
        """Delete ``segment`` if it is no longer needed, else record that ``ids`` are written."""
        if self._is_done(segment):
            self._remove(segment)
        else:
            # Without this record the requests of a killed process look unwritten; adoption then
            # finds their rows in the database, so nothing is lost.
            with suppress(OSError):
                segment.append(records.written(ids))

    def _is_done(self, segment: Segment) -> bool:
        """Whether nothing in it is needed. A segment without settled records stays in use."""
        is_current = segment is self._segments[-1]
        return not segment.owed and (not is_current or (segment.has_settled and not self._running))

    def _remove(self, segment: Segment) -> None:
        self._segments.remove(segment)
        segment.remove()
