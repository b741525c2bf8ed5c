"""The holder of a speech key opens WebSockets and says nothing, or as little as keeps them open.

He also begins reference clips that never arrive and sends one message in tens of thousands of
fragments, and hopes to take every place that the others need for speech.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress

from tests.resilience.attackers.tools import REOPEN_SECONDS, Tally, hold
from tests.resilience.target import Target
from tests.resilience.wire import Cut, WebSocket, frame, head

_SILENT = 160
_IDLE = 40
_IDLE_SECONDS = 0.5
_CLIPS = 60
_FRAGMENTS = 70_000

Session = Callable[[WebSocket, Target], Awaitable[None]]


async def attack(target: Target, tally: Tally) -> None:
    clip = head(
        "POST", "/v1/voices", key=target.tenant.speech, headers={"Content-Length": "100000"}
    )
    await asyncio.gather(
        *(_again(_silent, target, tally) for _ in range(_SILENT)),
        *(_again(_idle, target, tally) for _ in range(_IDLE)),
        _again(_fragments, target, tally),
        hold(target.speech_port, clip + b"{", _CLIPS, tally, drip=b" "),
    )


async def _again(session: Session, target: Target, tally: Tally) -> None:
    await asyncio.sleep(random.random() * 2)
    while True:
        socket = WebSocket(target, target.tenant.speech)
        with suppress(Cut, OSError):
            async with socket:
                tally.add("session")
                await session(socket, target)
        tally.add(f"ended {socket.status}")
        await asyncio.sleep(REOPEN_SECONDS)


async def _silent(socket: WebSocket, target: Target) -> None:
    await socket.receive()


async def _idle(socket: WebSocket, target: Target) -> None:
    """A session that empty texts keep open."""
    await socket.send(type="start", voice=target.voice)
    reading = asyncio.create_task(_read(socket))
    try:
        while not reading.done():
            await socket.send(type="text", text="")
            await asyncio.sleep(_IDLE_SECONDS)
    finally:
        reading.cancel()


async def _read(socket: WebSocket) -> None:
    with suppress(Cut, OSError):
        while True:
            await socket.receive()


async def _fragments(socket: WebSocket, target: Target) -> None:
    await socket.send(type="start", voice=target.voice)
    pieces = [frame(b'{"type":"text","text":"', final=False)]
    pieces += [frame(b"a", 0, final=False)] * _FRAGMENTS
    await socket.send_raw(b"".join(pieces))
    await socket.receive()
    await socket.receive()
