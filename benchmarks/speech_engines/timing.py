"""How long an engine's first sound takes, alone and in sessions at once."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from itertools import product
from statistics import median

import aiohttp
import websockets

from benchmarks.speech import Row, Speech

SHORT = "Hello {name}."
LONG = (
    "The morning train was late again, so {name} walked along a river for a while, and spoke about "
    "what the weather would be like in the mountains next week."
)
VOICE = "woman"
_NAMES = ("".join(parts) for parts in product("BDKLMRST", "aeio", "klmnrt", "aio", "n"))
"""A name is used once: a phrase that is spoken again comes from memory."""
_BYTES_A_SECOND = 48_000


@dataclass(frozen=True, slots=True)
class Heard:
    """Seconds until the first audio and until the last; the audio, 16-bit samples."""

    first: float
    whole: float
    pcm: bytes

    @property
    def sound(self) -> float:
        """The duration of the audio in seconds."""
        return len(self.pcm) / _BYTES_A_SECOND


async def spoken(speech: Speech, text: str, voice: str = VOICE) -> Heard:
    body = {"voice": voice, "input": text, "response_format": "pcm"}
    began = time.perf_counter()
    async with (
        aiohttp.ClientSession() as client,
        client.post(speech.url, json=body, headers=speech.headers) as answer,
    ):
        assert answer.status == 200, await answer.text()
        pcm = await answer.content.readany()
        first = time.perf_counter() - began
        pcm += await answer.read()
        return Heard(first, time.perf_counter() - began, pcm)


def new(text: str) -> str:
    """``text`` with a name that was not spoken before."""
    return text.format(name=next(_NAMES))


async def start(speech: Speech) -> None:
    """Speak once, which starts the engine."""
    await spoken(speech, new(SHORT))


async def one_at_a_time(speech: Speech, rounds: int) -> list[Row]:
    """Short and long texts, new ones and the same again."""
    rows = []
    for text in (SHORT, LONG):
        seen = [await spoken(speech, new(text)) for _ in range(rounds)]
        rows.append(_row(seen, str(len(new(text)))))
    for text in map(new, (SHORT, LONG)):
        await spoken(speech, text)
        rows.append(
            _row([await spoken(speech, text) for _ in range(rounds)], f"{len(text)}, again")
        )
    return rows


def _row(seen: list[Heard], text: str) -> Row:
    return (
        text,
        f"{seen[0].sound:.2f}",
        f"{median(each.first for each in seen) * 1000:.0f}",
        f"{min(each.first for each in seen) * 1000:.0f}",
        f"{median(each.whole / each.sound for each in seen):.2f}",
    )


async def _session(speech: Speech, text: str, go: asyncio.Event) -> float | None:
    """Seconds until the frame of one short sentence; None when the engine was full."""
    uri = f"ws://127.0.0.1:{speech.port}/v1/audio/speech/stream"
    async with websockets.connect(uri, additional_headers=speech.headers, max_size=None) as socket:
        await socket.send(json.dumps({"type": "start", "voice": VOICE}))
        await socket.recv()
        await go.wait()
        began = time.perf_counter()
        await socket.send(json.dumps({"type": "text", "text": text}))
        await socket.send(json.dumps({"type": "done"}))
        return time.perf_counter() - began if isinstance(await socket.recv(), bytes) else None


async def sessions(speech: Speech, count: int) -> Row:
    """``count`` sessions that begin together, each with one short sentence."""
    go = asyncio.Event()
    running = [asyncio.create_task(_session(speech, new(SHORT), go)) for _ in range(count)]
    await asyncio.sleep(1)
    go.set()
    seen = await asyncio.gather(*running)
    frames = [seconds for seconds in seen if seconds is not None]
    return (
        str(count),
        f"{median(frames) * 1000:.0f}",
        f"{max(frames) * 1000:.0f}",
        str(count - len(frames)),
        f"{speech.resident_megabytes():.0f}",
    )
