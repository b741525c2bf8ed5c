"""``python -m benchmarks.sessions [--sessions N] [--seconds S]``: concurrent long WebSocket sessions.

Half of them send a sentence every three seconds, the others pause up to 25 seconds between
sentences, which is below the server's idle timeout. Each must end with ``session.done`` and
1000, with a frame for each sentence, and have one row in the ledger that agrees. Prints a Markdown
table; the exit status is 1 when a session failed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import sqlite3
import sys
import time
from collections import deque
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import median

import websockets

from benchmarks.speech import SENTENCE, VOICE, Speech, speaking_gateway, table

STEADY_SECONDS = 3.0
LONGEST_SILENCE = 25.0
_FRAME_SECONDS = 60.0
_OPENING_SECONDS = 2.0
"""Seconds over which the sessions begin, so that they do not all speak at once."""
_ROW = "SELECT outcome, sentences, characters, close_code FROM usage_speechrow WHERE request_id = ?"


@dataclass(slots=True)
class Seen:
    """The result of a session. ``waits`` are the milliseconds from a sentence to its frame."""

    kind: str
    request_id: str = ""
    sent: int = 0
    characters: int = 0
    waits: list[float] = field(default_factory=list)
    problem: str = ""


async def _converse(socket: websockets.ClientConnection, seen: Seen, seconds: float) -> None:
    """Send text for ``seconds`` and receive every frame; raise when the session ends wrongly."""
    await socket.send(json.dumps({"type": "start", "voice": VOICE, "response_format": "wav"}))
    if json.loads(await socket.recv())["type"] != "ready":
        raise ValueError("not ready")
    asked: deque[float] = deque()
    hearing = asyncio.create_task(_hear(socket, asked, seen))
    try:
        until = time.monotonic() + seconds
        while True:
            text = f"{SENTENCE}\n"
            asked.append(time.perf_counter())
            await socket.send(json.dumps({"type": "text", "text": text}))
            seen.sent += 1
            seen.characters += len(text)
            pause = _pause(seen.kind)
            if time.monotonic() + pause > until:
                break
            await asyncio.sleep(pause)
        await asyncio.sleep(max(0.0, until - time.monotonic()))
        await socket.send(json.dumps({"type": "done"}))
        async with asyncio.timeout(_FRAME_SECONDS):
            await hearing
    finally:
        hearing.cancel()
        await asyncio.gather(hearing, return_exceptions=True)


def _pause(kind: str) -> float:
    return STEADY_SECONDS if kind == "steady" else random.uniform(5.0, LONGEST_SILENCE)


async def _hear(socket: websockets.ClientConnection, asked: deque[float], seen: Seen) -> None:
    while isinstance(message := await socket.recv(), bytes):
        seen.waits.append((time.perf_counter() - asked.popleft()) * 1000)
    if json.loads(message) != {"type": "session.done"}:
        raise ValueError(message)
    await socket.wait_closed()
    if socket.close_code != 1000:
        raise ValueError(f"closed with {socket.close_code}")


async def _session(target: Speech, kind: str, seconds: float) -> Seen:
    seen = Seen(kind)
    await asyncio.sleep(random.uniform(0, _OPENING_SECONDS))
    uri = f"ws://127.0.0.1:{target.port}/v1/audio/speech/stream"
    try:
        async with websockets.connect(
            uri, additional_headers=target.headers, max_size=None, ping_interval=None
        ) as socket:
            assert socket.response is not None
            seen.request_id = socket.response.headers["x-request-id"]
            await _converse(socket, seen, seconds)
    except (OSError, TimeoutError, ValueError, IndexError, websockets.WebSocketException) as error:
        seen.problem = f"{type(error).__name__}: {error}"
    return seen


async def _all(target: Speech, count: int, seconds: float) -> list[Seen]:
    kinds = ["steady" if number % 2 == 0 else "pauses" for number in range(count)]
    return await asyncio.gather(*(_session(target, kind, seconds) for kind in kinds))


def _in_the_ledger(target: Speech, seen: Sequence[Seen]) -> None:
    """Record as a problem every difference between ledger and session."""
    with closing(sqlite3.connect(target.database)) as database:
        for each in seen:
            rows = database.execute(_ROW, (each.request_id,)).fetchall()
            right = [("success", each.sent, each.characters, None)]
            if not each.problem and (rows != right or len(each.waits) != each.sent):
                each.problem = f"{each.sent} sent, {len(each.waits)} frames, ledger {rows}"


def _line(kind: str, seen: Sequence[Seen]) -> list[str]:
    waits = [wait for each in seen for wait in each.waits] or [0.0]
    return [
        kind,
        str(len(seen)),
        f"{len(waits):,}",
        f"{median(waits):.0f}",
        f"{max(waits):.0f}",
        str(sum(bool(each.problem) for each in seen)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sessions")
    parser.add_argument("--sessions", type=int, default=50, help="concurrent sessions")
    parser.add_argument("--seconds", type=float, default=600.0, help="duration of each")
    arguments = parser.parse_args()
    print(
        f"Python {platform.python_version()}, {os.cpu_count()} cores, one worker, SQLite, "
        f"embedded engine, {datetime.now(UTC):%Y-%m-%d}. Load average: {os.getloadavg()[0]:.1f}."
    )
    with speaking_gateway() as target:
        memory = [target.resident_megabytes()]
        seen = asyncio.run(_all(target, arguments.sessions, arguments.seconds))
        memory.append(target.resident_megabytes())
        _in_the_ledger(target, seen)
    heads = ["text", "sessions", "frames", "median frame, ms", "slowest, ms", "failed"]
    rows = [
        _line(kind, [each for each in seen if each.kind == kind]) for kind in ("steady", "pauses")
    ]
    print(f"Load average at the end: {os.getloadavg()[0]:.1f}.\n")
    print(table(f"{arguments.sessions} sessions of {arguments.seconds:g} s at once", heads, rows))
    print(f"Memory of the server and its engine: {memory[0]:.0f} MB before, {memory[1]:.0f} after.")
    for each in seen:
        if each.problem:
            print(f"FAILED: {each.kind} {each.request_id} {each.problem}")
    sys.exit(any(each.problem for each in seen))


if __name__ == "__main__":
    main()
