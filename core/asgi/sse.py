"""Reads and writes server-sent events (WHATWG HTML, section 9.2, "Server-sent events").

The reader takes answers of model servers, which are untrusted and vary: LF, CRLF or CR line ends,
comments, a byte order mark, any split into reads. The writer sends ``data: {json}`` and a blank
line, nothing else (docs/api/inference.md, Streams).
"""

from __future__ import annotations

DONE = b"[DONE]"
DONE_FRAME = b"data: [DONE]\n\n"

_BOM = b"\xef\xbb\xbf"
# Some clients split lines where Python's str.splitlines does. JSON text has these characters only
# inside strings, where the escape means the same.
_LINE_BREAKS = (
    (b"\xc2\x85", b"\\u0085"),
    (b"\xe2\x80\xa8", b"\\u2028"),
    (b"\xe2\x80\xa9", b"\\u2029"),
)


class FrameTooLarge(ValueError):
    """An event is larger than the reader's bound."""


def escape_line_breaks(json: bytes) -> bytes:
    """``json`` with NEL, LS and PS escaped, so that every client sees one frame as one line."""
    if json.isascii():
        return json
    for raw, escaped in _LINE_BREAKS:
        json = json.replace(raw, escaped)
    return json


def frame(json: bytes) -> bytes:
    """One event that carries ``json``, which holds no raw line break."""
    return b"data: " + escape_line_breaks(json) + b"\n\n"


class EventReader:
    """Cuts a byte stream into the ``data`` of its events.

    ``largest``: bound in bytes of what is buffered for one event.
    """

    __slots__ = ("_buffer", "_first", "_largest")

    def __init__(self, largest: int) -> None:
        self._buffer = b""
        self._first = True
        self._largest = largest

    def feed(self, read: bytes) -> list[bytes]:
        """The data of every event that ``read`` completes, in order.

        Raises ``FrameTooLarge`` when an event is longer than the bound.
        """
        if self._first:
            # A byte order mark may arrive in pieces.
            read = self._buffer + read
            self._buffer = b""
            if len(read) < len(_BOM) and _BOM.startswith(read):
                self._buffer = read
                return []
            self._first = False
            read = read.removeprefix(_BOM)
        buffer = self._buffer + read if self._buffer else read
        if b"\r" in buffer:
            # A CR at the very end may be half of a CRLF: it stays buffered until the next read.
            held = b"\r" if buffer.endswith(b"\r") else b""
            buffer = buffer[: len(buffer) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        else:
            held = b""
        complete, blank_line, rest = buffer.rpartition(b"\n\n")
        self._buffer = rest + held
        if len(self._buffer) > self._largest:
            raise FrameTooLarge
        if complete.startswith(b"data: ") and len(complete) <= self._largest:
            # Nearly always every event is one line of data; then no line feed is left over.
            events = complete[6:].split(b"\n\ndata: ")
            if complete.count(b"\n") == 2 * len(events) - 2:
                return events
        return self._events_of(complete.split(b"\n\n") if blank_line else [])

    def _events_of(self, blocks: list[bytes]) -> list[bytes]:
        """The data of every block that has any; slower, for all that the standard allows."""
        events: list[bytes] = []
        for block in blocks:
            if block.startswith(b"data: ") and b"\n" not in block:
                events.append(block[6:])
            elif (data := _data_of(block)) is not None:
                events.append(data)
            if len(block) > self._largest:
                raise FrameTooLarge
        return events

    def rest(self) -> bytes | None:
        """The data of a last event whose blank line never came, or None.

        The standard drops it; some servers close right after their last line.
        """
        block, self._buffer = self._buffer.replace(b"\r", b"\n").strip(b"\n"), b""
        return _data_of(block)


def _data_of(block: bytes) -> bytes | None:
    """The joined ``data`` lines of one event, or None when it has none (a comment, say).

    An ``error`` line counts as data: it is not in the standard, but llama.cpp's server before
    September 2025 reported failures with it.
    """
    lines = []
    for line in block.split(b"\n"):
        name, colon, value = line.partition(b":")
        if (name == b"data" and (colon or line == b"data")) or (name == b"error" and colon):
            lines.append(value.removeprefix(b" "))
    return b"\n".join(lines) if lines else None
