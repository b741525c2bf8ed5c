"""Attackers who hold what others need: connections, bodies, answers, places for speech."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress

from tests.resilience.attackers.tools import REOPEN_SECONDS, Tally, flood, hold
from tests.resilience.target import Target
from tests.resilience.wire import Cut, WebSocket, chat, connect, frame, head, request, speech

_NO_KEY_HELD = 60
_NO_KEY_PART = b"x" * 2_500_000
_NO_KEY_SILENT = 300
_NO_KEY_UNREAD = 30
_NO_KEY_LARGE_PAGE = "/static/admin/js/vendor/xregexp/xregexp.js"
_NO_KEY_BUFFER = 4096
_NO_KEY_BLOCK = b"%x\r\n" % 262_144 + b"x" * 262_144 + b"\r\n"
_NO_KEY_BLOCK_SECONDS = 0.02


async def no_key(target: Target, tally: Tally) -> None:
    """Somebody without a key sends bodies to pages that take none, and chats that never begin.

    He holds 2.5 MB on each of many connections, one body without an end, and large pages that he does not
    read, and hopes to fill memory, disk and the room for requests.
    """
    length = {"Content-Length": str(len(_NO_KEY_PART) + 100_000)}
    chunked = {"Transfer-Encoding": "chunked"}
    pages = ("/v1/models", "/v1/usage", "/console/login", "/nonexistent")
    await asyncio.gather(
        *(
            hold(
                target.port,
                head("POST", page, headers=length) + _NO_KEY_PART,
                _NO_KEY_HELD // len(pages),
                tally,
                drip=b"x",
            )
            for page in pages
        ),
        hold(
            target.port,
            head("POST", "/v1/chat/completions", headers=chunked),
            _NO_KEY_SILENT // 2,
            tally,
        ),
        hold(
            target.speech_port,
            head("POST", "/v1/audio/speech", headers=chunked),
            _NO_KEY_SILENT // 2,
            tally,
        ),
        hold(
            target.port,
            head("GET", _NO_KEY_LARGE_PAGE),
            _NO_KEY_UNREAD,
            tally,
            reads=False,
            receive_buffer=_NO_KEY_BUFFER,
        ),
        _endless(target, tally),
    )


async def _endless(target: Target, tally: Tally) -> None:
    """A body that goes on as long as anybody takes it, at 13 MB/s."""
    while True:
        with suppress(OSError):
            _, writer = await connect(target.port)
            tally.add("opened")
            try:
                writer.write(head("POST", "/v1/usage", headers={"Transfer-Encoding": "chunked"}))
                while True:
                    writer.write(_NO_KEY_BLOCK)
                    await writer.drain()
                    await asyncio.sleep(_NO_KEY_BLOCK_SECONDS)
            finally:
                writer.transport.abort()
        await asyncio.sleep(REOPEN_SECONDS)


_HALF_SOCKETS_SILENT = 200
_HALF_SOCKETS_HALF = 200
_HALF_SOCKETS_TLS_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500)


async def half_sockets(target: Target, tally: Tally) -> None:
    """Somebody without a key opens connections and says nothing, half a head, or something that is no HTTP.

    Others he resets in the middle. He hopes that connections alone use up what the gateway has.
    """
    half = b"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: "

    async def reset() -> None:
        _, writer = await connect(target.port)
        raw = writer.get_extra_info("socket")
        # Lingering for no time makes the close a reset (socket(7), SO_LINGER).
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.write(request("GET", "/console/login"))
        await asyncio.sleep(0.005)
        writer.transport.abort()
        tally.add("reset")

    async def say_goodbye_at_once() -> None:
        reader, writer = await connect(target.port)
        writer.write(request("GET", "/console/login"))
        writer.write_eof()
        await reader.read(-1)
        writer.transport.abort()
        tally.add("half-closed")

    await asyncio.gather(
        hold(target.port, b"", _HALF_SOCKETS_SILENT, tally),
        hold(target.speech_port, b"", _HALF_SOCKETS_SILENT, tally),
        hold(target.port, half, _HALF_SOCKETS_HALF, tally, drip=b"x"),
        flood(reset, per_second=20, at_once=20),
        flood(say_goodbye_at_once, per_second=10, at_once=10),
        flood(lambda: tally.ask(target.port, _HALF_SOCKETS_TLS_HELLO), per_second=20, at_once=20),
    )


_SLOW_BODIES_HELD = 150
_SLOW_BODIES_CLIPS = 24
_SLOW_BODIES_CLIP = 15_000_000


async def slow_bodies(target: Target, tally: Tally) -> None:
    """The holder of an inference and a speech key begins bodies and then sends a byte a second.

    Most are small; some are reference clips of 16 MB of which little is missing. He hopes that bodies that
    are being read take all the room and memory that one process has for requests.
    """
    length = {"Content-Length": "100000"}
    inference, speech = (
        head("POST", path, key=key, headers=length) + b"{"
        for path, key in (
            ("/v1/chat/completions", target.tenant.inference),
            ("/v1/audio/speech", target.tenant.speech),
        )
    )
    clip = head(
        "POST",
        "/v1/voices",
        key=target.tenant.speech,
        headers={"Content-Length": str(_SLOW_BODIES_CLIP + 100_000)},
    )
    await asyncio.gather(
        hold(
            target.speech_port,
            clip + b" " * _SLOW_BODIES_CLIP,
            _SLOW_BODIES_CLIPS,
            tally,
            drip=b" ",
        ),
        hold(target.port, inference, _SLOW_BODIES_HELD, tally, drip=b" "),
        hold(target.speech_port, speech, _SLOW_BODIES_HELD, tally, drip=b" "),
    )


_SLOW_READERS_BUFFER = 4096
_SLOW_READERS_DOWNLOADS = 40
_SLOW_READERS_STREAMS = 30
_SLOW_READERS_VOICES = 4
_SLOW_READERS_FILES = 12


async def slow_readers(target: Target, tally: Tally) -> None:
    """A tenant asks for long answers and reads nothing of them: CSV, streamed chats, streamed
    sound, complete files of sound.

    He hopes to hold memory, places, database transactions and model servers for as long as he likes.
    """
    keys = target.tenant
    body = chat(target, "tell me [[sim tokens=1500]]", stream=True)
    sound, file = (speech(target, "This goes on. " * 250, kind) for kind in ("pcm", "wav"))
    asked = (
        (
            target.port,
            request("GET", "/v1/usage/export?format=csv", key=keys.read),
            _SLOW_READERS_DOWNLOADS,
        ),
        (
            target.port,
            request("POST", "/v1/chat/completions", key=keys.inference, body=body),
            _SLOW_READERS_STREAMS,
        ),
        (
            target.speech_port,
            request("POST", "/v1/audio/speech", key=keys.speech, body=sound),
            _SLOW_READERS_VOICES,
        ),
        (
            target.speech_port,
            request("POST", "/v1/audio/speech", key=keys.speech, body=file),
            _SLOW_READERS_FILES,
        ),
    )
    await asyncio.gather(
        *(
            hold(port, content, count, tally, reads=False, receive_buffer=_SLOW_READERS_BUFFER)
            for port, content, count in asked
        )
    )


_SPEECH_KEY_SILENT = 160
_SPEECH_KEY_IDLE = 40
_SPEECH_KEY_IDLE_SECONDS = 0.5
_SPEECH_KEY_CLIPS = 60
_SPEECH_KEY_FRAGMENTS = 70_000

Session = Callable[[WebSocket, Target], Awaitable[None]]


async def speech_key(target: Target, tally: Tally) -> None:
    """The holder of a speech key opens WebSockets and says nothing, or as little as keeps them open.

    He also begins reference clips that never arrive and sends one message in tens of thousands of
    fragments, and hopes to take every place that the others need for speech.
    """
    clip = head(
        "POST", "/v1/voices", key=target.tenant.speech, headers={"Content-Length": "100000"}
    )
    await asyncio.gather(
        *(_again(_silent, target, tally) for _ in range(_SPEECH_KEY_SILENT)),
        *(_again(_idle, target, tally) for _ in range(_SPEECH_KEY_IDLE)),
        _again(_fragments, target, tally),
        hold(target.speech_port, clip + b"{", _SPEECH_KEY_CLIPS, tally, drip=b" "),
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
            await asyncio.sleep(_SPEECH_KEY_IDLE_SECONDS)
    finally:
        reading.cancel()


async def _read(socket: WebSocket) -> None:
    with suppress(Cut, OSError):
        while True:
            await socket.receive()


async def _fragments(socket: WebSocket, target: Target) -> None:
    await socket.send(type="start", voice=target.voice)
    pieces = [frame(b'{"type":"text","text":"', final=False)]
    pieces += [frame(b"a", 0, final=False)] * _SPEECH_KEY_FRAGMENTS
    await socket.send_raw(b"".join(pieces))
    await socket.receive()
    await socket.receive()
