"""The local journal: what a worker knows and the database may not know yet.

One directory (``SVC_DATA_DIR/journal``), files ("segments") owned by one process each, which it
holds locked (flock) while it lives. A record is one line: the CRC-32 of its JSON in 8 hex digits,
a space, the JSON, a line feed. Records hold ids, figures and prices, never content.

    {"admitted": receipt}   an admitted request, as the row it becomes if nothing more is heard
    {"progress": figures}   what a running stream has reported so far
    {"settled": receipt}    how a request ended, when the database did not answer in time
    {"speech": record}      one of these three, of a speech request

``write(2)`` of a record survives the death of the process; only settled records are also synced
to disk, because only for them an answer is released on the journal's word. A segment is deleted
once the database has every request in it. Whoever finds a segment without an owner adopts it.
"""

from __future__ import annotations

import fcntl
import logging
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Generic, TypeVar
from zlib import crc32

import msgspec

from usage.receipts import (
    AnyProgress,
    AnyReceipt,
    Progress,
    Receipt,
    SpeechProgress,
    SpeechReceipt,
)

log = logging.getLogger(__name__)

SEGMENT_BYTES = 16 * 1024 * 1024


_R = TypeVar("_R", Receipt, SpeechReceipt)
_P = TypeVar("_P", Progress, SpeechProgress)


class _Note(msgspec.Struct, Generic[_R, _P], omit_defaults=True):
    """What is known of one request of a kind; exactly one member is set."""

    admitted: _R | None = None
    progress: _P | None = None
    settled: _R | None = None


class Record(_Note[Receipt, Progress], omit_defaults=True):
    """One line of a segment: about a chat request, or about ``speech``; or an empty one, which says
    nothing.
    """

    speech: _Note[SpeechReceipt, SpeechProgress] | None = None


class Found(msgspec.Struct):
    """What a segment says of its requests: those that ended, and those last seen running."""

    settled: dict[str, AnyReceipt]
    running: dict[str, AnyReceipt]
    damaged: bool = False


_OF_SPEECH = (SpeechReceipt, SpeechProgress)
_encoder = msgspec.json.Encoder()
_decode = msgspec.json.Decoder(Record).decode


def _encode(member: str, noted: AnyReceipt | AnyProgress) -> bytes:
    """The JSON of a record that has ``noted`` as its ``member``."""
    if isinstance(noted, _OF_SPEECH):
        return _encoder.encode({"speech": {member: noted}})
    return _encoder.encode({member: noted})


def read_segment(content: bytes) -> Found:
    """The requests of a segment, as its good records have them.

    A record whose checksum or form is wrong is left out; ``damaged`` is then true unless it is the
    torn last line, which is how a process dies.
    """
    found = Found(settled={}, running={})
    lines = content.split(b"\n")
    for number, line in enumerate(lines):
        if not line:
            continue
        try:
            payload = line[9:]
            if line[:9] != b"%08x " % crc32(payload):
                raise ValueError
            record = _decode(payload)
        except (ValueError, msgspec.MsgspecError):
            found.damaged = found.damaged or number < len(lines) - 1
            continue
        _apply(record, found)
    return found


def _apply(record: Record, found: Found) -> None:
    note: _Note[Any, Any] = record.speech or record
    if note.admitted is not None:
        found.running[note.admitted.request_id] = note.admitted
    elif note.settled is not None:
        found.running.pop(note.settled.request_id, None)
        found.settled[note.settled.request_id] = note.settled
    elif note.progress is not None:
        last_seen = found.running.get(note.progress.request_id)
        if last_seen is not None:
            # Figures have the names that they have on the receipt.
            for name in note.progress.__struct_fields__:
                setattr(last_seen, name, getattr(note.progress, name))


class Segment:
    """A locked file of records, and the requests in it that the database does not have yet."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path = directory / f"{os.getpid()}-{secrets.token_hex(6)}.log"
        # Named as a segment only once it is locked, or a sibling could adopt it in between.
        unlocked = self.path.with_suffix(".new")
        self._file = os.open(unlocked, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        unlocked.rename(self.path)
        self.size = 0
        self.open: set[str] = set()
        self.has_settled = False

    def append(self, payload: bytes) -> None:
        """Write one record. Raises ``OSError`` when the disk does not take it whole."""
        line = b"%08x %s\n" % (crc32(payload), payload)
        written = os.write(self._file, line)
        if written != len(line):
            # A torn record would hide whatever follows it.
            os.ftruncate(self._file, self.size)
            raise OSError("the journal took only a part of a record")
        self.size += written

    def sync(self) -> None:
        """Return when everything appended so far is on the disk."""
        os.fdatasync(self._file)

    def remove(self) -> None:
        """Delete the file and let go of it."""
        self.path.unlink(missing_ok=True)
        os.close(self._file)

    def let_go(self) -> None:
        """Give up the lock and leave the file to whoever adopts it."""
        os.close(self._file)


class Journal:
    """The segments of one process. Not thread-safe, ``sync`` excepted.

    ``max_bytes``: bound of all live segments together; beyond it appending raises ``OSError``.
    """

    def __init__(self, directory: Path, max_bytes: int) -> None:
        self.directory = directory
        self._max_bytes = max_bytes
        self._segments: list[Segment] = []
        self._segment_of: dict[str, Segment] = {}

    def admitted(self, receipt: AnyReceipt) -> None:
        """Note an admitted request. Raises ``OSError`` when there is no room for it."""
        segment = self._current()
        segment.append(_encode("admitted", receipt))
        segment.open.add(receipt.request_id)
        self._segment_of[receipt.request_id] = segment

    def progress(self, figures: AnyProgress) -> None:
        """Note how far a request has come; of no consequence when it cannot be written."""
        segment = self._segment_of.get(figures.request_id)
        if segment is not None:
            try:
                segment.append(_encode("progress", figures))
            except OSError as error:
                log.warning("journal: progress not noted: %s", error.strerror)

    def settled(self, receipt: AnyReceipt) -> Segment:
        """Note how a request ended; durable after ``sync`` of the segment that is returned.

        Raises ``OSError`` when there is no room for it.
        """
        segment = self._segment_of.get(receipt.request_id)
        if segment is None:
            segment = self._current()
            segment.open.add(receipt.request_id)
            self._segment_of[receipt.request_id] = segment
        segment.append(_encode("settled", receipt))
        segment.has_settled = True
        return segment

    def written(self, request_ids: Iterable[str]) -> None:
        """The database has these requests: segments that hold nothing else are deleted."""
        for request_id in request_ids:
            segment = self._segment_of.pop(request_id, None)
            if segment is None:
                continue
            segment.open.discard(request_id)
            if not segment.open and (segment is not self._segments[-1] or segment.has_settled):
                self._segments.remove(segment)
                segment.remove()

    def owed(self) -> list[Segment]:
        """The segments with settled requests that the database does not have."""
        return [segment for segment in self._segments if segment.has_settled]

    @property
    def size(self) -> int:
        """Bytes of all live segments."""
        return sum(segment.size for segment in self._segments)

    def takes_more(self) -> bool:
        """Whether a record can be written now; tries it with one that says nothing."""
        try:
            self._current().append(_encoder.encode(Record()))
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Delete what the database has whole; leave the rest to whoever adopts it."""
        for segment in self._segments:
            if segment.open:
                segment.let_go()
            else:
                segment.remove()
        self._segments.clear()
        self._segment_of.clear()

    def _current(self) -> Segment:
        if not self._segments or self._segments[-1].size >= SEGMENT_BYTES:
            done = [segment for segment in self._segments if not segment.open]
            for segment in done:
                self._segments.remove(segment)
                segment.remove()
            if self.size >= self._max_bytes:
                raise OSError("the journal has reached SVC_JOURNAL_MAX_BYTES")
            self._segments.append(Segment(self.directory))
        return self._segments[-1]


class Orphan:
    """A segment whose owner died, held locked by whoever adopted it."""

    def __init__(self, path: Path, file: int) -> None:
        self.path = path
        self._file = file

    def read(self) -> Found:
        return read_segment(self.path.read_bytes())

    def let_go(self) -> None:
        """Leave the segment as it is, for a later try."""
        os.close(self._file)

    def finish(self, *, keep: bool) -> None:
        """Delete the segment, or set it aside under another name when ``keep``."""
        if keep:
            self.path.rename(self.path.with_suffix(".damaged"))
        else:
            self.path.unlink(missing_ok=True)
        os.close(self._file)


def orphans(directory: Path) -> Iterable[Orphan]:
    """Each segment in ``directory`` that no living process owns, locked for the caller.

    The lock goes with the owner, so a segment is adopted once however many siblings look.
    """
    for path in sorted(directory.glob("*.log")):
        try:
            file = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            continue
        if path.exists():
            yield Orphan(path, file)
        else:
            os.close(file)
