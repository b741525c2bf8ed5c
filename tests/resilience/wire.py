"""HTTP and WebSocket clients on bare sockets: cheap, and free to violate the protocols."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from tests.resilience.target import HOST, Target

_READ_LIMIT = 1024 * 1024
source_address = ""
"""The source address of this process's connections; empty: the default."""
_LAST_CHUNK = b"0\r\n\r\n"


class Cut(Exception):
    """An answer ended early."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole HTTP answer."""

    status: int
    body: bytes


def head(
    method: str, path: str, *, key: str | None = None, headers: Mapping[str, str] | None = None
) -> bytes:
    """A request's line and headers, the empty line included."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {HOST}"]
    if key is not None:
        lines.append(f"Authorization: Bearer {key}")
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def request(
    method: str,
    path: str,
    *,
    key: str | None = None,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """A whole request that asks for the connection to be closed after its answer."""
    own = {"Connection": "close", **(headers or {})}
    if body or method != "GET":
        own["Content-Length"] = str(len(body))
    return head(method, path, key=key, headers=own) + body


def upgrade(key: str) -> bytes:
    """The request for a WebSocket of the speech stream."""
    headers = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
    }
    return head("GET", "/v1/audio/speech/stream", key=key, headers=headers)


def chat(target: Target, text: str, **fields: Any) -> bytes:
    """The body of a chat request with one message."""
    messages = [{"role": "user", "content": text}]
    return json.dumps({"model": target.model, "messages": messages, **fields}).encode()


def speech(target: Target, text: str, audio_format: str = "wav") -> bytes:
    """The body of a speech request."""
    asked = {"voice": target.voice, "input": text, "response_format": audio_format}
    return json.dumps(asked).encode()


async def connect(
    port: int, *, receive_buffer: int | None = None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect; ``receive_buffer``: bytes that the kernel buffers while the client does not read."""
    connection = socket.socket()
    connection.setblocking(False)
    # asyncio sets it only for sockets that name their protocol: without it a second small message
    # waits 40 ms for the acknowledgement of the first.
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if receive_buffer is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    try:
        if source_address:
            connection.bind((source_address, 0))
        await asyncio.get_running_loop().sock_connect(connection, (HOST, port))
    except BaseException:
        connection.close()
        raise
    limit = _READ_LIMIT if receive_buffer is None else 1
    return await asyncio.open_connection(sock=connection, limit=limit)


async def ask(port: int, content: bytes) -> Answer:
    """Send one whole request on a new connection and read its answer to the end.

    Raises ``Cut`` for an incomplete answer, ``OSError`` when it cannot connect.
    """
    reader, writer = await connect(port)
    try:
        writer.write(content)
        await writer.drain()
        return parsed(await reader.read(-1))
    finally:
        writer.transport.abort()


def parsed(answer: bytes) -> Answer:
    """Parse the answer of a closed connection. Raises ``Cut``."""
    heading, separator, body = answer.partition(b"\r\n\r\n")
    if not separator:
        raise Cut
    lines = heading.lower().split(b"\r\n")
    status = int(lines[0].split(b" ")[1])
    for line in lines[1:]:
        name, _, value = line.partition(b":")
        if name == b"content-length" and len(body) < int(value):
            raise Cut
        if name == b"transfer-encoding":
            body = _joined(body)
    return Answer(status, body)


def _joined(chunked: bytes) -> bytes:
    if not chunked.endswith(_LAST_CHUNK):
        raise Cut
    parts: list[bytes] = []
    at = 0
    while True:
        line_end = chunked.index(b"\r\n", at)
        size = int(chunked[at:line_end], 16)
        if size == 0:
            return b"".join(parts)
        parts.append(chunked[line_end + 2 : line_end + 2 + size])
        at = line_end + 2 + size + 2


class WebSocket:
    """A client of the speech stream.

    Raises ``Cut`` when the upgrade is refused (``status`` says how) or the connection ends.
    """

    def __init__(self, target: Target, key: str) -> None:
        self._target = target
        self._key = key
        self.status = 0

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await connect(self._target.speech_port)
        self._writer.write(upgrade(self._key))
        try:
            heading = await self._reader.readuntil(b"\r\n\r\n")
            self.status = int(heading.split(b" ")[1])
            if self.status != 101:
                raise Cut
        except asyncio.IncompleteReadError:
            self.close()
            raise Cut from None
        except BaseException:
            self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Drop the connection without a close frame."""
        self._writer.transport.abort()

    async def send(self, **message: Any) -> None:
        """Send a text message."""
        await self.send_raw(frame(json.dumps(message).encode()))

    async def send_raw(self, frames: bytes) -> None:
        """Send frames made by ``frame``."""
        self._writer.write(frames)
        await self._writer.drain()

    async def receive(self) -> bytes | dict[str, Any]:
        """The next message: sound, or a text message; pings and pongs are skipped."""
        while True:
            try:
                first, second = await self._reader.readexactly(2)
                size = second & 127
                if size == 126:
                    (size,) = struct.unpack(">H", await self._reader.readexactly(2))
                elif size == 127:
                    (size,) = struct.unpack(">Q", await self._reader.readexactly(8))
                payload = await self._reader.readexactly(size)
            except asyncio.IncompleteReadError:
                raise Cut from None
            opcode = first & 15
            if opcode == 8:
                raise Cut
            if opcode == 1:
                found: dict[str, Any] = json.loads(payload)
                return found
            if opcode == 2:
                return payload


def frame(payload: bytes, opcode: int = 1, *, final: bool = True) -> bytes:
    """A client's frame (RFC 6455, section 5.2), masked with zeros."""
    size = len(payload)
    if size < 126:
        length = struct.pack(">B", 128 | size)
    elif size < 65536:
        length = struct.pack(">BH", 128 | 126, size)
    else:
        length = struct.pack(">BQ", 128 | 127, size)
    return bytes([(128 if final else 0) | opcode]) + length + bytes(4) + payload
