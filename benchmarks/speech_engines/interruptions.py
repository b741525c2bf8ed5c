"""How long a voice goes on after ``clear``, and how long the next utterance waits for it."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from statistics import median

import websockets
from websockets.asyncio.client import ClientConnection

from benchmarks.speech import Row, Speech
from benchmarks.speech_engines.timing import LONG, SHORT, VOICE, new


@dataclass(frozen=True, slots=True)
class Interruption:
    """Seconds from ``clear`` to ``cleared``, and to the frame of the next utterance."""

    silence: float
    following: float


async def interrupted(speech: Speech, rounds: int) -> Row:
    """Interrupt long texts in one session, each while its second sentence is being made."""
    uri = f"ws://127.0.0.1:{speech.port}/v1/audio/speech/stream"
    async with websockets.connect(uri, additional_headers=speech.headers, max_size=None) as socket:
        start = {"type": "start", "voice": VOICE, "response_format": "pcm", "keep_open": True}
        await _send(socket, **start)
        await socket.recv()
        alone = [await _said(socket) for _ in range(rounds)]
        seen = [await _interruption(socket, number) for number in range(rounds)]
    return (
        str(rounds),
        f"{median(each.silence for each in seen) * 1000:.1f}",
        f"{max(each.silence for each in seen) * 1000:.1f}",
        f"{median(each.following for each in seen) * 1000:.0f}",
        f"{max(each.following for each in seen) * 1000:.0f}",
        f"{median(alone) * 1000:.0f}",
    )


async def _interruption(socket: ClientConnection, number: int) -> Interruption:
    # The second sentence is longer from round to round, so that runs are interrupted anywhere in them.
    longer = " ".join(["and then"] * (number % 5))
    await _send(socket, type="text", text=" ".join([new(SHORT), longer, *map(new, [LONG] * 3)]))
    await _frame(socket)
    began = time.perf_counter()
    await _send(socket, type="clear")
    while isinstance(answer := await socket.recv(), bytes):
        pass
    silence = time.perf_counter() - began
    assert json.loads(answer)["type"] == "cleared", answer
    return Interruption(silence, await _said(socket, began))


async def _said(socket: ClientConnection, began: float | None = None) -> float:
    """Seconds until the frame of a short utterance, since ``began`` or its text was sent. Raises
    ``AssertionError`` where another frame comes, such as one of a dropped text."""
    began = time.perf_counter() if began is None else began
    await _send(socket, type="text", text=new(SHORT))
    await _send(socket, type="done")
    await _frame(socket)
    seconds = time.perf_counter() - began
    done = json.loads(await socket.recv())
    assert (done["type"], done["sentences"]) == ("utterance.done", 1), done
    return seconds


async def _frame(socket: ClientConnection) -> None:
    frame = await socket.recv()
    assert isinstance(frame, bytes), frame


async def _send(socket: ClientConnection, **message: object) -> None:
    await socket.send(json.dumps(message))
