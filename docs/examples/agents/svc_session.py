"""A speech session that stays open for a whole conversation, for the two adapters beside this file.

It needs the package ``websockets``. Messages: docs/api/speech.md, "Several utterances" and "Word times".
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

SAMPLE_RATE = 24_000


@dataclass(frozen=True)
class Word:
    """A word as it was written, with its marks, and when it is heard, in seconds of its utterance."""

    text: str
    start: float
    end: float


@dataclass(frozen=True)
class Sound:
    """A sentence: signed 16-bit samples, ``SAMPLE_RATE`` a second, and its words."""

    pcm: bytes
    words: list[Word]


@dataclass(frozen=True)
class Spoken:
    """Everything of an utterance was sent."""

    characters: int


class SvcSession:
    """One connection. Utterances are spoken in their order; ``interrupt`` drops all that wait."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self._texts = [""]
        """The utterances whose end was not received, the last one still open."""
        self._clears = 0
        self._seconds = 0.0

    @classmethod
    async def open(cls, url: str, key: str, voice: str) -> SvcSession:
        """``url`` is the speech surface's, such as ``ws://127.0.0.1:8001``. Raises
        ``websockets.exceptions.InvalidHandshake`` or ``OSError``."""
        connection = await connect(
            f"{url}/v1/audio/speech/stream",
            additional_headers={"Authorization": f"Bearer {key}"},
            max_size=None,
        )
        session = cls(connection)
        await session._send(
            type="start", voice=voice, response_format="pcm", keep_open=True, timestamps="word"
        )
        return session

    async def say(self, text: str) -> None:
        """Add to the utterance."""
        self._texts[-1] += text
        await self._send(type="text", text=text)

    async def end(self) -> None:
        """The utterance is complete; what is said next begins another one."""
        self._texts.append("")
        await self._send(type="done")

    async def interrupt(self) -> None:
        """Drop what was not sent; what is on its way belongs to the past and is not given any more."""
        self._texts = [""]
        self._seconds = 0.0
        self._clears += 1
        await self._send(type="clear")

    async def close(self) -> None:
        """End the session. What was not sent is dropped."""
        with suppress(ConnectionClosed):
            await self._send(type="cancel" if any(self._texts) else "close")
            await self.connection.wait_closed()

    async def events(self) -> AsyncIterator[Sound | Spoken]:
        """What the service sends, until the session ends. Raises ``RuntimeError`` for its errors."""
        words: list[Word] = []
        async for message in self.connection:
            if isinstance(message, bytes):
                if not self._clears:
                    yield Sound(message, words)
                    self._seconds += len(message) / 2 / SAMPLE_RATE
                continue
            event = json.loads(message)
            if event["type"] == "error":
                raise RuntimeError(event["error"]["message"])
            if event["type"] == "cleared":
                self._clears -= 1
            elif self._clears:
                continue
            elif event["type"] == "timestamps":
                words = self._written(event["words"])
            elif event["type"] == "utterance.done":
                self._texts.pop(0)
                self._seconds = 0.0
                yield Spoken(event["characters"])

    def _written(self, spoken: list[dict]) -> list[Word]:
        """The written words behind the ``spoken`` ones: "three dollars" is one of them, "$3.00"."""
        text = self._texts[0]
        spans: dict[tuple[int, int], tuple[float, float]] = {}
        for word in spoken:
            span = word["from"], word["to"]
            start, _ = spans.get(span, (word["start"], 0.0))
            spans[span] = start, word["end"]
        return [
            Word(_with_marks(text, *span), self._seconds + start, self._seconds + end)
            for span, (start, end) in spans.items()
        ]

    async def _send(self, **message: object) -> None:
        await self.connection.send(json.dumps(message))


def _with_marks(text: str, begin: int, end: int) -> str:
    """The word at ``text[begin:end]`` with the marks around it, to the next blanks."""
    while begin > 0 and not text[begin - 1].isspace():
        begin -= 1
    while end < len(text) and not text[end].isspace():
        end += 1
    return text[begin:end]
