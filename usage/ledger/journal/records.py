"""The format of the journal's records, and the reader of a file of them.

A record is one line: the CRC-32 of its JSON in 8 hex digits, a space, the JSON, a line feed. The
JSON is one of these, and ``v``, the version of the format. Records hold ids, counts and prices,
never content.

        {"admitted": receipt}   an admitted request, as the row it becomes if no later record follows
        {"progress": counts}    the progress of a running request
        {"settled": receipt}    how a request ended; a later one of the same request replaces it
        {"written": [ids]}      requests that this file no longer answers for: the database or a newer
                                file has them
    {"speech": record}      one of the first three, of a speech request

A receipt of an older version lacks fields that came later, so every new field of a receipt needs a
default. ``VERSION`` grows when an old reader would misunderstand a record; a file with a record of
a newer version is left as it is, for a process that knows it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any, Final, Generic, TypeVar
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

VERSION: Final = 2

_LINES_AT_A_TIME: Final = 400
_PREFIX: Final = 9
"""Bytes of a line before its JSON."""

_R = TypeVar("_R", Receipt, SpeechReceipt)
_P = TypeVar("_P", Progress, SpeechProgress)


class _Members(msgspec.Struct, Generic[_R, _P], omit_defaults=True):
    """A record of one request of a kind; exactly one member is set."""

    admitted: _R | None = None
    progress: _P | None = None
    settled: _R | None = None


class Record(_Members[Receipt, Progress], omit_defaults=True):
    """One line; may be empty. Records before version 2 have no ``v``."""

    written: list[str] | None = None
    speech: _Members[SpeechReceipt, SpeechProgress] | None = None
    v: int = 1


class FileContent(msgspec.Struct):
    """The requests in a file: those that ended, and those last seen running.

    ``damaged``: a line other than a torn last one is not a record; ``newer``: a record has a
    version that this process does not know.
    """

    settled: dict[str, AnyReceipt] = {}
    running: dict[str, AnyReceipt] = {}
    damaged: bool = False
    newer: bool = False


class _Unreadable(ValueError):
    """A line that is not a record."""


_OF_SPEECH = (SpeechReceipt, SpeechProgress)
_encoder = msgspec.json.Encoder()
_decode = msgspec.json.Decoder(Record).decode


def framed(payload: bytes) -> bytes:
    """The line of a record."""
    return b"%08x %s\n" % (crc32(payload), payload)


def encode(member: str, what: AnyReceipt | AnyProgress) -> bytes:
    """The line of a record that has ``what`` as its ``member``."""
    if isinstance(what, _OF_SPEECH):
        return framed(_encoder.encode({"speech": {member: what}, "v": VERSION}))
    return framed(_encoder.encode({member: what, "v": VERSION}))


def written(request_ids: Iterable[str]) -> bytes:
    """The line after which a file no longer answers for ``request_ids``."""
    return framed(_encoder.encode({"written": list(request_ids), "v": VERSION}))


def admission(receipt: AnyReceipt) -> bytes:
    """The JSON of an ``admitted`` record."""
    return encode("admitted", receipt)[_PREFIX:-1]


def admitted_in(payload: str | bytes) -> AnyReceipt | None:
    """The receipt of the JSON of an ``admitted`` record; None when this version cannot read it."""
    try:
        record = _decode(payload)
    except (ValueError, msgspec.MsgspecError):
        return None
    return None if record.v > VERSION else (record.speech or record).admitted


NOTHING: Final = framed(_encoder.encode({"v": VERSION}))
"""The line of an empty record."""


def settled_in(line: bytes) -> AnyReceipt | None:
    """The receipt of a ``settled`` record; None when ``line`` is not one."""
    try:
        record = _record(line.removesuffix(b"\n"))
    except _Unreadable:
        return None
    return (record.speech or record).settled


def read_in_steps(content: bytes) -> Generator[None, None, FileContent]:
    """Read a file of records, some hundred lines a step; return its requests.

    A line whose checksum or form is wrong is skipped.
    """
    found = FileContent()
    lines = content.split(b"\n")
    for number, line in enumerate(lines):
        if number % _LINES_AT_A_TIME == _LINES_AT_A_TIME - 1:
            yield
        if not line:
            continue
        try:
            record = _record(line)
        except _Unreadable:
            # A process that is killed leaves a torn last line.
            found.damaged = found.damaged or number < len(lines) - 1
            continue
        _apply(record, found)
    return found


def _record(line: bytes) -> Record:
    payload = line[_PREFIX:]
    if line[:_PREFIX] != b"%08x " % crc32(payload):
        raise _Unreadable
    try:
        return _decode(payload)
    except (ValueError, msgspec.MsgspecError):
        raise _Unreadable from None


def _apply(record: Record, found: FileContent) -> None:
    if record.v > VERSION:
        found.newer = True
        return
    for request_id in record.written or ():
        found.running.pop(request_id, None)
        found.settled.pop(request_id, None)
    members: _Members[Any, Any] = record.speech or record
    if members.admitted is not None:
        found.running[members.admitted.request_id] = members.admitted
    elif members.settled is not None:
        found.running.pop(members.settled.request_id, None)
        found.settled[members.settled.request_id] = members.settled
    elif members.progress is not None:
        last_seen = found.running.get(members.progress.request_id)
        if last_seen is not None:
            # The counts are named as on the receipt.
            for name in members.progress.__struct_fields__:
                setattr(last_seen, name, getattr(members.progress, name))
