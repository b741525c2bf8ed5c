"""What a probe finds out about a server's connections."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from inference.probe import habits
from inference.probe.chat import Model
from inference.probe.client import ProbeClient, Target
from inference.wire.dialects import KeepAlive

WHOLE = json.dumps({"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}).encode()
STREAM = b'data: {"choices": [{"delta": {"content": "yes"}, "finish_reason": "stop"}]}\n\n'


@asynccontextmanager
async def closing(
    *, after_whole: bool, after_streams: bool, header: str = ""
) -> AsyncIterator[str]:
    """The address of a server that closes connections after answers of a kind; ``header`` is a
    line of its heads."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await answered(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length: ")[2].split("\r\n")[0])
        streamed = json.loads(await reader.readexactly(length)).get("stream")
        kind, body = ("text/event-stream", STREAM) if streamed else ("application/json", WHOLE)
        lines = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{header}"
        writer.write(f"{lines}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        return not (after_streams if streamed else after_whole)

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        listening.close()


@pytest.mark.parametrize(
    ("after_whole", "after_streams", "header", "setting", "words"),
    [
        (False, False, "", KeepAlive.AUTO, "kept after whole answers and after streams"),
        (False, True, "", KeepAlive.AUTO, "closed after streams"),
        (True, True, "", KeepAlive.OFF, "without a word"),
        (True, True, "Connection: close\r\n", KeepAlive.AUTO, "and says so"),
    ],
)
async def test_connections_are_switched_off_where_a_server_closes_them_unsaid(
    after_whole: bool, after_streams: bool, header: str, setting: KeepAlive, words: str
) -> None:
    habit = closing(after_whole=after_whole, after_streams=after_streams, header=header)
    async with habit as address, ProbeClient(Target(address, seconds=20)) as client:
        found = await habits.keep_alive(Model(client, "demo"))

    assert found.value is setting
    assert words in found.words
