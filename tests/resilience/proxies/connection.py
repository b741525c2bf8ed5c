"""One client connection to a proxy that reads exactly the answers that arrive on it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

SECONDS = 5.0
"""The longest wait for an answer; each takes milliseconds."""
_READ_LIMIT = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with the fields of its head, names in lower case."""

    status: int
    fields: dict[str, str]
    body: bytes

    @property
    def request_id(self) -> str:
        return self.fields.get("x-request-id", "")

    @property
    def text(self) -> str:
        """The text of a chat, whole or streamed; "" of any other answer."""
        try:
            if "text/event-stream" in self.fields.get("content-type", ""):
                return "".join(_deltas(self.body.decode()))
            return str(json.loads(self.body)["choices"][0]["message"]["content"])
        except (ValueError, LookupError, TypeError):
            return ""


def _deltas(stream: str) -> list[str]:
    frames = [part.removeprefix("data: ") for part in stream.split("\n\n")]
    chunks: list[dict[str, Any]] = [json.loads(part) for part in frames if part[:1] == "{"]
    return [choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"]]


class Connection:
    """A connection that is opened with the first write, and again after its end."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def send(self, content: bytes) -> None:
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection(
                "127.0.0.1", self._port, limit=_READ_LIMIT
            )
        self._writer.write(content)
        await self._writer.drain()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.transport.abort()
        self._reader = self._writer = None

    async def answer(self, seconds: float = SECONDS) -> Answer:
        """Read one answer. Raises ``TimeoutError``, or ``OSError`` or ``EOFError`` at the end."""
        async with asyncio.timeout(seconds):
            found = await self._read()
        if found.fields.get("connection", "").lower() == "close":
            self.close()
        return found

    async def ask(self, content: bytes) -> Answer:
        """Send one request and read its answer; once more where a kept connection had ended."""
        was_kept = self._writer is not None
        try:
            await self.send(content)
            return await self.answer()
        except (OSError, EOFError) as error:
            self.close()
            if not was_kept or isinstance(error, TimeoutError):
                raise
        await self.send(content)
        return await self.answer()

    async def _read(self) -> Answer:
        reader = self._reader
        assert reader is not None, "nothing was sent"
        status = 100
        while status == 100:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
            status = int(first.split(" ")[1])
        fields = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines)
        }
        return Answer(status, fields, await self._body(reader, status, fields))

    async def _body(
        self, reader: asyncio.StreamReader, status: int, fields: dict[str, str]
    ) -> bytes:
        if fields.get("transfer-encoding", "").lower() == "chunked":
            parts: list[bytes] = []
            while size := int(await reader.readuntil(b"\r\n"), 16):
                parts.append((await reader.readexactly(size + 2))[:-2])
            await reader.readexactly(2)
            return b"".join(parts)
        if "content-length" in fields:
            return await reader.readexactly(int(fields["content-length"]))
        return b"" if status in (101, 204, 304) else await reader.read(-1)
