"""The embedded engine follows each utterance, whatever was spoken before or concurrently."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from speech.audio.pcm import duration, join
from speech.engines import EngineError, Utterance
from speech.engines.espeak.engine import Espeak
from speech.engines.espeak.voices import BASES, VARIANTS, UnknownEngineVoice, variant_file
from tests.support.speech.listening import (
    energy_between,
    loudness,
    median_pitch,
    sentence_heard,
    steepest_step,
)
from tests.support.texts.sentences import SENTENCES

TRAIN = "The train to the coast leaves at nine, and the next one an hour later."
HINDI = "आज मौसम बहुत अच्छा है और हम बाज़ार जा रहे हैं।"


@dataclass(frozen=True)
class Profile:
    """A speaker with a high voice and a small mouth."""

    pitch: float = 160.0
    pitch_range: float = 230.0
    warp: float = 1.15
    eq_hz: tuple[float, ...] = (100.0, 1000.0, 4000.0, 8000.0)
    eq_db: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)


@pytest.fixture
async def engine() -> AsyncIterator[Espeak]:
    engine = Espeak()
    await engine.start()
    yield engine
    await engine.close()


async def spoken(
    engine: Espeak, text: str = TRAIN, voice: str = "en-us", **manner: object
) -> bytes:
    language = BASES.get(voice.partition("+")[0], "en")
    utterance = Utterance(text, language, voice, **manner)  # type: ignore[arg-type] # any field
    return b"".join([piece async for piece in engine.speak(utterance)])


async def test_a_sentence_lasts_as_long_as_a_reader_takes_and_is_not_silent(
    engine: Espeak,
) -> None:
    pcm = await spoken(engine)

    assert 3.0 < duration(pcm) < 4.5
    assert loudness(pcm) > 0.05


async def test_hindi_is_spoken_with_english_words_and_digits_inside(engine: Espeak) -> None:
    short = await spoken(engine, HINDI, "hi")
    long = await spoken(engine, HINDI + " Meeting 25 मिनट में।", "hi+f2")

    assert 2.0 < duration(short) < 6.0
    assert loudness(short) > 0.05
    assert duration(long) > duration(short) + 0.8


async def test_the_first_sound_does_not_wait_for_the_last(engine: Espeak) -> None:
    first, *others = [
        piece async for piece in engine.speak(Utterance(f"{TRAIN} " * 5, "en", "en-us"))
    ]

    assert 0 < len(first) < sum(map(len, others)) / 2


async def test_every_voice_on_the_list_speaks_and_every_base_voice_sounds_different(
    engine: Espeak,
) -> None:
    variants = [f"en-us+{variant}" for variant in sorted(VARIANTS)]
    silent = [
        voice
        for voice in [*variants, "hi+f3"]
        if loudness(await spoken(engine, "Good morning.", voice)) < 0.01
    ]
    sounds = {await spoken(engine, voice=base) for base in BASES}

    assert silent == []
    assert len(sounds) == len(BASES)
    assert min(map(loudness, sounds)) > 0.01


@pytest.mark.parametrize(
    "voice", ["", "en-gb", "fr", "en-us+NOPE", "en-us+", "en-us+f3+f4", "../../x", "en-us+../f3"]
)
async def test_a_voice_that_is_not_on_the_list_is_refused(engine: Espeak, voice: str) -> None:
    with pytest.raises(UnknownEngineVoice, match="embedded engine has no voice"):
        await spoken(engine, voice=voice)


async def test_a_voice_of_another_language_is_refused(engine: Espeak) -> None:
    with pytest.raises(EngineError, match="speaks hi"):
        await anext(engine.speak(Utterance("Hello.", "en", "hi")))


async def test_rate_and_pitch_change_one_utterance_only(engine: Espeak) -> None:
    plain = await spoken(engine)
    fast = await spoken(engine, rate=2.0)
    high = await spoken(engine, pitch=5.0)
    again = await spoken(engine)
    slow = await spoken(engine, "Good morning.", rate=0.0, pitch=-99.0)

    assert 1.0 < duration(slow) < 4.0, "out of range, so clamped"
    assert duration(fast) < 0.7 * duration(plain)
    assert median_pitch(high) > 1.15 * median_pitch(plain)
    assert duration(again) == pytest.approx(duration(plain), rel=0.02)
    assert median_pitch(again) == pytest.approx(median_pitch(plain), rel=0.03)


@pytest.mark.parametrize("text", ["", "   ", "...", "☃️ 🙂", "\u0000\u200b"])
async def test_text_without_words_is_a_short_silence(engine: Espeak, text: str) -> None:
    pcm = await spoken(engine, text)

    assert 0 < duration(pcm) < 0.3
    assert loudness(pcm) < 0.001


async def test_markup_is_not_interpreted(engine: Espeak) -> None:
    await spoken(engine, 'Now <prosody rate="20%"> slowly <voice name="hi"> and on')
    after = await spoken(engine)
    pause = await spoken(engine, 'Wait <break time="20s"/> here.')

    assert 3.0 < duration(after) < 4.5
    assert duration(pause) < 12.0


async def test_a_long_text_is_spoken_whole_and_without_clicks(engine: Espeak) -> None:
    once = await spoken(engine)
    # No full stop to be seen for 1500 characters.
    pcm = await spoken(engine, " ".join([TRAIN.rstrip(".") + ","] * 20))

    assert duration(pcm) == pytest.approx(20 * duration(once), rel=0.15)
    assert steepest_step(pcm) <= 1.3 * steepest_step(once)


@pytest.mark.long
async def test_utterances_at_the_same_time_never_mix(engine: Espeak) -> None:
    texts = [" ".join(["seven"] * count) for count in range(1, 31)]
    voices = ["en-us", "en-us+f3", "en+m3"]
    alone = [await spoken(engine, text, voices[at % 3]) for at, text in enumerate(texts)]
    together = await asyncio.gather(
        *(spoken(engine, text, voices[at % 3]) for at, text in enumerate(texts))
    )

    for one, other in zip(alone, together, strict=True):
        assert duration(other) == pytest.approx(duration(one), rel=0.02)
        assert median_pitch(other) == pytest.approx(median_pitch(one), rel=0.05)


async def test_a_clone_has_its_own_pitch_and_leaves_the_base_voice_alone(engine: Espeak) -> None:
    before = await spoken(engine)
    clone = await spoken(engine, profile=Profile())
    lower = await spoken(engine, profile=Profile(pitch=120.0, pitch_range=170.0))
    after = await spoken(engine)
    # The clone of a voice with a variant is built on its base.
    low = Profile(pitch=90.0, pitch_range=120.0)
    assert median_pitch(await spoken(engine, voice="en-us+f3", profile=low)) < 140

    assert median_pitch(clone) == pytest.approx(160 * 1.24, rel=0.08)
    assert median_pitch(lower) == pytest.approx(120 * 1.24, rel=0.08)
    assert median_pitch(after) == pytest.approx(median_pitch(before), rel=0.03)


async def test_a_clones_spectrum_is_bent_and_its_length_kept(engine: Espeak) -> None:
    level = await spoken(engine, profile=Profile())
    bright = await spoken(engine, profile=Profile(eq_db=(-12.0, 0.0, 12.0, 12.0)))

    assert energy_between(bright, 3000, 8000) > 4 * energy_between(level, 3000, 8000)
    assert duration(bright) == pytest.approx(duration(level), rel=0.02)


async def test_a_clone_is_as_loud_as_the_base_voice(engine: Espeak) -> None:
    base = await spoken(engine)
    for gains in ((12.0, 12.0, 12.0, 12.0), (12.0, 0.0, -12.0, -12.0), (-12.0, 0.0, 12.0, 12.0)):
        clone = await spoken(engine, profile=Profile(eq_db=gains))
        assert 0.4 < loudness(clone) / loudness(base) < 2.5


def test_a_profile_out_of_range_gives_a_valid_voice_file() -> None:
    lines = variant_file(Profile(pitch=1e9, pitch_range=-5.0, warp=0.0)).splitlines()

    assert lines[2] == "pitch 400 400"
    assert lines[3:11] == [f"formant {number} 50 100 100" for number in range(1, 9)]


# -- a recogniser that knows N sentences hears the right one


@pytest.mark.parametrize(
    ("profile", "least"),
    [(None, 11), (Profile(eq_db=(-6.0, 0.0, 4.0, 2.0)), 10)],
    ids=["base", "clone"],
)
async def test_a_voice_is_understood(engine: Espeak, profile: Profile | None, least: int) -> None:
    right = 0
    for text in SENTENCES:
        pcm = await spoken(engine, text.capitalize() + ".", profile=profile)
        right += sentence_heard(join([pcm]), SENTENCES) == text

    assert right >= least
