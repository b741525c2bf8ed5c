"""Sends an answer's bytes: the frames of a stream or a whole body, with the faults of bytes and ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from simulators.chat.exchange import Exchange
from simulators.chat.faults import FaultName
from simulators.serving import Broken, Header, break_connection

_HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
)


class Frames:
    """Writes server-sent events, ``burst`` of them in each write."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        faults = exchange.faults
        end = b"\r\n" if FaultName.CRLF in faults else b"\n"
        comment = b": keep-alive" + end + end if FaultName.COMMENTS in faults else b""
        self._comment, self._after = comment, end + end
        self._before = comment + b"data: "
        self._single_bytes = FaultName.SPLIT_BYTES in faults
        self._waiting: list[bytes] = []

    async def begin(self, *extra: Header) -> None:
        headers = [*_HEADERS, *extra]
        await self._exchange.send(
            {"type": "http.response.start", "status": 200, "headers": headers}
        )
        if FaultName.BOM in self._exchange.faults:
            await self._write(b"\xef\xbb\xbf")

    async def add(self, payload: bytes, field: str = "data") -> None:
        """Queue one frame, and write the queue when it has reached the burst.

        ``field`` is the name of its line.
        """
        self._waiting.append(self._comment + field.encode() + b": " + payload + self._after)
        if len(self._waiting) >= self._exchange.pace.burst:
            await self.flush()

    async def flush(self) -> None:
        if self._waiting:
            frames, self._waiting = self._waiting, []
            self._exchange.entry.sent_frames += len(frames)
            await self._write(b"".join(frames))

    async def end(self, *, done: bool = True, then: bytes | None = None) -> None:
        """End the stream, with ``[DONE]`` or without; ``then`` is a frame behind that."""
        await self.flush()
        marker = self._before + b"[DONE]" + self._after if done else b""
        if then is not None:
            marker += self._before + then + self._after
        if self._single_bytes:
            await self._write(marker)
            marker = b""
        # Nothing may await after this, or the end of the answer could look like a disconnect.
        await self._exchange.send({"type": "http.response.body", "body": marker})

    async def _write(self, content: bytes) -> None:
        parts = [bytes([byte]) for byte in content] if self._single_bytes else [content]
        for part in parts:
            await self._exchange.send(
                {"type": "http.response.body", "body": part, "more_body": True}
            )
            # One turn of the event loop sends this write by itself and serves other requests.
            await asyncio.sleep(0)


async def strike(
    exchange: Exchange, frames: Frames, number: int, fail: Callable[[], Awaitable[None]]
) -> None:
    """Apply the faults that happen after ``number`` steps of the answer.

    A number beyond the end of the answer means its end. ``fail`` sends the error of ``error_frame``
    and ends the stream.
    """

    def due(name: FaultName) -> bool:
        place = exchange.faults.number(name)
        return place is not None and number == min(int(place), len(exchange.answer.steps))

    if due(FaultName.GARBAGE):
        await frames.add(b'{"id":"' + exchange.entry.id.encode() + b'","choices":[{"del')
    if due(FaultName.ERROR_FRAME):
        await fail()
        raise Broken
    if due(FaultName.HANG):
        await frames.flush()
        await asyncio.Event().wait()
    for name in (FaultName.CUT, FaultName.RESET):
        if due(name):
            await frames.flush()
            break_connection(exchange.transport, reset=name is FaultName.RESET)


async def send_whole(exchange: Exchange, content: bytes) -> None:
    """Send the body ``content``, with the faults of its bytes. Raises ``Broken``."""
    if FaultName.GARBAGE in exchange.faults:
        content = content[:-2]
    if FaultName.BOM in exchange.faults:
        content = b"\xef\xbb\xbf" + content
    headers = [(b"content-type", b"application/json")]
    if FaultName.SPLIT_BYTES not in exchange.faults:  # without a length each write is a chunk
        headers.append((b"content-length", str(len(content)).encode()))
    await exchange.send({"type": "http.response.start", "status": 200, "headers": headers})
    await _break_midway(exchange, content)
    if FaultName.SPLIT_BYTES in exchange.faults:
        for byte in content[:-1]:
            await exchange.send(
                {"type": "http.response.body", "body": bytes([byte]), "more_body": True}
            )
            await asyncio.sleep(0)
        content = content[-1:]
    await exchange.send({"type": "http.response.body", "body": content})


async def _break_midway(exchange: Exchange, content: bytes) -> None:
    """Apply ``cut@N``, ``reset@N`` and ``hang@N`` after half of the body, whatever N is."""
    for name in (FaultName.CUT, FaultName.RESET, FaultName.HANG):
        if name in exchange.faults:
            half = content[: len(content) // 2]
            await exchange.send({"type": "http.response.body", "body": half, "more_body": True})
            if name is FaultName.HANG:
                await asyncio.Event().wait()
            await asyncio.sleep(0)  # send the half before a reset drops it
            break_connection(exchange.transport, reset=name is FaultName.RESET)
