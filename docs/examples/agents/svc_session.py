"""A speech session that stays open for a whole conversation, for the two adapters beside this file.

It needs the package ``websockets``. Messages: docs/api/speech.md, "Several utterances" and "Word times".
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, ConnectionClosedOK

SAMPLE_RATE = 24_000

_PIECE = re.compile(
    r"<!--(?:(?!-->).)*(?:-->)?"  # a comment
    r"""|<(?P<tag>/?\w*)(?:[^<>"']|"[^"]*"?|'[^']*'?)*>?"""
    r"|&[^\s;&<]*;"
    r"|.",
    re.DOTALL,
)
"""A piece of SSML. The last tag may still be incomplete."""
_SSML = re.compile(r"[\s\ufeff]*(<\?xml\s[^<>]*\?>\s*)?<speak[\s/>]")
"""How a document in SSML begins."""
_BETWEEN_WORDS = ("speak", "p", "s", "break")
"""Tags that end a word."""


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

    def __init__(self, connection: ClientConnection, *, ssml: bool = False) -> None:
        self.connection = connection
        self._ssml = ssml
        self._texts = [""]
        """The utterances whose end was not received, the last one still open."""
        self._clears = 0
        self._seconds = 0.0

    @classmethod
    async def open(cls, url: str, key: str, voice: str, *, ssml: bool = False) -> SvcSession:
        """``url`` is the speech surface's, such as ``ws://127.0.0.1:8001``. With ``ssml`` an utterance
        that begins with ``<speak`` is a document in SSML, whose words are given without tags. Raises
        ``websockets.exceptions.InvalidHandshake`` or ``OSError``."""
        connection = await connect(
            f"{url}/v1/audio/speech/stream",
            additional_headers={"Authorization": f"Bearer {key}"},
            max_size=None,
        )
        session = cls(connection, ssml=ssml)
        await session._send(
            type="start",
            voice=voice,
            response_format="pcm",
            keep_open=True,
            timestamps="word",
            ssml=ssml,
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
        document = self._texts[0]
        is_ssml = self._ssml and _SSML.match(document) is not None
        text, begins, ends = _without_tags(document) if is_ssml else (document, [], [])
        words: list[tuple[int, int, float, float]] = []
        for word in spoken:
            begin, end = word["from"], word["to"]
            if is_ssml:
                begin, end = begins[begin], ends[end - 1]
            begin, end = _to_the_blanks(text, begin, end)
            start = word["start"]
            if words and begin < words[-1][1]:
                begin, before, start, _ = words.pop()
                end = max(end, before)
            words.append((begin, end, start, word["end"]))
        return [
            Word(text[begin:end], self._seconds + start, self._seconds + stop)
            for begin, end, start, stop in words
            if begin < end
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


def _without_tags(document: str) -> tuple[str, list[int], list[int]]:
    """The text of ``document``, and where each of its code points begins and ends in that text: those of
    ``<sub alias="...">``, whose alias is spoken, at the text that the alias stands for."""
    text = ""
    begins: list[int] = []
    ends: list[int] = []
    alias = range(0)
    for piece in _PIECE.finditer(document):
        written = html.unescape(piece[0])
        if piece[0].startswith("<"):
            written = " " if (piece["tag"] or "").lstrip("/") in _BETWEEN_WORDS else ""
        if piece["tag"] == "/sub":
            ends[alias.start : alias.stop] = [len(text)] * len(alias)
        begins += [len(text)] * len(piece[0])
        text += written
        ends += [len(text)] * len(piece[0])
        if piece["tag"] == "sub":
            alias = range(*piece.span())
    return text, begins, ends
