"""WebSockets: the answer to a handshake, bounds on frames, and clients that stop reading."""

from __future__ import annotations

import asyncio
import codecs
import sys
import time
from collections.abc import Generator
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.datastructures import Headers
from websockets.exceptions import InvalidHeader
from websockets.frames import CTRL_OPCODES, CloseCode, Frame, Opcode
from websockets.http11 import Request, Response
from websockets.protocol import Protocol
from websockets.server import ServerProtocol

from core.asgi.websocket import (
    READER_STALLED,
    VERSION,
    BadHandshake,
    UpgradeRequired,
)
from core.errors import ApiError, InternalError, ServerOverloaded
from core.limits.buckets import Bucket
from svc_project.serving.connection_watches import StallWatch
from svc_project.serving.http_messages import last_headers
from svc_project.surfaces import Surface, error_body_of, surface_of

if TYPE_CHECKING:
    from uvicorn._types import ASGIReceiveEvent, ASGISendEvent


_Utf8Decoder = codecs.getincrementaldecoder("utf-8")

MOST_EXTRA_FRAMES: Final = 1024
"""Fragments and control frames accepted at once: the largest message in 64-byte fragments."""
EXTRA_FRAMES_PER_SECOND: Final = 64
"""The rate at which they refill."""
_LINGER_SECONDS: Final = 1.0
_PARSED_AT_ONCE: Final = 2048
"""Bytes of frames that are parsed in one turn of the event loop: at most 341 frames."""


def _refusal_of(fault: Exception | None) -> ApiError:
    """The error for a handshake that the library refused with ``fault``."""
    if not isinstance(fault, InvalidHeader):
        return InternalError() if fault is None else BadHandshake()
    if fault.name == "Sec-WebSocket-Version":
        return UpgradeRequired(f"This server speaks version {VERSION} of the WebSocket protocol.")
    state = "missing" if fault.value is None else "not valid"
    return BadHandshake(f"The header {fault.name} of the WebSocket handshake is {state}.")


class ArrivingText:
    """Checks the messages of one WebSocket, whose text may be cut inside a character."""

    def __init__(self) -> None:
        self._decoder: codecs.IncrementalDecoder | None = None
        """Of the message that arrives; None for a binary one."""

    def begin(self, *, is_text: bool) -> None:
        """Begin a message."""
        self._decoder = _Utf8Decoder() if is_text else None

    def is_valid(self, part: bytes | bytearray | memoryview, *, is_last: bool) -> bool:
        """Whether a message is binary, or its text up to the end of ``part`` is UTF-8."""
        try:
            if self._decoder is not None:
                self._decoder.decode(part, final=is_last)
        except UnicodeDecodeError:
            return False
        return True


class TooManyFrames(Exception):
    """The client sent more fragments or control frames than are accepted."""


class BoundedFrames(ServerProtocol):
    """The library's side of a WebSocket whose request was parsed elsewhere.

    It refuses in the error shape of ``surface``.

    It fails a connection with too many fragments (1009) or control frames (1008). The library
    bounds the bytes of a message, not its frames: 70 000 empty fragments of one message, or as many
    pings, cost a second of work and never reach the application. Whole messages in one frame do not
    count: the application takes them at its own pace.

    Nothing is read behind text that is not UTF-8. A close frame there would close the connection
    before uvicorn, which decodes the text later, can close it with 1007.
    """

    surface = Surface.INFERENCE

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._extra = Bucket(time.monotonic(), EXTRA_FRAMES_PER_SECOND)
        self._text = ArrivingText()

    def parse(self) -> Generator[None]:
        # The base would read the request once more, with other bounds, and be silent where it cannot.
        yield from Protocol.parse(self)

    def reject(self, status: HTTPStatus | int, text: str) -> Response:
        """Return the refusal of the handshake; the base calls it in ``accept``.

        ``status`` and ``text`` are the library's own words.
        """
        return self.refusal(_refusal_of(self.handshake_exc))

    def refusal(self, error: ApiError) -> Response:
        """Return the whole answer to a handshake that fails with ``error``."""
        body = error_body_of(self.surface, error)
        headers = Headers(last_headers(self.surface, error, body))
        return Response(error.status, HTTPStatus(error.status).phrase, headers, body)

    def recv_frame(self, frame: Frame) -> None:
        is_control = frame.opcode in CTRL_OPCODES
        is_fragment = not frame.fin or frame.opcode is Opcode.CONT
        if (is_control or is_fragment) and not self._may_take():
            code = CloseCode.POLICY_VIOLATION if is_control else CloseCode.MESSAGE_TOO_BIG
            self.fail(code, "too many control frames" if is_control else "too many fragments")
            self.parser_exc = TooManyFrames()
            return
        if is_control or self._is_valid(frame):
            super().recv_frame(frame)
            return
        super().recv_frame(Frame(frame.opcode, frame.data, fin=True))
        self.send_eof()  # which the library demands before it reads no more
        self.parser = self.discard()
        next(self.parser)

    def _is_valid(self, frame: Frame) -> bool:
        if frame.opcode is not Opcode.CONT:
            self._text.begin(is_text=frame.opcode is Opcode.TEXT)
        return self._text.is_valid(frame.data, is_last=frame.fin)

    def _may_take(self) -> bool:
        used = self._extra.drain(time.monotonic(), EXTRA_FRAMES_PER_SECOND) + 1
        if used > MOST_EXTRA_FRAMES:
            return False
        self._extra.used = used
        return True


class BoundedWebSocket(StallWatch, WebSocketsSansIOProtocol):
    """A WebSocket whose client must keep reading, also after its session is over.

    Only sound waits until the client has read the earlier bytes. Messages and the close are queued
    at once: they are short and few, so a session that is over need not wait.

    Only this class detects a stalled client: the application gets ``READER_STALLED``, or
    ``TimeoutError`` when it sends sound. Its last messages are still queued; a client that reads
    nothing for as long again is dropped.

    After a protocol violation it sends the close frame, then keeps reading briefly: closing with
    unread bytes would be a reset, which could discard the close frame. The application sees a
    disconnect.

    A read from the socket may hold tens of thousands of tiny frames. They are parsed in parts, so
    that other tasks get turns, and only as fast as the application takes messages. None is parsed
    before the handshake is over, for which the application has ``SVC_HEAD_SECONDS``.
    """

    conn: BoundedFrames
    _is_broken = False
    _has_stalled = False
    _is_parsing_soon = False
    _handshake_timer: asyncio.TimerHandle | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn = BoundedFrames(
            extensions=self.conn.available_extensions,
            max_size=self.config.ws_max_size,
            logger=self.conn.logger,
        )
        self._unparsed = bytearray()
        self._room = asyncio.Event()
        self._room.set()

    def open(self, request: Request, early: bytes, write_paused: bool) -> None:
        """Begin with the handshake's ``request``; the connection was made.

        ``early``: bytes that arrived behind its head. ``write_paused``: an answer before the
        upgrade is still unread, which only the HTTP protocol knows.
        """
        if write_paused:
            self.pause_writing()
        host = [(b"host", value.encode("latin-1")) for value in request.headers.get_all("host")]
        self.conn.surface = surface_of({"server": self.server, "headers": host})
        self.handle_connect(request)
        if not self.handshake_complete:
            self._handshake_timer = self.loop.call_later(
                settings.SVC_HEAD_SECONDS, self._handshake_timed_out
            )
        if early:
            self.data_received(early)

    def _handshake_timed_out(self) -> None:
        self._handshake_timer = None
        self._is_broken = self.handshake_complete = self.close_sent = True
        self.queue.put_nowait({"type": "websocket.disconnect", "code": 1006})
        self.conn.send_response(self.conn.refusal(ServerOverloaded()))
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.transport.close()

    def _stop_handshake_timer(self) -> None:
        if self._handshake_timer is not None:
            self._handshake_timer.cancel()
            self._handshake_timer = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self.writable.set()  # the base would delay messages and the close as well
        self._room.clear()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._room.set()
        if self.close_sent:
            self._watch_to_the_end()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop_handshake_timer()
        self._unparsed.clear()
        self._room.set()

    async def receive(self) -> ASGIReceiveEvent:
        message = await super().receive()
        self._parse_soon()
        return message

    def reader_stalled(self) -> None:
        if self._has_stalled or self.close_sent:
            self.transport.abort()
            return
        self._has_stalled = True
        ended: Any = {"type": "websocket.disconnect", "code": 1006, READER_STALLED: True}
        self.queue.put_nowait(ended)
        self._room.set()

    async def send(self, message: ASGISendEvent) -> None:
        is_sound = message["type"] == "websocket.send" and message.get("bytes") is not None
        if is_sound:
            await self._room.wait()
        if self._is_broken:
            raise ClientDisconnected
        if is_sound and self._has_stalled:
            raise TimeoutError
        await super().send(message)
        if message["type"] == "websocket.close":
            self._watch_to_the_end()
            self._parse_soon()
        elif message["type"] == "websocket.http.response.body" and self.close_sent:
            # A refusal completes the handshake too; the base would report an internal error.
            self.handshake_complete = True
        if self._handshake_timer is not None and self.handshake_complete:
            self._stop_handshake_timer()
            self._parse_soon()

    def _watch_to_the_end(self) -> None:
        """Watch from the close on: its unread bytes are below the mark that starts the watch."""
        if self._stall is None:
            self._unread = sys.maxsize
            self._watch()

    def data_received(self, data: bytes) -> None:
        if self._is_broken:
            return
        if not self.handshake_complete:
            self._unparsed += data
            self.transport.pause_reading()
        elif self._unparsed or len(data) > _PARSED_AT_ONCE:
            self._unparsed += data
            self._parse_soon()
        else:
            super().data_received(data)

    def _parse_soon(self) -> None:
        """Parse on once the handshake is answered, unless messages wait for the application."""
        is_due = self.handshake_complete and not (self.read_paused or self._is_parsing_soon)
        if self._unparsed and is_due:
            self._is_parsing_soon = True
            if not self.transport.is_closing():
                self.transport.pause_reading()
            self.loop.call_soon(self._parse_some)

    def _parse_some(self) -> None:
        self._is_parsing_soon = False
        part = bytes(self._unparsed[:_PARSED_AT_ONCE])
        del self._unparsed[:_PARSED_AT_ONCE]
        if part and not self._is_broken:
            super().data_received(part)
        if self._is_broken:
            self._unparsed.clear()
        elif self._unparsed:
            self._parse_soon()
        elif not (self.read_paused or self.transport.is_closing()):
            self.transport.resume_reading()

    def handle_parser_exception(self) -> None:
        sent = self.conn.close_sent
        if self._is_broken or sent is None:
            return
        self._is_broken = self.close_sent = True
        self.queue.put_nowait(
            {"type": "websocket.disconnect", "code": sent.code, "reason": sent.reason}
        )
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.read_paused = False
        self.transport.resume_reading()
        self.close_timer = self.loop.call_later(_LINGER_SECONDS, self.transport.close)
