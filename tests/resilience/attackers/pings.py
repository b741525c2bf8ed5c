"""The holder of a speech key floods open WebSockets with pings, flushes, and texts of one letter.

He reads no answer, and hopes that frames which cost no limit keep the event loop busy, and that their
answers fill memory.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from tests.resilience.attackers.tools import REOPEN_SECONDS, Tally
from tests.resilience.target import Target
from tests.resilience.wire import Cut, WebSocket, frame

_BURST = 200
_PINGS = 2000
_BURST_SECONDS = 0.05
_PING = 9


async def attack(target: Target, tally: Tally) -> None:
    bursts = (
        frame(b"x" * 125, _PING) * _PINGS,
        frame(b'{"type":"flush"}') * _BURST,
        frame(b'{"type":"text","text":" "}') * _BURST,
        frame(b'{"type":"start","voice":"ava"}'),
    )
    await asyncio.gather(*(_flood(burst, target, tally) for burst in bursts for _ in range(2)))


async def _flood(burst: bytes, target: Target, tally: Tally) -> None:
    while True:
        socket = WebSocket(target, target.tenant.speech)
        with suppress(Cut, OSError):
            async with socket:
                await socket.send(type="start", voice=target.voice)
                await socket.receive()
                socket.stop_reading()
                while True:
                    await socket.send_raw(burst)
                    tally.add("bursts")
                    await asyncio.sleep(_BURST_SECONDS)
        tally.add(f"ended {socket.status}")
        await asyncio.sleep(REOPEN_SECONDS)
