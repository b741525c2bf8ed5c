"""A recogniser that knows N sentences hears the right one."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from speech.audio import join
from speech.engines import Utterance
from speech.engines.espeak import Espeak
from tests.speech.listening import sentence_heard
from tests.speech.test_espeak import Profile

SENTENCES = [
    "the weather will be fine tomorrow",
    "please open the window in the kitchen",
    "my brother lives in a small town",
    "we are going to the market today",
    "the meeting starts at three in the afternoon",
    "she bought a new car last week",
    "can you tell me the way to the station",
    "the children are playing in the garden",
    "i would like a cup of coffee",
    "the doctor said that he is doing well",
    "they found the letter under the table",
    "the last train leaves before midnight",
]


@pytest.fixture
async def engine() -> AsyncIterator[Espeak]:
    engine = Espeak(workers=1)
    await engine.start()
    yield engine
    await engine.close()


async def heard(engine: Espeak, text: str, profile: Profile | None = None) -> str:
    utterance = Utterance(text.capitalize() + ".", "en", "en-us", profile=profile)
    return sentence_heard(join([b"".join([p async for p in engine.speak(utterance)])]), SENTENCES)


async def test_the_base_voice_is_understood(engine: Espeak) -> None:
    right = [text for text in SENTENCES if await heard(engine, text) == text]

    assert len(right) >= 11


async def test_a_clone_is_understood(engine: Espeak) -> None:
    profile = Profile(eq_db=(-6.0, 0.0, 4.0, 2.0))
    right = [text for text in SENTENCES if await heard(engine, text, profile) == text]

    assert len(right) >= 10
