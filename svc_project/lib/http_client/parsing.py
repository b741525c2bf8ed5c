"""Reads answers with llhttp, strictly and within bounds."""

from __future__ import annotations

from typing import Final

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from svc_project.lib.http_client.errors import ProtocolViolation
from svc_project.lib.http_client.response import Response

LARGEST_HEAD: Final = 64 * 1024
"""Bytes that may arrive in a row without a byte of a body: heads (interim ones included), trailers,
chunk extensions. A little more is accepted when it comes in one read."""
MOST_HEADERS: Final = 128


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

        A byte after the end of the answer clears ``keeps_alive``. Raises ``ProtocolViolation``.
        """
        response.begun = True
        buffered = response.buffered
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            if not response.complete:
                raise ProtocolViolation(type(error).__name__) from None
            response.keeps_alive = False
        if response.complete or response.buffered > buffered:
            self._bytes_without_body = 0
            return
        self._bytes_without_body += len(data)
        if self._bytes_without_body > LARGEST_HEAD:
            raise ProtocolViolation("too long a head")

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
