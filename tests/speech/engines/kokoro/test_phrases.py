"""A phrase that an organization repeats is spoken from memory, within bounds."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from speech.engines import SpokenWord, StyleMix, Utterance
from speech.engines.espeak.engine import Espeak
from speech.engines.kokoro import phrases
from speech.engines.kokoro.engine import Kokoro
from speech.engines.kokoro.files import KokoroVoice
from speech.engines.kokoro.phrases import Phrase, Phrases
from speech.text.pronunciations import StandIn

SOUND = b"\1\0" * 24_000
PHRASE = Utterance("One moment please.", "en", "af_heart", organization_id="acme")
WORD = SpokenWord("One", 0.0, 0.5)


class CountingKokoro(Kokoro):
    """Makes one sound of everything, and counts how often."""

    def __init__(self) -> None:
        super().__init__(Espeak(workers=1), Path("nowhere"))
        self.real_time_factor = 0.5
        self.made = 0

    async def _runs_spoken(
        self, utterance: Utterance, voice: KokoroVoice, is_timed: bool
    ) -> AsyncGenerator[bytes | SpokenWord, None]:
        self.made += 1
        if is_timed:
            yield WORD
        yield SOUND
        yield SOUND


@pytest.fixture
def engine() -> CountingKokoro:
    return CountingKokoro()


async def spoken(engine: Kokoro, utterance: Utterance) -> list[bytes]:
    return [piece async for piece in engine.speak(utterance)]


async def timed(engine: Kokoro, utterance: Utterance) -> list[bytes | SpokenWord]:
    return [piece async for piece in engine.speak_timed(utterance)]


def counted(result: str) -> float:
    samples = phrases.lookups.family().samples
    return sum(each.value for each in samples if each.labels["result"] == result)


async def test_a_phrase_is_made_once_and_counted(engine: CountingKokoro) -> None:
    hits, misses = counted("hit"), counted("miss")

    first, second = await spoken(engine, PHRASE), await spoken(engine, PHRASE)

    assert first == second == [SOUND, SOUND]
    assert engine.made == 1
    assert (counted("hit") - hits, counted("miss") - misses) == (1, 1)


@pytest.mark.parametrize(
    "other",
    [
        replace(PHRASE, organization_id="other"),
        replace(PHRASE, text="One moment."),
        replace(PHRASE, engine_voice="af_bella"),
        replace(PHRASE, rate=1.2),
        replace(PHRASE, is_interactive=True),
        replace(PHRASE, stand_ins=(StandIn("One", "Two", "tu"),)),
    ],
)
async def test_what_sounds_otherwise_or_is_anothers_is_made(
    engine: CountingKokoro, other: Utterance
) -> None:
    await spoken(engine, PHRASE)
    await spoken(engine, other)

    assert engine.made == 2


async def test_nothing_of_a_clone_is_kept(engine: CountingKokoro) -> None:
    mix = StyleMix((("af_heart", 1.0),), 1.0, 1.0, ())
    clone = replace(PHRASE, clone_id="voice_1", mix=mix)
    for _ in range(2):
        assert await spoken(engine, clone) == [SOUND, SOUND]

    assert engine.made == 2


async def test_words_are_kept_with_the_sound(engine: CountingKokoro) -> None:
    await spoken(engine, PHRASE)
    assert await timed(engine, PHRASE) == [WORD, SOUND, SOUND]
    assert engine.made == 2

    assert await timed(engine, PHRASE) == [WORD, SOUND, SOUND]
    assert await spoken(engine, PHRASE) == [SOUND, SOUND]
    assert engine.made == 2


async def test_a_phrase_that_was_not_finished_is_not_kept(engine: CountingKokoro) -> None:
    async with aclosing(engine.speak(PHRASE)) as pieces:
        await anext(pieces)

    assert await spoken(engine, PHRASE) == [SOUND, SOUND]
    assert engine.made == 2


def phrase(organization_id: str, number: int) -> Phrase:
    return Phrase.of(replace(PHRASE, organization_id=organization_id, text=f"No. {number:03}"))


def test_memory_is_bounded_and_shared() -> None:
    held = Phrases(40 * len(SOUND))

    def has(organization_id: str, number: int) -> bool:
        return held.find(phrase(organization_id, number), is_timed=False) is not None

    held.keep(phrase("small", 0), (SOUND,), is_timed=False)
    for number in range(100):
        held.keep(phrase("large", number), (SOUND,), is_timed=False)
    assert has("small", 0)
    assert [number for number in range(100) if has("large", number)] == list(range(81, 100))

    held.keep(phrase("large", 81), (SOUND,) * 50, is_timed=False)
    assert not has("large", 81)
    for number in range(100):
        assert has("small", 0)
        held.keep(phrase(f"other {number}", 0), (SOUND,), is_timed=False)
        assert held.size <= 40 * len(SOUND)
    assert has("small", 0)
    assert not has("large", 99)
