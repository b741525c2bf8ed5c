"""A calibrated base voice has the speaker's pitch and spectrum."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np
import pytest
import soxr

from speech.audio.speaker import Speaker, analyse, ltas_distance
from speech.engines.espeak.profile import (
    CALIBRATION_TEXT,
    NEUTRAL,
    CloneProfile,
    UnreadableProfile,
    calibrate,
)
from tests.support.speech.espeak_voice import RATE, EspeakVoice
from tests.support.texts.sentences import OTHER_WORDS, REFERENCE

DISTINCT = ["en-us+f2", "en-us+f4", "en-us+Annie", "en-us+m7"]
"""Speakers far from the base voice in spectrum; all but the last one in pitch too."""

LIKE_BASE = ["en-us+m3", "en-us+klatt4"]


@pytest.fixture(scope="module")
def reference(espeak_voice: EspeakVoice) -> Callable[[str], Speaker]:
    @functools.cache
    def measured(name: str) -> Speaker:
        return analyse(espeak_voice.say(REFERENCE, name), RATE)

    return measured


@pytest.fixture(scope="module")
def clone(
    espeak_voice: EspeakVoice, reference: Callable[[str], Speaker]
) -> Callable[[str], CloneProfile]:
    @functools.cache
    def calibrated(name: str) -> CloneProfile:
        return calibrate(reference(name), espeak_voice.speak)

    return calibrated


def heard(espeak_voice: EspeakVoice, text: str, profile: CloneProfile) -> Speaker:
    pcm = np.frombuffer(espeak_voice.speak(text, profile), "<i2")
    return analyse(pcm.astype(np.float32) / np.float32(32768), RATE)


@pytest.mark.parametrize("name", [*DISTINCT, *LIKE_BASE])
def test_the_clone_has_the_pitch_of_the_clip(
    espeak_voice: EspeakVoice,
    reference: Callable[[str], Speaker],
    clone: Callable[[str], CloneProfile],
    name: str,
) -> None:
    assert clone(name).f0 == pytest.approx(reference(name).f0, abs=0.01)
    calibrated = heard(espeak_voice, CALIBRATION_TEXT, clone(name))
    assert calibrated.f0 == pytest.approx(reference(name).f0, rel=0.02)
    spoken = heard(espeak_voice, REFERENCE, clone(name))
    assert spoken.f0 == pytest.approx(reference(name).f0, rel=0.05)


@pytest.mark.parametrize("name", DISTINCT)
def test_the_clone_comes_at_least_twice_as_near_in_spectrum(
    espeak_voice: EspeakVoice,
    reference: Callable[[str], Speaker],
    clone: Callable[[str], CloneProfile],
    name: str,
) -> None:
    before = ltas_distance(heard(espeak_voice, OTHER_WORDS, NEUTRAL), reference(name))
    after = ltas_distance(heard(espeak_voice, OTHER_WORDS, clone(name)), reference(name))
    assert after <= before / 2


def test_a_whisper_keeps_the_base_pitch_and_takes_on_the_spectrum(
    espeak_voice: EspeakVoice, reference: Callable[[str], Speaker]
) -> None:
    whisper = reference("en-us+whisper")
    assert whisper.f0 is None
    profile = calibrate(whisper, espeak_voice.speak)
    assert (profile.f0, profile.pitch, profile.warp) == (0.0, NEUTRAL.pitch, NEUTRAL.warp)
    before = ltas_distance(heard(espeak_voice, OTHER_WORDS, NEUTRAL), whisper)
    assert ltas_distance(heard(espeak_voice, OTHER_WORDS, profile), whisper) <= before / 2


def test_bands_that_a_telephone_recording_lacks_are_not_equalised(
    espeak_voice: EspeakVoice,
) -> None:
    audio = soxr.resample(espeak_voice.say(REFERENCE, "en-us+f2"), RATE, 8_000)
    profile = calibrate(analyse(audio, 8_000), espeak_voice.speak)
    missing = [gain for hz, gain in zip(profile.eq_hz, profile.eq_db, strict=True) if hz > 3_500]
    assert missing == [0.0] * 3
    assert any(abs(gain) > 1 for gain in profile.eq_db)


@pytest.mark.parametrize(
    "samples",
    [
        np.random.default_rng(5).standard_normal(5 * RATE) * 0.1,
        np.sin(2 * np.pi * 440 * np.arange(5 * RATE) / RATE),
        np.sin(2 * np.pi * 5_000 * np.arange(5 * RATE) / RATE),
    ],
    ids=["noise", "a tone", "a whistle"],
)
def test_a_clip_without_speech_still_gives_a_voice_that_can_speak(
    espeak_voice: EspeakVoice, samples: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> None:
    profile = calibrate(analyse(samples.astype(np.float32), RATE), espeak_voice.speak)
    assert 40 <= profile.pitch <= 420
    assert profile.pitch <= profile.pitch_range <= 1000
    assert 0.85 <= profile.warp <= 1.25
    assert all(-12 <= gain <= 12 for gain in profile.eq_db)
    assert len(espeak_voice.speak("It speaks.", profile)) > RATE


def test_a_silent_engine_gives_the_base_voice(
    reference: Callable[[str], Speaker],
) -> None:
    silent = calibrate(reference("en-us+f2"), lambda _text, _profile: bytes(2 * RATE))
    assert (silent.pitch, silent.warp) == (NEUTRAL.pitch, NEUTRAL.warp)


def test_a_profile_survives_storage(clone: Callable[[str], CloneProfile]) -> None:
    profile = clone("en-us+f2")
    assert CloneProfile.from_json(profile.to_json()) == profile
    assert len(profile.to_json()) < 500
    assert set(json.loads(profile.to_json())) == {field.name for field in fields(CloneProfile)}


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b"null",
        NEUTRAL.to_json()[:-1],
        NEUTRAL.to_json().replace(b"82.0", b'"82"'),
        replace(NEUTRAL, eq_db=(0.0,) * 5).to_json(),
        NEUTRAL.to_json().replace(b"82.0", b"NaN"),
    ],
)
def test_a_damaged_profile_is_an_error_with_a_name(text: bytes) -> None:
    with pytest.raises(UnreadableProfile):
        CloneProfile.from_json(text)
