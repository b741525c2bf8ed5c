"""The local journal of one process: what it knows and the database may not know yet.

One directory (``SVC_DATA_DIR/journal``), files of records (``usage.records``) that the process
holds locked (``usage.segments``). ``write(2)`` of a record survives the death of the process; only
settled records are also synced to disk, because only for them an answer is released on the
journal's word.

Requests that run are noted in the newest segment: when a segment is full, they are noted again in
the next. So an older segment holds only settled requests that are owed to the database, and it goes
with the last of them, however long a request beside them runs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path

import msgspec

from usage import records
from usage.receipts import AnyProgress, AnyReceipt
from usage.segments import Segment

log = logging.getLogger(__name__)

SEGMENT_BYTES = 16 * 1024 * 1024


class _Running(msgspec.Struct, eq=False):
    """An admitted request, as it is noted again in the next segment."""

    admitted: AnyReceipt
    progress: AnyProgress | None = None


class Owed(msgspec.Struct, eq=False):
    """Where a settled request is that the database does not have."""

    request_id: str
    segment: Segment
    offset: int
    length: int

    def read(self) -> AnyReceipt | None:
        """The receipt; None when the place cannot be read, or is not what was written there."""
        try:
            return records.settled_in(self.segment.read(self.offset, self.length))
        except OSError as error:
            log.error("journal: %s cannot be read: %s", self.segment.path.name, error.strerror)
            return None


class Journal:
    """The segments of one process. Not thread-safe; ``Segment.sync`` and ``Owed.read`` are.

    ``max_bytes``: bound of all live segments together; beyond it appending raises ``OSError``.
    """

    def __init__(self, directory: Path, max_bytes: int) -> None:
        self.directory = directory
        self._max_bytes = max_bytes
        self._segments: list[Segment] = []
        self._running: dict[str, _Running] = {}
        self._owed: dict[str, Owed] = {}
        self._unsaid: list[str] = []
        self.works = True
        """Whether the last record was taken."""

    def admitted(self, receipt: AnyReceipt) -> None:
        """Note an admitted request. Raises ``OSError`` when there is no room for it."""
        self._append(records.noted("admitted", receipt))
        self._running[receipt.request_id] = _Running(receipt)

    def progress(self, figures: AnyProgress) -> None:
        """Note how far a request has come; of no consequence when it cannot be written."""
        running = self._running.get(figures.request_id)
        if running is not None:
            with suppress(OSError):
                self._append(records.noted("progress", figures))
                running.progress = figures

    def settled(self, receipt: AnyReceipt) -> Segment:
        """Note how a request ended, instead of what was noted before.

        Durable after ``sync`` of the segment that is returned. Raises ``OSError`` when there is no
        room for it.
        """
        line = records.noted("settled", receipt)
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
        """The database has these requests: segments that hold nothing else are deleted."""
        here: dict[Segment, list[str]] = {}
        for request_id in request_ids:
            if self._running.pop(request_id, None) is not None:
                self._unsaid.append(request_id)
            elif (owed := self._owed.pop(request_id, None)) is not None:
                owed.segment.owed -= 1
                here.setdefault(owed.segment, []).append(request_id)
        for segment, ids in here.items():
            self._tidy(segment, ids)
        if self._unsaid and self._is_done(self._segments[-1]):
            self._remove(self._segments[-1])
            self._unsaid.clear()

    def say_what_is_written(self) -> None:
        """Note what ``written`` was told of requests that ran; else the next record notes it too."""
        if self._unsaid:
            with suppress(OSError):
                self._append(b"")

    def owed(self, at_most: int) -> list[Owed]:
        """The settled requests that the database does not have, those noted first."""
        return list(islice(self._owed.values(), at_most))

    def put_last(self, owed: Iterable[Owed]) -> None:
        """Let others be written before these."""
        for each in owed:
            if self._owed.get(each.request_id) is each:
                self._owed[each.request_id] = self._owed.pop(each.request_id)

    def failed_to_sync(self, segment: Segment) -> None:
        """Use ``segment`` no more: what a later sync says of it proves nothing."""
        segment.broken = True

    @property
    def owes(self) -> int:
        """Settled requests that the database does not have."""
        return len(self._owed)

    def owes_row_of(self, request_id: str) -> bool:
        """Whether the request is settled here and not in the database."""
        return request_id in self._owed

    @property
    def running(self) -> int:
        """Admitted requests that are not settled."""
        return len(self._running)

    @property
    def size(self) -> int:
        """Bytes of all live segments."""
        return sum(segment.size for segment in self._segments)

    def takes_more(self) -> bool:
        """Whether a record can be written now; tries it with one that says nothing."""
        with suppress(OSError):
            self._append(records.NOTHING)
        return self.works

    def close(self) -> None:
        """Delete what the database has whole; leave the rest to whoever adopts it."""
        self.say_what_is_written()
        for segment in self._segments:
            if segment.owed or (segment is self._segments[-1] and self._running):
                segment.let_go()
            else:
                segment.remove()
        self._segments.clear()
        self._running.clear()
        self._owed.clear()
        self._unsaid.clear()

    # -- segments ------------------------------------------------------------------------------

    def _append(self, line: bytes) -> Segment:
        try:
            segment = self._current()
            # In one write with what comes anyway: a row costs no system call of its own.
            segment.append(records.written(self._unsaid) + line if self._unsaid else line)
            self._unsaid.clear()
        except OSError as error:
            if self.works:
                log.error("journal: takes no records: %s", error)
            self.works = False
            raise
        if not self.works:
            log.warning("journal: takes records again")
        self.works = True
        return segment

    def _current(self) -> Segment:
        """The segment to append to. Raises ``OSError`` when there is none, or no room."""
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

        When that fails a full one is used on; a broken one is not.
        """
        try:
            following = Segment(self.directory)
            try:
                for running in self._running.values():
                    following.append(records.noted("admitted", running.admitted))
                    if running.progress is not None:
                        following.append(records.noted("progress", running.progress))
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
            with suppress(OSError):  # the newer record is as good
                full.append(records.written([*self._running, *self._unsaid]))
        else:
            self._remove(full)
        self._unsaid.clear()
        return following

    def _is_stale(self, current: Segment) -> bool:
        """Whether the journal is full, and mostly of what ``current`` does not need."""
        return (
            self.size >= self._max_bytes
            and not current.owed
            and (not self._running or current.size - current.born > current.born)
        )

    def _tidy(self, segment: Segment, ids: list[str]) -> None:
        """Delete ``segment`` if it is needed no more, else note that it need not keep ``ids``."""
        if self._is_done(segment):
            self._remove(segment)
        else:
            # Without this record a killed process is found with requests that look unwritten;
            # the database knows better, so nothing is lost.
            with suppress(OSError):
                segment.append(records.written(ids))

    def _is_done(self, segment: Segment) -> bool:
        """Whether nothing in it is needed. One without settled records is used on."""
        is_current = segment is self._segments[-1]
        return not segment.owed and (not is_current or (segment.has_settled and not self._running))

    def _remove(self, segment: Segment) -> None:
        self._segments.remove(segment)
        segment.remove()
