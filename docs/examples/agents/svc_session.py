"""A speech session that stays open for a whole conversation, for the two adapters beside this file.

It needs the package ``websockets``. Messages: docs/api/speech.md, "Several utterances" and "Word times".
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, ConnectionClosedOK

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
        """What the service sends, until the session ends. Raises ``RuntimeError`` with the error that
        ended it, if one did; after a sentence that the voice cannot speak it goes on without that."""
        words: list[Word] = []
        failure = ""
        while (message := await self._received(failure)) is not None:
            failure = ""
            if isinstance(message, bytes):
                if not self._clears:
                    # Counted before, because the next utterance may have begun when this goes on.
                    self._seconds += len(message) / 2 / SAMPLE_RATE
                    yield Sound(message, words)
                continue
            event = json.loads(message)
            if event["type"] == "error":
                failure = event["error"]["message"]
            elif event["type"] == "cleared":
                self._clears -= 1
            elif self._clears:
                continue
            elif event["type"] == "timestamps":
                words = self._written(event["words"])
            elif event["type"] == "utterance.done":
                self._texts.pop(0)
                self._seconds = 0.0
                yield Spoken(event["characters"])

    async def _received(self, failure: str) -> str | bytes | None:
        """The next message, None after the last one. Raises ``RuntimeError`` when the session has
        ended because of ``failure``."""
        try:
            return await self.connection.recv()
        except ConnectionClosedOK:
            return None
        except ConnectionClosed as closed:
            if failure:
                raise RuntimeError(failure) from closed
            raise

    def _written(self, spoken: list[dict]) -> list[Word]:
        """The written words behind the ``spoken`` ones, each to the blanks around it: "three dollars" is
        one of them, "$3.00", and "well known" another, "well-known"."""
        text = self._texts[0]
        words: list[tuple[int, int, float, float]] = []
        for word in spoken:
            begin, end = _to_the_blanks(text, word["from"], word["to"])
            start = word["start"]
            if words and begin < words[-1][1]:
                begin, before, start, _ = words.pop()
                end = max(end, before)
            words.append((begin, end, start, word["end"]))
        return [
            Word(text[begin:end], self._seconds + start, self._seconds + stop)
            for begin, end, start, stop in words
        ]

    async def _send(self, **message: object) -> None:
        await self.connection.send(json.dumps(message))


def _to_the_blanks(text: str, begin: int, end: int) -> tuple[int, int]:
    """The place of ``text[begin:end]`` with the marks around it."""
    while begin > 0 and not text[begin - 1].isspace():
        begin -= 1
    while end < len(text) and not text[end].isspace():
        end += 1
    return begin, end
