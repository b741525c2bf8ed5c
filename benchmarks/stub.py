"""A model server of minimal cost: prepared answers from a hand-written protocol.

``python -m benchmarks.stub --port N``. The model's name gives the ``Pace`` of a stream.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from typing import cast

import uvloop

from benchmarks.payloads import (
    FAST_TOKENS,
    SLOW_GAP_SECONDS,
    SLOW_TOKENS,
    Pace,
    stream_pieces,
    whole_answer,
)

_WHOLE = whole_answer()
_FAST = stream_pieces(FAST_TOKENS)
_SLOW = stream_pieces(SLOW_TOKENS)
_BURST = b"".join(_FAST)
_EACH_NAME = f'{Pace.EACH}"'.encode()
_SLOW_NAME = f'{Pace.SLOW}"'.encode()


class StubProtocol(asyncio.Protocol):
    """One connection; one request at a time, as pooled clients send them."""

    def __init__(self) -> None:
        self._received = b""
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not subclasses of asyncio's.
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head_end = self._received.find(b"\r\n\r\n")
        if head_end < 0:
            return
        body = self._received[head_end + 4 :]
        if len(body) >= content_length(self._received[:head_end]):
            self._received = b""
            self._answer(body)

    def _answer(self, body: bytes) -> None:
        assert self._transport is not None
        if b'"stream":true' not in body:
            self._transport.write(_WHOLE)
        elif _SLOW_NAME in body:
            self._write_slowly(0, asyncio.get_running_loop().time())
        elif _EACH_NAME in body:
            self._write_each()
        else:
            self._transport.write(_BURST)

    def _write_each(self) -> None:
        """Write each frame with its own system call; the loop would join them."""
        assert self._transport is not None
        descriptor = self._transport.get_extra_info("socket").fileno()
        for number, piece in enumerate(_FAST):
            try:
                written = os.write(descriptor, piece)
            except BlockingIOError:
                written = 0
            if written < len(piece):
                self._transport.write(piece[written:] + b"".join(_FAST[number + 1 :]))
                return

    def _write_slowly(self, number: int, due: float) -> None:
        assert self._transport is not None
        self._transport.write(_SLOW[number])
        if number + 1 < len(_SLOW):
            # The frames after the last content frame are sent with it, as by a real server.
            due += SLOW_GAP_SECONDS if number < SLOW_TOKENS else 0.0
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(due, self._write_slowly, number + 1, due)


def content_length(head: bytes) -> int:
    """Return the bytes of the body that the head of a request announces."""
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


async def _serve(port: int) -> None:
    loop = asyncio.get_running_loop()
    await loop.create_server(StubProtocol, "127.0.0.1", port, backlog=2048)
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    uvloop.run(_serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
