"""A recogniser that knows N sentences hears the right one."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from speech.audio.pcm import join
from speech.engines import Utterance
from speech.engines.espeak.engine import Espeak
from tests.speech.engines.espeak.test_engine import Profile
from tests.support.speech.listening import sentence_heard
from tests.support.texts.sentences import SENTENCES


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
