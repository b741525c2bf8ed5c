"""One answer: its status, its headers, and its body as it arrives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING

from svc_project.lib.http_client.errors import BodyTooLarge, Closed, HttpError

if TYPE_CHECKING:
    from svc_project.lib.http_client.connection import Connection


class Response:
    """An answer, filled by its connection and read by one task.

    The connection can be reused as soon as the last byte of the body has arrived, whether it was read
    or not. An answer that is not read to its end must be closed (``close``) or released (``release``).
    """

    __slots__ = (
        "_connection",
        "_ended",
        "_error",
        "_parts",
        "_waiter",
        "begun",
        "buffered",
        "complete",
        "due",
        "has_length",
        "headers",
        "keeps_alive",
        "released",
        "reused",
        "sent",
        "status",
    )

    def __init__(self, connection: Connection, due: float) -> None:
        self._connection: Connection | None = connection
        self._parts: list[bytes] = []
        self._waiter: asyncio.Future[None] | None = None
        self._error: HttpError | None = None
        self._ended: Callable[[], None] | None = None
        self.status = 0
        """0 until the head is complete."""
        self.headers: list[tuple[bytes, bytes]] = []
        """Names in lower case, in the order of the answer."""
        self.has_length = False
        """Whether the head says how long the body is, or that it comes in chunks."""
        self.keeps_alive = False
        """Whether the head leaves the connection open after the answer (RFC 9112, 9.3 and 6.3)."""
        self.reused = False
        """Whether the connection had carried an earlier exchange."""
        self.sent = False
        self.begun = False
        """Whether any byte of an answer has arrived, an interim one (1xx) included."""
        self.complete = False
        self.released = False
        self.buffered = 0
        self.due = due

    def header(self, name: bytes, default: str = "") -> str:
        """Return the first header called ``name``, which is in lower case."""
        for known, value in self.headers:
            if known == name:
                return value.decode("latin-1")
        return default

    def has_header(self, name: bytes) -> bool:
        """Whether there is a header called ``name``, which is in lower case."""
        return any(known == name for known, _ in self.headers)

    async def read(self) -> bytes:
        """Return the next bytes of the body, at least one, as many as have arrived; b"" at its end.

        Bytes that arrived before a failure are returned first. Raises ``HttpError``.
        """
        while not self._parts:
            if self.complete:
                return b""
            if self._error is not None:
                raise self._take_error()
            await self.wait()
        parts, self._parts, self.buffered = self._parts, [], 0
        if self._connection is not None:
            self._connection.resume()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def read_all(self, limit: int) -> bytes:
        """Return the rest of the body. Raises ``BodyTooLarge`` above ``limit`` bytes, ``HttpError``."""
        parts, size = [], 0
        while part := await self.read():
            parts.append(part)
            size += len(part)
            if size > limit:
                self.close()
                raise BodyTooLarge
        return b"".join(parts)

    def set_deadline(self, due: float) -> None:
        """Let the exchange fail with ``TimedOut`` at ``due``, in seconds of the event loop's clock."""
        self.due = due
        if self._connection is not None and due != inf:
            self._connection.watch(due)

    @property
    def connection(self) -> Connection | None:
        """The connection until the answer is complete or has failed."""
        return self._connection

    def on_end(self, ended: Callable[[], None]) -> None:
        """Call ``ended`` when the last byte of the answer arrives, or at once if it has arrived."""
        if self.complete:
            ended()
        else:
            self._ended = ended

    def close(self) -> None:
        """Stop reading; an answer that is not complete closes its connection at once."""
        if self._connection is not None:
            self._connection.abort()

    def release(self) -> None:
        """Stop reading an answer of which only the end of its framing is missing.

        The connection is kept if that end arrives soon, and closed otherwise.
        """
        if self._connection is not None:
            self.released = True
            self._parts.clear()
            self._connection.linger()

    # What follows is for the connection.

    async def wait(self) -> None:
        """Wait until something has happened. A cancelled task closes the connection at once."""
        connection = self._connection
        if connection is None:
            raise self._take_error()
        self._waiter = connection.loop.create_future()
        try:
            await self._waiter
        except asyncio.CancelledError:
            self.close()
            raise
        finally:
            self._waiter = None

    def _take_error(self) -> HttpError:
        """Return the failure, only once: its traceback will hold the frames that hold this answer."""
        error, self._error = self._error, Closed()
        return error or Closed()

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def add(self, part: bytes) -> None:
        if not self.released:
            self._parts.append(part)
        self.buffered += len(part)

    def finish(self) -> None:
        """Mark the answer as complete and separate it from its connection."""
        self.complete = True
        self._connection = None
        self.wake()
        if self._ended is not None:
            self._ended()

    def fail(self, error: HttpError) -> None:
        """End the answer with ``error``, unless it is complete."""
        if self.complete or self._error is not None:
            return
        error.reused = self.reused
        self._error = error
        self._connection = None
        self.wake()

    async def head(self) -> None:
        """Wait for the head. Raises ``HttpError``."""
        while not self.status:
            if self._error is not None:
                raise self._take_error()
            await self.wait()
