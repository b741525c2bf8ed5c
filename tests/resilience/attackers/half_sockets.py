"""Somebody without a key opens connections and says nothing, half a head, or something that is no HTTP.

Others he resets in the middle. He hopes that connections alone use up what the gateway has.
"""

from __future__ import annotations

import asyncio
import socket
import struct

from tests.resilience.attackers.tools import Tally, flood, hold
from tests.resilience.target import Target
from tests.resilience.wire import connect, request

_SILENT = 200
_HALF = 200
_TLS_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500)


async def attack(target: Target, tally: Tally) -> None:
    half = b"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: "

    async def reset() -> None:
        _, writer = await connect(target.port)
        raw = writer.get_extra_info("socket")
        # Lingering for no time makes the close a reset (socket(7), SO_LINGER).
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.write(request("GET", "/console/login"))
        await asyncio.sleep(0.005)
        writer.transport.abort()
        tally.add("reset")

    async def say_goodbye_at_once() -> None:
        reader, writer = await connect(target.port)
        writer.write(request("GET", "/console/login"))
        writer.write_eof()
        await reader.read(-1)
        writer.transport.abort()
        tally.add("half-closed")

    await asyncio.gather(
        hold(target.port, b"", _SILENT, tally),
        hold(target.speech_port, b"", _SILENT, tally),
        hold(target.port, half, _HALF, tally, drip=b"x"),
        flood(reset, per_second=20, at_once=20),
        flood(say_goodbye_at_once, per_second=10, at_once=10),
        flood(lambda: tally.ask(target.port, _TLS_HELLO), per_second=20, at_once=20),
    )
