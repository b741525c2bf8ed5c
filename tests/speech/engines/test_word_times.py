"""When each word is spoken: against a recogniser that is told the words and finds them in the sound."""

from __future__ import annotations

from collections.abc import AsyncIterator

import numpy as np
import pytest

from speech.audio.pcm import SAMPLE_RATE
from speech.engines import Engine, SpokenWord, Utterance
from speech.engines.espeak.engine import Espeak
from speech.engines.word_times import Unit, joined, spoken_words
from tests.support.speech.listening import aligned
from tests.support.speech.neural import needs_neural, neural_engine

SENTENCES = (
    "He said hi to me in the garden.",
    "The bus to the city is late, so we are in a bad mood.",
    "We are going to the market to buy rice and milk.",
    "Come here and tell me what the matter is.",
)
"""With words that espeak-ng joins: in the, to the, what the, so we."""


@pytest.fixture
async def espeak() -> AsyncIterator[Espeak]:
    engine = Espeak(workers=1)
    yield engine
    await engine.close()


async def timed(engine: Engine, utterance: Utterance) -> tuple[list[SpokenWord], bytes]:
    """The words of ``utterance`` and its sound."""
    words: list[SpokenWord] = []
    sound = b""
    async for piece in engine.speak_timed(utterance):
        if isinstance(piece, SpokenWord):
            words.append(piece)
        else:
            sound += piece
    return words, sound


async def errors_of(engine: Engine, voice: str, rate: float = 1.0) -> list[float]:
    """The milliseconds between the starts and ends that the engine gives and those that are heard, in
    all sentences but one at most."""
    found, unheard = [], 0
    for sentence in SENTENCES:
        words, sound = await timed(engine, Utterance(sentence, "en", voice, rate=rate))
        heard = aligned(sound, [word.text.lower() for word in words])
        if not heard:
            unheard += 1
            continue
        found += [word.start - start for word, (start, _) in zip(words, heard, strict=True)]
        found += [word.end - end for word, (_, end) in zip(words, heard, strict=True)]
    assert unheard <= 1
    return [1000 * abs(error) for error in found]


@pytest.mark.parametrize("rate", [0.5, 1.0, 1.5])
async def test_espeak_words_are_where_they_are_heard(espeak: Espeak, rate: float) -> None:
    errors = await errors_of(espeak, "en-us+f3", rate)

    assert np.median(errors) < 25
    assert np.percentile(errors, 90) < 130


@needs_neural
async def test_neural_words_are_where_they_are_heard(espeak: Espeak) -> None:
    engine = neural_engine(espeak)
    errors = await errors_of(engine, "af_heart")
    await engine.close()

    assert np.median(errors) < 40
    assert np.percentile(errors, 90) < 120


@pytest.mark.parametrize(("rate", "other"), [(0.25, 0.5), (3.0, 1.0), (4.0, 1.0)])
async def test_words_scale_with_the_speed_where_a_recogniser_fails(
    espeak: Espeak, rate: float, other: float
) -> None:
    utterances = [Utterance(SENTENCES[2], "en", "en-us+f3", rate=each) for each in (other, rate)]
    usual, words = [(await timed(espeak, each))[0] for each in utterances]
    factor = words[-1].end / usual[-1].end

    assert factor == pytest.approx(other / rate, rel=0.2)
    assert [word.text for word in words] == [word.text for word in usual]
    moved = [word.start - same.start * factor for word, same in zip(words, usual, strict=True)]
    assert max(map(abs, moved)) < 0.04 * max(1.0, factor)


async def test_a_word_ends_before_a_pause_and_hindi_has_times(espeak: Espeak) -> None:
    words, sound = await timed(espeak, Utterance("वह घर के अंदर था, और मैं नहीं।", "hi", "hi"))

    assert [word.text for word in words] == ["वह", "घर", "के", "अंदर", "था", "और", "मैं", "नहीं"]
    assert words[5].start - words[4].end > 0.08
    assert words[-1].end <= len(sound) / 2 / SAMPLE_RATE


@pytest.mark.parametrize(
    ("words", "units", "pairs"),
    [
        ((2, 3, 4), (2, 3, 4), ["0", "1", "2"]),
        ((2, 3, 4), (5, 4), ["01", "2"]),
        ((2, 3, 4), (2, 7), ["0", "12"]),
        ((9, 3), (3, 3, 3, 3), ["0", "", "", "1"]),
        ((1,) * 20, (20,), ["".join(map(str, range(20)))]),
        ((3,), (), []),
    ],
)
def test_words_are_paired_with_units_by_their_lengths(
    words: tuple[int, ...], units: tuple[int, ...], pairs: list[str]
) -> None:
    assert ["".join(map(str, each)) for each in joined(words, units)] == pairs


def test_joined_words_share_the_sound_of_their_unit() -> None:
    sound = np.full(SAMPLE_RATE, 1000, dtype=np.int16)
    sound[SAMPLE_RATE * 3 // 4 :] = 0
    units = [Unit(-0.1, ("a",), (1,)), Unit(0.25, ("in", "the"), (3, 2))]

    assert [
        (word.text, round(word.start, 3), round(word.end, 3)) for word in spoken_words(units, sound)
    ] == [
        ("a", 0.0, 0.25),
        ("in", 0.25, 0.55),
        ("the", 0.55, 0.75),
    ]
