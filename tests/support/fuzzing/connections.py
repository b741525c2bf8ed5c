"""Plays many conversations at once on bare connections, and reports those that went wrong."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Protocol, TypeVar

AT_ONCE = 64
_SURPLUS_SECONDS = 0.1
"""How long a connection that is answered is read on, for answers without a request."""
_MANY_WRITES = 20
"""As many are made without pauses: a head that is too slow would be refused."""
_TRACES = ("Traceback", "unexpected", "ASGI callable")


class Playable(Protocol):
    """What a client writes on one connection."""

    @property
    def seed(self) -> int: ...
    @property
    def on_speech(self) -> bool: ...
    @property
    def writes(self) -> Sequence[bytes]: ...
    @property
    def hangs_up(self) -> bool: ...


Played = TypeVar("Played", bound=Playable)
Look = Callable[[Played, bytes, bool], list[str]]
"""Returns the faults of a conversation, what was received, and whether the server ended it."""


@dataclass(frozen=True)
class Finding:
    seed: int
    faults: Sequence[str]
    writes: Sequence[bytes]
    received: bytes

    def __str__(self) -> str:
        return (
            f"seed {self.seed}: {'; '.join(self.faults)}\n  writes   {list(self.writes)!r}"[:6000]
            + f"\n  received {self.received[:1500]!r}"
        )


@dataclass(frozen=True)
class Player:
    """Plays conversations against a gateway whose bounds end every connection in ``seconds``."""

    port: int
    speech_port: int
    log: Path
    seconds: float

    def play(
        self, made: Iterable[Played], look: Look[Played], is_over: Callable[[Played, bytes], bool]
    ) -> list[Finding]:
        """Play all of ``made``; also read what the gateway logged meanwhile."""
        before = self.log.stat().st_size
        findings = asyncio.run(self._play_all(made, look, is_over))
        logged = self.log.read_bytes()[before:].decode(errors="replace")
        if any(trace in logged for trace in _TRACES):
            findings.append(Finding(-1, [f"the gateway logged:\n{logged[-4000:]}"], [], b""))
        return findings

    async def _play_all(
        self, made: Iterable[Played], look: Look[Played], is_over: Callable[[Played, bytes], bool]
    ) -> list[Finding]:
        findings: list[Finding] = []
        waiting = iter(made)

        async def play_some() -> None:
            for each in waiting:
                received, ended = await self._play_one(each, is_over)
                if faults := look(each, received, ended):
                    findings.append(Finding(each.seed, faults, each.writes, received))

        await asyncio.gather(*(play_some() for _ in range(AT_ONCE)))
        return findings

    async def _play_one(
        self, each: Played, is_over: Callable[[Played, bytes], bool]
    ) -> tuple[bytes, bool]:
        """Return all that was received, and whether the server ended the connection."""
        port = self.speech_port if each.on_speech else self.port
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        received = bytearray()
        writing = asyncio.ensure_future(_write(writer, each))
        deadline = time.monotonic() + self.seconds
        try:
            while True:
                left = deadline - time.monotonic()
                if not writing.done():
                    left = self.seconds
                over = writing.done() and is_over(each, bytes(received))
                read = await asyncio.wait_for(
                    reader.read(65536), max(0.01, min(left, _SURPLUS_SECONDS) if over else left)
                )
                if not read:
                    return bytes(received), True
                received += read
        except TimeoutError:
            return bytes(received), False
        except OSError:  # a reset
            return bytes(received), True
        finally:
            writing.cancel()
            writer.transport.abort()
            await asyncio.gather(writing, return_exceptions=True)


async def _write(writer: asyncio.StreamWriter, each: Playable) -> None:
    """Write each part, with pauses after which the server has mostly read it."""
    pauses = Random(each.seed)
    for part in each.writes:
        writer.write(part)
        await writer.drain()
        if len(each.writes) < _MANY_WRITES:
            await asyncio.sleep(pauses.choice((0, 0.002, 0.02)))
    if each.hangs_up:
        writer.write_eof()
