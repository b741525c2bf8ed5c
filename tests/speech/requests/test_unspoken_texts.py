"""Texts of a session that are read and never spoken, so that no limit charges their reading."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from core.errors import ApiError, ClientDisconnected, InternalError, ServerShuttingDown
from speech.requests.session import Session
from speech.requests.session_bounds import UNSPOKEN_PER_UNIT, refused_units
from speech.synthesis.script import LONG_READING, SHORT_READING, ScriptReader, Sentence
from speech.wire import LONGEST_SESSION
from tests.resilience.attackers.floods import PATTERNS, PIECE
from tests.support.speech.sessions import Collaborators, Socket, service, session

_TIMES = 4
"""One piece of forty is read on the event loop; the rest of its time goes to the messages."""


class Aside:
    """A text process that notes what it was given, and whose reading costs the caller nothing."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.seconds = 0.0

    async def feed_in_turn(
        self, reader: ScriptReader, text: str, organization_id: str
    ) -> tuple[ScriptReader, list[Sentence]]:
        begun = time.thread_time()
        self.texts.append(text)
        sentences = reader.feed(text)
        self.seconds += time.thread_time() - begun
        return reader, sentences


class Unvoiced(Collaborators):
    """A gateway whose voices never answer, so that nothing is spoken."""

    async def resolve(self, *_: Any) -> Any:
        await asyncio.get_running_loop().create_future()


async def cancelled(texts: list[str], **fields: Any) -> tuple[Session, Aside, float]:
    """A session with ``fields`` in ``start``, in which ``texts`` were sent and cancelled, and the seconds of
    the event loop."""
    aside = Aside()
    socket = Socket(*({"type": "text", "text": text} for text in texts), {"type": "cancel"})
    begun = time.thread_time()
    opened, _, running = session(service(Unvoiced(), texts=aside), socket, **fields)
    assert await running is None
    return opened, aside, time.thread_time() - begun - aside.seconds


def cut(pattern: str, length: int = LONGEST_SESSION) -> list[str]:
    text = (pattern * length)[:length]
    return [text[at : at + PIECE] for at in range(0, length, PIECE)]


@pytest.mark.parametrize("pattern", [each for each in PATTERNS if "[" not in each])
async def test_the_worst_texts_in_pieces_take_little_of_the_event_loop(pattern: str) -> None:
    for _ in range(3):
        _, aside, taken = await cancelled(cut(pattern))
        if taken < aside.seconds / _TIMES:
            return
    pytest.fail(f"{taken:.3f} s of the event loop, {aside.seconds:.3f} s beside it")


async def test_only_the_first_texts_of_a_session_are_read_before_it_spoke() -> None:
    texts = cut("a. b ")
    opened, aside, _ = await cancelled(texts)

    assert aside.texts == texts[1:]
    assert opened.unspoken == LONGEST_SESSION


async def test_words_as_they_come_are_never_sent_to_the_text_process() -> None:
    words = ["The ", "morning ", "train ", "was ", "late ", "again. "] * 60
    opened, aside, _ = await cancelled(words)

    assert max(map(len, words)) <= SHORT_READING
    assert aside.texts == []
    assert opened.unspoken == sum(map(len, words)) > UNSPOKEN_PER_UNIT // 2


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("<speak><say-as interpret-as='digits'>", "</say-as>"),
        ("<speak a='", "'>"),
        (" ", "<speak>"),
    ],
)
async def test_a_short_text_is_read_aside_with_what_waits_for_it(begin: str, end: str) -> None:
    held = [" " * SHORT_READING] * (LONG_READING // SHORT_READING)
    _, aside, _ = await cancelled([begin, *held, end, "a"], ssml=True)

    assert end in aside.texts
    assert "a" not in aside.texts


@pytest.mark.parametrize(
    ("unspoken", "failure", "units"),
    [
        (UNSPOKEN_PER_UNIT - 1, None, 0),
        (LONGEST_SESSION, None, 10),
        (LONGEST_SESSION, ClientDisconnected(), 10),
        (LONGEST_SESSION, ServerShuttingDown(), 0),
        (LONGEST_SESSION, InternalError(), 0),
    ],
)
def test_what_was_cancelled_counts_unless_the_server_failed(
    unspoken: int, failure: ApiError | None, units: int
) -> None:
    assert refused_units(unspoken, failure) == units
