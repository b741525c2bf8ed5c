"""Shared by the attackers: counting answers, sending at a pace, holding connections open."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress

from tests.resilience.wire import Answer, Cut, ask, connect, parsed

BEGUN = "begun"
IDLE = "idle"
_BLOCK = 65_536
REOPEN_SECONDS = 0.5
"""The pause before a closed connection is opened again."""


class Tally:
    """The answers to an attacker, by status; cut and refused connections count as such."""

    def __init__(self) -> None:
        self.answers: Counter[str] = Counter()
        self.begun = asyncio.Event()

    def add(self, what: str | int) -> None:
        self.answers[str(what)] += 1
        self.begun.set()

    async def ask(self, port: int, content: bytes) -> Answer | None:
        """Send ``content`` and count the answer; None when it is not complete."""
        try:
            answer = await ask(port, content)
        except Cut:
            self.add("cut")
        except OSError as error:
            self.add(type(error).__name__)
        else:
            self.add(answer.status)
            return answer
        return None


async def flood(once: Callable[[], Awaitable[object]], *, per_second: float, at_once: int) -> None:
    """Call ``once`` at an even pace, as long as no more than ``at_once`` of it run."""
    running: set[asyncio.Task[None]] = set()
    pause = 1 / per_second

    async def guarded() -> None:
        with suppress(OSError, Cut):
            await once()

    try:
        while True:
            if len(running) < at_once:
                task = asyncio.create_task(guarded())
                running.add(task)
                task.add_done_callback(running.discard)
            await asyncio.sleep(pause)
    finally:
        for task in running:
            task.cancel()


async def hold(
    port: int,
    content: bytes,
    count: int,
    tally: Tally,
    *,
    drip: bytes = b"",
    drip_seconds: float = 1.0,
    reads: bool = True,
    receive_buffer: int | None = None,
) -> None:
    """Hold ``count`` connections on which ``content`` was sent, then ``drip`` now and then.

    One that is answered or closed is counted, and opened again. Without ``reads`` nothing is read,
    and the connection is held until the gateway resets it.
    """

    async def one() -> None:
        await asyncio.sleep(random.random())
        while True:
            try:
                reader, writer = await connect(port, receive_buffer=receive_buffer)
            except OSError as error:
                tally.add(type(error).__name__)
                await asyncio.sleep(REOPEN_SECONDS)
                continue
            tally.add("opened")
            if not reads:
                writer.transport.pause_reading()  # type: ignore[attr-defined]  # a socket's has it
            try:
                with suppress(OSError):
                    await _write(writer, content)
                    await _until_answered(reader, writer, tally, drip, drip_seconds, reads)
            finally:
                writer.transport.abort()
            await asyncio.sleep(REOPEN_SECONDS)

    await asyncio.gather(*(one() for _ in range(count)))


async def _write(writer: asyncio.StreamWriter, content: bytes) -> None:
    for at in range(0, len(content), _BLOCK):
        writer.write(content[at : at + _BLOCK])
        await writer.drain()


async def _until_answered(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    tally: Tally,
    drip: bytes,
    drip_seconds: float,
    reads: bool,
) -> None:
    answer = asyncio.create_task(reader.read(-1) if reads else writer.wait_closed())
    try:
        while not answer.done():
            await asyncio.wait([answer], timeout=drip_seconds)
            if drip and not answer.done():
                writer.write(drip)
        said = await answer
        if said:
            try:
                tally.add(parsed(said).status)
            except Cut:
                tally.add("cut")
        else:
            tally.add("closed")
    finally:
        answer.cancel()
