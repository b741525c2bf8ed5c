"""An answer as it arrives, and the parser that reads it: llhttp, strictly and within bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf
from typing import Final

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from core.http_client.request import BodyTooLarge, Closed, HttpError, RemoteProtocolError

_LINGER_SECONDS: Final = 1.0

LARGEST_HEAD: Final = 64 * 1024
"""Bytes that may arrive in a row without a byte of a body: heads (interim ones included), trailers,
chunk extensions. A little more is accepted when it comes in one read."""
MOST_HEADERS: Final = 128


class Response:
    """An answer, filled by its connection and read by one task.

    The connection can be reused as soon as the last byte of the body has arrived, whether it was read
    or not. An answer that is not read to its end must be closed (``close``) or released (``release``).
    """

    __slots__ = (
        "_abort",
        "_error",
        "_parts",
        "_resume",
        "_waiter",
        "_watch",
        "begun",
        "buffered",
        "complete",
        "due",
        "has_length",
        "headers",
        "is_encoded",
        "is_held",
        "keeps_alive",
        "released",
        "reused",
        "sent",
        "status",
    )

    def __init__(
        self,
        due: float,
        resume: Callable[[], object],
        watch: Callable[[float], object],
        abort: Callable[[], object],
    ) -> None:
        """``resume``, ``watch`` and ``abort`` are those of the connection, until the answer ends."""
        self._resume = resume
        self._watch = watch
        self._abort = abort
        self._parts: list[bytes] = []
        self._waiter: asyncio.Future[None] | None = None
        self._error: HttpError | None = None
        self.status = 0
        """0 until the head is complete."""
        self.headers: list[tuple[bytes, bytes]] = []
        """Names in lower case, in the order of the answer."""
        self.has_length = False
        """Whether the head says how long the body is, or that it comes in chunks."""
        self.is_encoded = False
        """Whether the head names a coding of the body, such as gzip."""
        self.keeps_alive = False
        """Whether the head leaves the connection open after the answer (RFC 9112, 9.3 and 6.3)."""
        self.reused = False
        """Whether the connection had carried an earlier exchange."""
        self.sent = False
        self.begun = False
        """Whether any byte of an answer has arrived, an interim one (1xx) included."""
        self.complete = False
        self.released = False
        self.is_held = False
        """Whether the connection reads no more until the buffer was emptied."""
        self.buffered = 0
        self.due = due

    def header(self, name: bytes, default: str = "") -> str:
        """Return the first header called ``name``, which is in lower case."""
        for known, value in self.headers:
            if known == name:
                return value.decode("latin-1")
        return default

    async def read(self) -> bytes:
        """Return the next bytes of the body, at least one, as many as have arrived; b"" at its end.

        Bytes that arrived before a failure are returned first. Raises ``HttpError``.
        """
        while not self._parts:
            if self.complete:
                return b""
            if self._error is not None:
                raise self._take_error()
            try:
                await self._news()
            except asyncio.CancelledError:
                self.close()
                raise
        parts, self._parts, self.buffered = self._parts, [], 0
        if self.is_held:
            self.is_held = False
            self._resume()
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
        if due != inf:
            self._watch(due)

    def close(self) -> None:
        """Stop reading; an answer that is not complete closes its connection at once."""
        self._abort()

    def release(self) -> None:
        """Stop reading an answer of which only the end of its framing is missing.

        The connection is kept if that end arrives soon, and closed otherwise.
        """
        if self.complete or self._error is not None:
            return
        self.released = True
        self._parts.clear()
        self.buffered = 0
        self.set_deadline(min(self.due, asyncio.get_running_loop().time() + _LINGER_SECONDS))
        self._resume()

    # What follows is for the connection.

    def _news(self) -> asyncio.Future[None]:
        """The future of the next thing that happens. Who waits for it closes when it is cancelled."""
        self._waiter = asyncio.get_running_loop().create_future()
        return self._waiter

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
        self._separate()
        self.wake()

    def fail(self, error: HttpError) -> None:
        """End the answer with ``error``, unless it is complete."""
        if self.complete or self._error is not None:
            return
        error.reused = self.reused
        self._error = error
        self._separate()
        self.wake()

    def _separate(self) -> None:
        """Drop the connection, which may carry another exchange by now."""
        self._resume = self._watch = self._abort = _nothing

    async def head(self) -> None:
        """Wait for the head. Raises ``HttpError``."""
        while not self.status:
            if self._error is not None:
                raise self._take_error()
            try:
                await self._news()
            except asyncio.CancelledError:
                self.close()
                raise


def _nothing(*_: object) -> None:
    """Stand in for a method of a connection that the answer no longer has."""


class _Refused(Exception):
    """Raised in a callback to stop the parser."""


class AnswerParser:
    """The parser of one connection: fills ``response``, the answer that is awaited, or None."""

    __slots__ = ("_bytes_without_body", "_interim", "_parser", "response")

    def __init__(self) -> None:
        self.response: Response | None = None
        self._interim = False
        self._bytes_without_body = 0
        self._parser = HttpResponseParser(self)
        # RFC 9112, 2.2 allows the first; servers that pad the sizes of chunks need the second.
        self._parser.set_dangerous_leniencies(
            lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )

    def feed(self, data: bytes, response: Response) -> None:
        """Parse ``data``, which continues ``response``.

        A byte after the end of the answer clears ``keeps_alive``. Raises ``RemoteProtocolError``.
        """
        response.begun = True
        buffered = response.buffered
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            if not response.complete:
                raise RemoteProtocolError(type(error).__name__) from None
            response.keeps_alive = False
        if response.complete or response.buffered > buffered:
            self._bytes_without_body = 0
            return
        self._bytes_without_body += len(data)
        if self._bytes_without_body > LARGEST_HEAD:
            raise RemoteProtocolError("too long a head")

    def close(self) -> None:
        """Release the parser, which holds this object; nothing can be fed afterwards."""
        self.response = None
        del self._parser

    # Callbacks of httptools.

    def on_message_begin(self) -> None:
        if self.response is None:
            # A second answer to one request.
            raise _Refused

    def on_header(self, name: bytes, value: bytes) -> None:
        response = self.response
        # Trailers come after the status and are dropped.
        if response is not None and not response.status:
            if len(response.headers) >= MOST_HEADERS:
                raise _Refused
            response.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        response = self.response
        if response is None:
            raise _Refused
        status = self._parser.get_status_code()
        if status < 200:
            if status < 100 or status == 101:
                raise _Refused
            self._interim = True
            response.headers.clear()
            return
        codings = 0
        for name, value in response.headers:
            if name == b"transfer-encoding":
                codings += 1
                if codings > 1 or value.strip().lower() != b"chunked":
                    raise _Refused
            elif name == b"content-length":
                response.has_length = True
            elif name == b"content-encoding":
                response.is_encoded = True
        response.has_length = response.has_length or codings > 0 or status in (204, 304)
        response.keeps_alive = self._parser.should_keep_alive()
        response.status = status

    def on_body(self, body: bytes) -> None:
        if self.response is not None:
            self.response.add(body)

    def on_message_complete(self) -> None:
        if self._interim:
            self._interim = False
            return
        response, self.response = self.response, None
        if response is not None:
            response.complete = True
