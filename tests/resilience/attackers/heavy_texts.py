"""The holder of a speech key sends texts that take longest to read: a full stop after each letter.

He hopes that reading them, before any limit is asked, and encoding what is spoken keeps the processor
from everybody else.
"""

from __future__ import annotations

import asyncio
import itertools
from contextlib import suppress
from functools import partial

from speech.wire import LONGEST_SESSION
from tests.resilience.attackers.tools import Tally, flood
from tests.resilience.target import Target
from tests.resilience.wire import Cut, WebSocket, request, speech

PATTERNS = ("a. b ", "1 !", "1 <", "e.g. ", "e.g. ]etc. ", "[pause]")
PIECE = 500
"""Characters of one message: as many as no gateway leaves to another process at once."""
_LENGTH = 4096
_FORMATS = ("wav", "mp3", "opus", "flac")


def _in_pieces(pattern: str) -> list[str]:
    text = (pattern * LONGEST_SESSION)[:LONGEST_SESSION]
    return [text[at : at + PIECE] for at in range(0, LONGEST_SESSION, PIECE)]


async def attack(target: Target, tally: Tally) -> None:
    texts = [(pattern * _LENGTH)[:_LENGTH] for pattern in PATTERNS]
    pieces = itertools.cycle(_in_pieces(pattern) for pattern in PATTERNS)
    contents = itertools.cycle(
        request("POST", "/v1/audio/speech", key=target.tenant.speech, body=body)
        for body in map(partial(speech, target), texts * len(_FORMATS), itertools.cycle(_FORMATS))
    )

    async def session(texts: list[str]) -> None:
        socket = WebSocket(target, target.tenant.speech)
        with suppress(Cut):
            async with socket:
                await socket.send(type="start", voice=target.voice)
                for text in texts:
                    await socket.send(type="text", text=text)
                await socket.send(type="cancel")
                while True:
                    await socket.receive()
        tally.add(f"session {socket.status}")

    await asyncio.gather(
        flood(lambda: tally.ask(target.speech_port, next(contents)), per_second=20, at_once=12),
        flood(lambda: session(texts), per_second=2, at_once=2),
        # Small pieces, cancelled before anything is spoken, which only then would be charged.
        flood(lambda: session(next(pieces)), per_second=10, at_once=4),
    )
