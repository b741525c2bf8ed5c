"""A model server that costs next to nothing: ready answers from a hand-written protocol.

``python -m benchmarks.stub --fast-port N --slow-port M``. On both ports a request that does not
stream gets a whole answer. A stream leaves as fast as the connection takes it on the fast port,
and at ten frames a second on the slow one.
"""

from __future__ import annotations

import argparse
import asyncio
from functools import partial
from typing import cast

import uvloop

from benchmarks.payloads import (
    FAST_FRAMES,
    SLOW_FRAMES,
    SLOW_GAP_SECONDS,
    stream_pieces,
    whole_answer,
)

_WHOLE = whole_answer()
_FAST = stream_pieces(FAST_FRAMES)
_SLOW = stream_pieces(SLOW_FRAMES)
_FAST_AT_ONCE = b"".join(_FAST)


class StubProtocol(asyncio.Protocol):
    """One connection; one request at a time, as pooled clients send them."""

    def __init__(self, *, slow: bool) -> None:
        self._slow = slow
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
        if len(body) >= _content_length(self._received[:head_end]):
            self._received = b""
            self._answer(b'"stream":true' in body)

    def _answer(self, stream: bool) -> None:
        assert self._transport is not None
        if not stream:
            self._transport.write(_WHOLE)
        elif self._slow:
            self._pace(0, asyncio.get_running_loop().time())
        else:
            self._transport.write(_FAST_AT_ONCE)

    def _pace(self, number: int, due: float) -> None:
        assert self._transport is not None
        self._transport.write(_SLOW[number])
        if number + 1 < len(_SLOW):
            # What follows the last content frame comes with it, as from a real server.
            gap = SLOW_GAP_SECONDS if number < SLOW_FRAMES else 0.0
            due += gap
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(due, self._pace, number + 1, due)


def _content_length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


async def _serve(fast_port: int, slow_port: int) -> None:
    loop = asyncio.get_running_loop()
    for port, slow in ((fast_port, False), (slow_port, True)):
        await loop.create_server(partial(StubProtocol, slow=slow), "127.0.0.1", port, backlog=2048)
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fast-port", type=int, required=True)
    parser.add_argument("--slow-port", type=int, required=True)
    arguments = parser.parse_args()
    uvloop.run(_serve(arguments.fast_port, arguments.slow_port))


if __name__ == "__main__":
    main()
