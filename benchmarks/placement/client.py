"""The users' HTTP client: kept connections, whole streams, the time of the first text."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from benchmarks.placement.workloads import Answer, Body
from benchmarks.received import dechunked, is_complete, status_complaint

_TEXT: Final = re.compile(rb'"content": ?"[^"]')
_MOST_SECONDS: Final = 60.0
_READ_BYTES: Final = 65_536


class _Details(msgspec.Struct):
    cached_tokens: int = 0


class _Usage(msgspec.Struct):
    prompt_tokens: int = 0
    prompt_tokens_details: _Details | None = None


class _Delta(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    delta: _Delta


class _Event(msgspec.Struct):
    choices: list[_Choice] = []
    usage: _Usage | None = None


_decoder: Final = msgspec.json.Decoder(_Event)


class Client:
    """The connections to one gateway, which users take in turn: a worker gets turns of any of them.

    ``keys`` has one of each tenant; ``clock`` is in the model's seconds.
    """

    def __init__(
        self, port: int, keys: Sequence[str], model: str, clock: Callable[[], float]
    ) -> None:
        self._port = port
        self._keys = keys
        self._model = model
        self._clock = clock
        self._idle: deque[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = deque()
        self.sent = 0
        """Requests that a gateway was sent, also those that failed."""
        self.complaints: Counter[str] = Counter()

    async def ask(self, tenant: int, body: Body) -> Answer:
        """Send a request and read its whole stream. Raises ``ConnectionError`` when there is no answer."""
        content = json.dumps(body | {"model": self._model}).encode()
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:{self._port}\r\n"
            f"authorization: Bearer {self._keys[tenant % len(self._keys)]}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
        )
        try:
            async with asyncio.timeout(_MOST_SECONDS):
                return await self._exchange(head.encode() + content)
        except (OSError, TimeoutError) as error:
            self.complaints[f"{type(error).__name__}: {error}"] += 1
            raise ConnectionError from error

    def close(self) -> None:
        for _, writer in self._idle:
            writer.close()
        self._idle.clear()

    async def _exchange(self, request: bytes) -> Answer:
        while self._idle and self._idle[0][0].at_eof():
            self._idle.popleft()[1].close()
        if self._idle:
            # The one that has been idle longest, so that workers take turns.
            reader, writer = self._idle.popleft()
        else:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        done = False
        try:
            writer.write(request)
            self.sent += 1
            first, received = await self._receive(reader)
            done = True
        finally:
            if done:
                self._idle.append((reader, writer))
            else:
                writer.close()
        return _answer(first, received)

    async def _receive(self, reader: asyncio.StreamReader) -> tuple[float, bytes]:
        first, received = 0.0, b""
        while not is_complete(received):
            data = await reader.read(_READ_BYTES)
            if not data:
                raise ConnectionError(f"closed after {len(received) and 'a part'}")
            received += data
            if not first and _TEXT.search(received):
                first = self._clock()
        return first, received


def _answer(first: float, received: bytes) -> Answer:
    """What a stream says. Raises ``ConnectionError`` where it is none, or ends early."""
    if complaint := status_complaint(received):
        raise ConnectionError(complaint.split("\r\n", 1)[0])
    text, usage = [], _Usage()
    events = dechunked(received.partition(b"\r\n\r\n")[2]).split(b"\n\n")
    if b"data: [DONE]" not in events[-2:]:
        raise ConnectionError("a stream ended early")
    for event in events:
        if event.startswith(b"data: {"):
            found = _decoder.decode(event[6:])
            text += [each.delta.content or "" for each in found.choices]
            usage = found.usage or usage
    details = usage.prompt_tokens_details or _Details()
    return Answer(first, "".join(text), usage.prompt_tokens, details.cached_tokens)
