"""The neural engine speaks: words, length, loudness, pace, and deaths of its workers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytest_asyncio

from speech.audio.pcm import SAMPLE_RATE, duration, samples
from speech.audio.speaker import BAND_CENTRES
from speech.engines import EngineError, SpokenWord, StyleMix, Utterance
from speech.engines.espeak.engine import Espeak
from speech.engines.kokoro.engine import EDGE_SECONDS, Kokoro
from speech.engines.kokoro.files import parse_voice
from speech.text.pronunciations import StandIn
from tests.support.speech.listening import (
    energy_between,
    loudness,
    median_pitch,
    sentence_heard,
    steepest_step,
)
from tests.support.speech.neural import needs_neural, neural_engine
from tests.support.texts.sentences import SENTENCES

pytestmark = [needs_neural, pytest.mark.asyncio(loop_scope="module")]

SENTENCE = "The old bridge was closed for the winter."
LONG = (
    "When the snow came at last, the old bridge was closed for the winter, and the people of "
    "the town had to walk along the river for an hour."
)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def engine() -> AsyncIterator[Kokoro]:
    espeak = Espeak(workers=1)
    engine = neural_engine(espeak)
    yield engine
    await engine.close()
    await espeak.close()


async def spoken(
    engine: Kokoro, text: str = SENTENCE, voice: str = "af_heart", rate: float = 1.0
) -> bytes:
    language = "hi" if voice.startswith("h") else "en"
    utterance = Utterance(text, language, voice, rate=rate)
    return b"".join([piece async for piece in engine.speak(utterance)])


async def test_the_neural_voice_is_understood(engine: Kokoro) -> None:
    asked = SENTENCES[:4]
    heard = [
        sentence_heard(await spoken(engine, text.capitalize() + ".", voice), SENTENCES)
        for text, voice in zip(
            asked, ("af_heart", "am_michael", "bf_emma", "bm_george"), strict=True
        )
    ]

    assert sum(a == b for a, b in zip(asked, heard, strict=True)) >= 3, heard


@pytest.mark.long
async def test_a_sentence_lasts_as_long_as_a_person_takes_and_is_the_same_each_time(
    engine: Kokoro,
) -> None:
    first, second = await spoken(engine), await spoken(engine)

    assert 1.8 < duration(first) < 3.5
    assert first == second
    assert 0.05 < loudness(first) < 0.2
    assert steepest_step(first[:200]) < 400 > steepest_step(first[-200:])
    sound = np.abs(samples(first).astype(int))
    loud = np.flatnonzero(sound > 400)
    assert sound[0] == sound[-1] == 0
    assert loud[0] / SAMPLE_RATE < EDGE_SECONDS + 0.06
    assert (len(sound) - loud[-1]) / SAMPLE_RATE < EDGE_SECONDS + 0.12


async def test_ipa_sounds_as_the_word_that_has_its_sounds(engine: Kokoro) -> None:
    stand_in = StandIn("Qzxaa", "Kubectl", "h\u0259l\u02c8o\u028a")
    utterance = Utterance("Qzxaa, my friend.", "en", "af_heart", stand_ins=(stand_in,))

    timed = [piece async for piece in engine.speak_timed(utterance)]

    assert b"".join(piece for piece in timed if isinstance(piece, bytes)) == await spoken(
        engine, "Hello, my friend."
    )
    words = [piece.text for piece in timed if isinstance(piece, SpokenWord)]
    assert words == ["Kubectl", "my", "friend"]


@pytest.mark.long
async def test_a_mix_is_its_voices_with_the_pitch_and_the_timbre_that_it_asks_for(
    engine: Kokoro,
) -> None:
    heart = StyleMix((("af_heart", 1.0),), 1.0, parse_voice("af_heart").gain, ())
    bands = len(BAND_CENTRES)

    async def mixed(**changes: Any) -> bytes:
        mix = replace(heart, **changes)
        utterance = Utterance(SENTENCE, "en", "af_heart", mix=mix)
        return b"".join([piece async for piece in engine.speak(utterance)])

    plain = await mixed()
    assert plain == await spoken(engine)
    for pitch in (0.8, 1.25):
        moved = median_pitch(await mixed(pitch=pitch)) / median_pitch(plain)
        assert moved == pytest.approx(pitch, rel=0.06)
    bright = await mixed(eq_db=(-6.0,) * 12 + (6.0,) * (bands - 12))
    assert energy_between(bright, 2500, 8000) > 3 * energy_between(plain, 2500, 8000)
    between = await mixed(styles=(("af_heart", 0.5), ("am_michael", 0.5)))
    assert median_pitch(between) < 0.93 * median_pitch(plain)
    with pytest.raises(EngineError, match="no voice"):
        await mixed(styles=(("../af_heart", 1.0),))


@pytest.mark.long
async def test_men_speak_lower_than_women(engine: Kokoro) -> None:
    woman, man = await spoken(engine), await spoken(engine, voice="am_michael")

    assert median_pitch(man) < 150 < median_pitch(woman)


@pytest.mark.long
async def test_hindi_lasts_as_long_as_it_takes_also_with_english_and_figures_in_it(
    engine: Kokoro,
) -> None:
    pcm = await spoken(engine, "आज मौसम बहुत अच्छा है, हम WhatsApp पर 25 बात करेंगे।", "hf_alpha")

    assert 2.5 < duration(pcm) < 8.0


@pytest.mark.long
@pytest.mark.parametrize("rate", [0.25, 1.5, 4.0])
async def test_the_rate_changes_the_length_and_not_the_pitch(engine: Kokoro, rate: float) -> None:
    text = "The old bridge was closed."
    usual, changed = await spoken(engine, text), await spoken(engine, text, rate=rate)

    assert duration(changed) == pytest.approx(duration(usual) / rate, rel=0.15)
    assert median_pitch(changed) == pytest.approx(median_pitch(usual), rel=0.2)


@pytest.mark.long
async def test_the_first_sound_of_a_long_text_does_not_wait_for_the_rest(engine: Kokoro) -> None:
    pieces = engine.speak(Utterance(LONG, "en", "af_heart"))
    loop = asyncio.get_running_loop()
    began = loop.time()
    await anext(pieces)
    first = loop.time() - began
    async for _ in pieces:
        pass
    whole = loop.time() - began

    assert first < 0.6 * whole


@pytest.mark.parametrize("text", ["", "...", "\u4e00\u4e8c", "\U0001f600", " \n", "-"])
async def test_text_without_a_sound_is_a_short_silence(engine: Kokoro, text: str) -> None:
    assert duration(await spoken(engine, text)) <= 0.05


async def test_a_voice_of_another_language_or_name_is_refused(engine: Kokoro) -> None:
    with pytest.raises(EngineError, match="speaks en, not hi"):
        await anext(engine.speak(Utterance("Hello.", "hi", "af_heart")))
    with pytest.raises(EngineError, match="no voice"):
        await anext(engine.speak(Utterance("Hello.", "en", "../af_heart")))


async def test_an_engine_without_its_files_names_the_install_command(tmp_path: Path) -> None:
    engine = Kokoro(Espeak(workers=1), tmp_path)

    with pytest.raises(EngineError, match="make neural"):
        await spoken(engine)
