"""``python -m benchmarks.speech_engines``: compares the embedded and the neural engine.

Each is measured over the sockets of its own gateway. Prints Markdown tables.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from statistics import median

import aiohttp
import websockets

from benchmarks.speech import Row, Speech, speaking_gateway, table

SHORT = "Hello {name}."
LONG = (
    "The morning train was late again, so {name} walked along a river for a while, and spoke about "
    "what the weather would be like in the mountains next week."
)
_NAMES = ("".join(parts) for parts in product("BDKLMRST", "aeio", "klmnrt", "aio", "n"))
"""A name is used once: a phrase that is spoken again comes from memory."""
ENGINES = {"espeak": "en-us+f3", "kokoro": "af_heart"}
_BYTES_A_SECOND = 48_000
_CATALOG = """
[[voices]]
id = "bench"
engine = "{engine}"
engine_voice = "{voice}"
"""


@dataclass(frozen=True, slots=True)
class Heard:
    """Seconds until the first audio and until the last, and the duration of the audio."""

    first: float
    whole: float
    sound: float


async def _spoken(speech: Speech, text: str) -> Heard:
    body = {"voice": "bench", "input": text, "response_format": "pcm"}
    began = time.perf_counter()
    async with (
        aiohttp.ClientSession() as client,
        client.post(speech.url, json=body, headers=speech.headers) as answer,
    ):
        assert answer.status == 200, await answer.text()
        size = len(await answer.content.readany())
        first = time.perf_counter() - began
        size += len(await answer.read())
        return Heard(first, time.perf_counter() - began, size / _BYTES_A_SECOND)


def _new(text: str) -> str:
    return text.format(name=next(_NAMES))


async def _one_at_a_time(speech: Speech, text: str, rounds: int) -> Row:
    seen = [await _spoken(speech, _new(text)) for _ in range(rounds)]
    return _row(seen, str(len(_new(text))))


async def _again(speech: Speech, text: str, rounds: int) -> Row:
    """The same text again and again, once it was spoken."""
    text = _new(text)
    await _spoken(speech, text)
    return _row([await _spoken(speech, text) for _ in range(rounds)], f"{len(text)}, again")


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
        await socket.send(json.dumps({"type": "start", "voice": "bench"}))
        await socket.recv()
        await go.wait()
        began = time.perf_counter()
        await socket.send(json.dumps({"type": "text", "text": text}))
        await socket.send(json.dumps({"type": "done"}))
        return time.perf_counter() - began if isinstance(await socket.recv(), bytes) else None


async def _sessions(speech: Speech, count: int) -> Row:
    go = asyncio.Event()
    running = [asyncio.create_task(_session(speech, _new(SHORT), go)) for _ in range(count)]
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


async def _measured(speech: Speech, engine: str, rounds: int) -> tuple[list[Row], list[Row]]:
    await _spoken(speech, _new(SHORT))  # starts the engine
    alone = [
        await measure(speech, text, rounds)
        for measure in (_one_at_a_time, _again)
        for text in (SHORT, LONG)
    ]
    crowds = [await _sessions(speech, count) for count in (1, 10, 50)]
    return [(engine, *row) for row in alone], [(engine, *row) for row in crowds]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speech_engines")
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {datetime.now(UTC):%F}.")
    alone: list[Row] = []
    crowds: list[Row] = []
    for engine, voice in ENGINES.items():
        print(f"Load average before {engine}: {os.getloadavg()[0]:.1f}.", flush=True)
        with speaking_gateway(_CATALOG.format(engine=engine, voice=voice)) as speech:
            rows, sessions = asyncio.run(_measured(speech, engine, rounds))
        alone += rows
        crowds += sessions
    heads = ["engine", "characters", "sound, s", "first pcm byte, ms", "best", "real-time factor"]
    print("\n" + table("One request at a time (medians)", heads, alone))
    heads = ["engine", "sessions", "frame, ms", "slowest", "refused", "memory, MB"]
    print(table(f"WebSocket sessions at once ({SHORT!r} each, wav)", heads, crowds))


if __name__ == "__main__":
    main()
