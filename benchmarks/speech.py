"""``python -m benchmarks.speech [--quick] [--soak MINUTES]``: measures the speech service over its
sockets with the embedded engine. Prints Markdown tables.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import aiohttp
import websockets

from benchmarks.gateway import manage
from benchmarks.processes import Server, free_port

VOICE = "bench"
SENTENCE = "The morning train was late again, so we walked along the river for a while."
TEXT = " ".join([SENTENCE, "Could you bring five cups?", "She thought that it would rain."] * 4)
FORMATS = ("wav", "pcm", "flac", "mp3", "opus")
_CATALOG = f"""
[[voices]]
id = "{VOICE}"
language = "en"
engine = "espeak"
engine_voice = "en-us+f3"
"""

Row = Sequence[str]


@dataclass(frozen=True, slots=True)
class Speech:
    """A running gateway with one worker and a key of its speech surface."""

    server: Server
    port: int
    key: str
    database: Path

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1/audio/speech"

    def resident_megabytes(self) -> float:
        """Memory of the server and of the engine's processes."""
        return self.server.resident_megabytes()


@contextmanager
def speaking_gateway(catalog: str = _CATALOG) -> Iterator[Speech]:
    """Run a gateway on its own database, with the voices of ``catalog`` and an unlimited organization."""
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as name:
        directory = Path(name)
        port, speech_port = free_port(), free_port()
        environment = {
            "DATABASE_URL": f"sqlite:///{directory / 'svc.sqlite3'}",
            "SVC_DATA_DIR": name,
            "LOG_LEVEL": "WARNING",
            "DEBUG": "false",
        }
        (directory / "catalog.toml").write_text(catalog)
        manage(environment, "migrate", "-v0")
        manage(environment, "load_catalog", str(directory / "catalog.toml"))
        limits = (
            *("--speech-requests-per-minute", "1000000000"),
            *("--speech-characters-per-day", "1000000000000"),
        )
        manage(
            environment, "create_organization", "bench", "--plan", "enterprise", "--json", *limits
        )
        made = manage(environment, "create_key", "bench", "--scope", "speech", "--json")
        arguments = ["manage.py", "serve", "--port", str(port), "--speech-port", str(speech_port)]
        server = Server(arguments, port, directory / "gateway.log", environment)
        try:
            database = directory / "svc.sqlite3"
            yield Speech(server, speech_port, json.loads(made)["key"], database)
        finally:
            server.stop()


async def _spoken(
    client: aiohttp.ClientSession, speech: Speech, audio_format: str, text: str
) -> tuple[float, float, float, int]:
    """Milliseconds until the first audio byte, until the last, and outside the engine; bytes."""
    body = {"voice": VOICE, "input": text, "response_format": audio_format}
    began = time.perf_counter()
    async with client.post(speech.url, json=body, headers=speech.headers) as answer:
        assert answer.status == 200, await answer.text()
        first = await answer.content.readany()
        until_first = time.perf_counter() - began
        size = len(first) + len(await answer.read())
        beyond = float(answer.headers["x-gateway-ms"]) - float(answer.headers["x-upstream-ms"])
    return until_first * 1000, (time.perf_counter() - began) * 1000, beyond, size


async def _one_at_a_time(speech: Speech, rounds: int) -> Iterator[Row]:
    rows = []
    async with aiohttp.ClientSession() as client:
        for audio_format in FORMATS:
            for _ in range(3):
                await _spoken(client, speech, audio_format, SENTENCE)
            seen = [await _spoken(client, speech, audio_format, SENTENCE) for _ in range(rounds)]
            firsts, wholes, beyonds, sizes = zip(*seen, strict=True)
            rows.append(
                (
                    audio_format,
                    f"{median(beyonds):.0f}",
                    f"{median(firsts):.1f}",
                    f"{quantiles(firsts, n=100)[98]:.1f}",
                    f"{median(wholes):.1f}",
                    f"{median(sizes) / 1024:.0f}",
                )
            )
    return iter(rows)


@dataclass(frozen=True, slots=True)
class Session:
    """The result of a WebSocket session; milliseconds since ``done`` was sent."""

    first_frame: float
    whole: float
    frames: int


async def _session(speech: Speech, go: asyncio.Event) -> Session:
    uri = f"ws://127.0.0.1:{speech.port}/v1/audio/speech/stream"
    async with websockets.connect(uri, additional_headers=speech.headers, max_size=None) as socket:
        await socket.send(json.dumps({"type": "start", "voice": VOICE, "response_format": "wav"}))
        assert json.loads(await socket.recv())["type"] == "ready"
        await go.wait()
        began = time.perf_counter()
        await socket.send(json.dumps({"type": "text", "text": TEXT}))
        await socket.send(json.dumps({"type": "done"}))
        first, frames = 0.0, 0
        while isinstance(message := await socket.recv(), bytes):
            frames += 1
            first = first or time.perf_counter() - began
        assert json.loads(message) == {"type": "session.done"}, message
        return Session(first * 1000, (time.perf_counter() - began) * 1000, frames)


async def _sessions(speech: Speech, count: int) -> Row:
    go = asyncio.Event()
    running = [asyncio.create_task(_session(speech, go)) for _ in range(count)]
    await asyncio.sleep(1)
    go.set()
    seen = await asyncio.gather(*running)
    firsts = [session.first_frame for session in seen]
    return (
        str(count),
        f"{median(firsts):.0f}",
        f"{max(firsts):.0f}",
        f"{median(session.whole for session in seen):.0f}",
        f"{sum(session.frames for session in seen)}",
    )


async def _soak(speech: Speech, minutes: float) -> list[Row]:
    """Mixed load from eight clients; a line of memory and work done for each tenth of the time."""
    done = {"requests": 0, "sessions": 0, "disconnects": 0}
    until = time.monotonic() + minutes * 60

    async def clip(number: int, client: aiohttp.ClientSession) -> None:
        await _spoken(client, speech, FORMATS[number % len(FORMATS)], SENTENCE)
        done["requests"] += 1

    async def session(number: int, client: aiohttp.ClientSession) -> None:
        go = asyncio.Event()
        go.set()
        await _session(speech, go)
        done["sessions"] += 1

    async def hang_up(number: int, client: aiohttp.ClientSession) -> None:
        body = {"voice": VOICE, "input": TEXT, "response_format": "pcm"}
        async with client.post(speech.url, json=body, headers=speech.headers) as answer:
            await answer.content.readany()
            answer.close()
        done["disconnects"] += 1

    kinds: tuple[Callable[[int, aiohttp.ClientSession], Awaitable[None]], ...] = (
        *(clip,) * 5,
        session,
        session,
        hang_up,
    )

    async def client_of(kind: Callable[[int, aiohttp.ClientSession], Awaitable[None]]) -> None:
        async with aiohttp.ClientSession() as client:
            number = 0
            while time.monotonic() < until:
                await kind(number, client)
                number += 1

    running = [asyncio.create_task(client_of(kind)) for kind in kinds]
    rows: list[Row] = []
    for tenth in range(11):
        counts = [f"{figure:,}" for figure in done.values()]
        rows.append((f"{minutes * tenth / 10:.3g}", f"{speech.resident_megabytes():.0f}", *counts))
        if tenth < 10:
            await asyncio.sleep(minutes * 6)
    await asyncio.gather(*running)
    return rows


def table(title: str, heads: Row, rows: Iterator[Row] | Sequence[Row]) -> str:
    lines = [f"### {title}\n", _line(heads), _line(["---", *["---:"] * (len(heads) - 1)])]
    return "\n".join([*lines, *map(_line, rows)]) + "\n"


def _line(cells: Sequence[Any]) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speech")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--soak", type=float, metavar="MINUTES", help="mixed load instead")
    arguments = parser.parse_args()
    print(
        f"Python {platform.python_version()}, {os.cpu_count()} cores, one worker, SQLite, "
        f"embedded engine, {datetime.now(UTC):%Y-%m-%d}."
    )
    print(f"Load average at the start: {os.getloadavg()[0]:.1f}.\n", flush=True)
    with speaking_gateway() as speech:
        if arguments.soak:
            heads = ["minute", "memory, MB", "requests", "sessions", "disconnects"]
            rows = asyncio.run(_soak(speech, arguments.soak))
            print(table(f"{arguments.soak:g} minutes of mixed load, 8 clients", heads, rows))
            return
        found = asyncio.run(_one_at_a_time(speech, 30 if arguments.quick else 200))
        heads = ["format", "overhead, ms", "first byte, ms", "p99", "whole, ms", "KB"]
        print(table(f"One request at a time ({len(SENTENCE)} characters)", heads, found))
        rounds = [asyncio.run(_sessions(speech, n)) for n in (1, 10, 50) for _ in range(3)]
        heads = ["sessions", "first frame, ms", "slowest first", "all frames, ms", "frames"]
        print(table("WebSocket sessions at once (12 sentences each, wav)", heads, rounds))
    print(f"Load average at the end: {os.getloadavg()[0]:.1f}.")


if __name__ == "__main__":
    main()
