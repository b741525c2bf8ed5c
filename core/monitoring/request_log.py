"""The request log: a line of JSON on standard output for each request (``SVC_REQUEST_LOG``).

The event loop only appends to a queue. A thread writes, several lines at once where they fit
``PIPE_BUF``, so that the lines of workers that share a pipe never mix (pipe(7)). A reader that is too
slow fills the queue, and then lines are dropped and counted: no request waits for its line.
"""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from core.monitoring.metrics import Family, total
from core.monitoring.observation import Attempt, Observation

PIPE_BUF: Final = 4096
"""Bytes that a pipe takes in one piece on Linux."""
MOST_WAITING: Final = 10_000
"""Lines that wait for a slow reader in one process; about 5 MB."""
_GATHER_SECONDS: Final = 0.02
"""How long the thread lets lines gather before it writes: a wake for each would cost the event loop."""
_CLOSE_SECONDS: Final = 2.0
_LONGEST: Final = 200
"""Characters of a name, most of which are operators' own, and of a reason."""


class Line(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One request; a field that does not apply is absent (docs/operate/request-log.md)."""

    time: str
    request_id: str
    trace_id: str | None = None
    organization_id: str | None = None
    key_prefix: str | None = None
    surface: str
    method: str
    route: str
    model: str | None = None
    streamed: bool | None = None
    voice: str | None = None
    backend: str | None = None
    attempts: int = 0
    status: int
    code: str | None = None
    reason: str | None = None
    param: str | None = None
    outcome: str | None = None
    duration_ms: float
    first_byte_ms: float | None = None
    queue_ms: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    characters: int | None = None
    audio_ms: int | None = None
    close_code: int | None = None


class LineWriter:
    """Writes lines to a descriptor in a thread of its own, which starts with the first line."""

    def __init__(self, descriptor: int, most: int = MOST_WAITING) -> None:
        self.dropped = 0
        """Lines that were lost: the queue was full, or the descriptor cannot be written."""
        self._descriptor = descriptor
        self._most = most
        self._lines: deque[bytes] = deque()
        self._filled = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def write(self, line: bytes) -> None:
        """Queue ``line``, which ends with a line end. Never waits; called on one thread."""
        if len(self._lines) >= self._most:
            self.dropped += 1
            return
        self._lines.append(line)
        if not self._filled.is_set():
            self._filled.set()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="request-log", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Write what waits, for up to 2 seconds."""
        self._closing.set()
        self._filled.set()
        if self._thread is not None:
            self._thread.join(_CLOSE_SECONDS)

    def _run(self) -> None:
        while not (self._closing.is_set() and not self._lines):
            self._filled.wait()
            self._closing.wait(_GATHER_SECONDS)
            self._filled.clear()
            for part, lines in self._parts():
                self._put(part, lines)

    def _parts(self) -> Iterator[tuple[bytes, int]]:
        """Yield what waits as whole lines of up to ``PIPE_BUF`` bytes, with their number."""
        while self._lines:
            part = [self._lines.popleft()]
            size = len(part[0])
            while self._lines and size + len(self._lines[0]) <= PIPE_BUF:
                part.append(self._lines.popleft())
                size += len(part[-1])
            yield b"".join(part), len(part)

    def _put(self, part: bytes, lines: int) -> None:
        try:
            while part:
                try:
                    part = part[os.write(self._descriptor, part) :]
                except BlockingIOError:
                    # Another process made the shared description non-blocking.
                    select.select([], [self._descriptor], [], 1.0)
        except (OSError, ValueError):
            self.dropped += lines


class RequestLog:
    """Observes requests and writes their lines (``core.monitoring.observation.Observer``)."""

    def __init__(self, writer: LineWriter) -> None:
        self.writer = writer
        self._encode = msgspec.json.Encoder().encode

    def began(self, seen: Observation) -> None:
        """Do nothing: the line is written at the end."""

    def attempt_began(self, seen: Observation, attempt: Attempt) -> None:
        """Likewise."""

    def attempt_ended(self, seen: Observation, attempt: Attempt) -> None:
        """Likewise."""

    def ended(self, seen: Observation) -> None:
        """Write the request's line."""
        self.writer.write(self._encode(line_of(seen)) + b"\n")

    def close(self) -> None:
        """Write what waits."""
        self.writer.close()

    def families(self) -> Iterator[Family]:
        """Yield the metrics."""
        yield total(
            "svc_request_log_dropped",
            "Lines of the request log that nobody read in time.",
            self.writer.dropped,
        )


def line_of(seen: Observation) -> Line:
    """Return the line of a request that has ended."""
    ended = datetime.fromtimestamp(seen.ended_ns / 1e9, UTC)
    first, queue = seen.first_byte, seen.queue_seconds
    return Line(
        time=ended.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        request_id=seen.request_id,
        trace_id=seen.trace_id,
        organization_id=_short(seen.organization_id),
        key_prefix=seen.key_prefix,
        surface=seen.surface,
        method=seen.method[:20],
        route=seen.route,
        model=_short(seen.model),
        streamed=seen.streamed,
        attempts=len(seen.attempts),
        status=seen.status,
        code=seen.code,
        reason=_short(seen.reason),
        param=_short(seen.param),
        duration_ms=_milliseconds(seen.seconds),
        first_byte_ms=None if first is None else _milliseconds(first - seen.began),
        queue_ms=None if queue is None else _milliseconds(queue),
        **_named(seen),
    )


def _named(seen: Observation) -> dict[str, Any]:
    """The counts of the row, and the backend: the last one that was sent the request, or the engine."""
    backend = {"backend": _short(seen.attempts[-1].backend)} if seen.attempts else {}
    return {**backend, **seen.counts}


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 1)


def _short(name: str | None) -> str | None:
    return None if name is None else name[:_LONGEST]
