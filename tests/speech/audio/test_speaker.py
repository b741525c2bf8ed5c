"""The measurements of a speaker are right, also on poor recordings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import soxr

from speech.audio.speaker import BAND_CENTRES, Speaker, analyse, ltas_distance, warp_between
from tests.support.builders.clips import voice
from tests.support.speech.espeak_voice import RATE, Audio, EspeakVoice
from tests.support.texts.sentences import OTHER_WORDS, REFERENCE

VOICES = ["en-us", "en-us+f2", "en-us+m3", "en-us+Annie"]


@pytest.fixture(scope="module")
def recordings(espeak_voice: EspeakVoice) -> dict[str, Audio]:
    return {name: espeak_voice.say(REFERENCE, name) for name in VOICES}


@pytest.fixture(scope="module")
def speakers(recordings: dict[str, Audio]) -> dict[str, Speaker]:
    return {name: analyse(audio, RATE) for name, audio in recordings.items()}


def pitch_of(speaker: Speaker) -> float:
    assert speaker.f0 is not None
    return speaker.f0


@pytest.mark.parametrize("rate", [8_000, 16_000, 44_100])
@pytest.mark.parametrize("f0", [70.0, 85.0, 120.0, 180.0, 260.0, 400.0])
def test_the_pitch_of_a_known_buzz_is_found(f0: float, rate: int) -> None:
    speaker = analyse(voice(3, rate, f0).astype(np.float32), rate)
    assert pitch_of(speaker) == pytest.approx(f0, rel=0.005)
    assert speaker.spread < 0.1
    assert speaker.voiced_seconds > 1.0


def test_a_melody_has_its_median_and_its_spread() -> None:
    t = np.arange(6 * 16_000) / 16_000
    semitones = 3 * np.sin(2 * np.pi * 0.5 * t)
    phase = 2 * np.pi * np.cumsum(140 * 2 ** (semitones / 12)) / 16_000
    melody = sum((np.sin(k * phase) / k for k in range(1, 20)), np.zeros(len(t)))
    speaker = analyse(melody.astype(np.float32), 16_000)
    assert pitch_of(speaker) == pytest.approx(140, rel=0.03)
    # The median deviation of a sine is its amplitude over the root of two.
    assert speaker.spread == pytest.approx(1.4826 * 3 / np.sqrt(2), rel=0.1)


def hum(audio: Audio, frequency: float) -> npt.NDArray[np.float64]:
    """Mains hum, half as loud as the voice."""
    level = 0.5 * float(np.sqrt(np.mean(audio**2)))
    return level * np.sin(2 * np.pi * frequency * np.arange(len(audio)) / RATE)


def noise(audio: Audio, decibels: float) -> npt.NDArray[np.float64]:
    level = float(np.sqrt(np.mean(audio**2))) * 10 ** (decibels / 20)
    return level * np.random.default_rng(7).standard_normal(len(audio))


POOR: dict[str, Callable[[Audio], tuple[npt.NDArray[Any], int]]] = {
    "far too quiet": lambda audio: (audio * 0.03, RATE),
    "over the telephone": lambda audio: (soxr.resample(audio, RATE, 8_000), 8_000),
    "with hum of 50 Hz": lambda audio: (audio + hum(audio, 50), RATE),
    "with hum of 60 Hz": lambda audio: (audio + hum(audio, 60), RATE),
    "with noise": lambda audio: (audio + noise(audio, -20), RATE),
    "clipped": lambda audio: (np.clip(audio * 4, -0.9, 0.9), RATE),
    "at 48 kHz": lambda audio: (soxr.resample(audio, RATE, 48_000), 48_000),
}


@pytest.mark.parametrize("name", VOICES)
@pytest.mark.parametrize("recording", POOR)
def test_a_poor_recording_gives_the_same_measurements(
    recordings: dict[str, Audio], speakers: dict[str, Speaker], name: str, recording: str
) -> None:
    samples, rate = POOR[recording](recordings[name])
    poor = analyse(samples.astype(np.float32), rate)
    base = speakers["en-us"]
    assert pitch_of(poor) == pytest.approx(pitch_of(speakers[name]), rel=0.03)
    assert warp_between(poor, base) == pytest.approx(warp_between(speakers[name], base), abs=0.02)
    assert ltas_distance(poor, speakers[name]) < 2.0


@pytest.mark.parametrize(
    ("name", "lowest", "highest"),
    # The true ratios are in the variants' files: all formants of m3 at 96 %, Annie's at 120 to 130.
    [("en-us", 0.98, 1.02), ("en-us+m3", 0.93, 0.98), ("en-us+Annie", 1.2, 1.25)],
)
def test_the_vocal_tract_of_a_known_voice_is_found(
    espeak_voice: EspeakVoice,
    speakers: dict[str, Speaker],
    name: str,
    lowest: float,
    highest: float,
) -> None:
    base = speakers["en-us"]
    assert lowest <= warp_between(speakers[name], base) <= highest
    other_words = analyse(espeak_voice.say(OTHER_WORDS, name), RATE)
    assert warp_between(other_words, base) == pytest.approx(
        warp_between(speakers[name], base), abs=0.06
    )


def test_the_spectrum_tells_speakers_apart_whatever_they_say(
    espeak_voice: EspeakVoice, speakers: dict[str, Speaker]
) -> None:
    for name in ("en-us", "en-us+f2", "en-us+Annie"):
        other_words = analyse(espeak_voice.say(OTHER_WORDS, name), RATE)
        distances = {known: ltas_distance(other_words, speakers[known]) for known in speakers}
        assert distances[name] < 3.0
        if name != "en-us":
            assert distances["en-us"] > 2 * distances[name]


def test_the_spectrum_ends_where_the_recording_does(recordings: dict[str, Audio]) -> None:
    telephone = analyse(soxr.resample(recordings["en-us"], RATE, 8_000), 8_000)
    for centre, level in zip(BAND_CENTRES, telephone.ltas, strict=True):
        assert np.isnan(level) == (centre > 3_500)
    # The same recording in a file of a higher rate has no more in it.
    upsampled = soxr.resample(soxr.resample(recordings["en-us"], RATE, 8_000), 8_000, 48_000)
    assert np.isnan(analyse(upsampled, 48_000).ltas[-1])


@pytest.mark.parametrize(
    "samples",
    [
        np.zeros(48_000),
        np.ones(48_000),
        np.random.default_rng(3).standard_normal(48_000) * 0.1,
        np.eye(1, 48_000, 24_000)[0],
        np.zeros(1_600),
        np.full(48_000, 1e-30),
    ],
    ids=["silence", "constant", "noise", "click", "short", "denormal"],
)
def test_a_recording_without_a_voice_has_no_pitch(samples: npt.NDArray[np.float64]) -> None:
    speaker = analyse(samples.astype(np.float32), 16_000)
    assert speaker.f0 is None
    assert speaker.spread == 0.0
    assert np.isfinite(speaker.envelope).all()
    assert 0.85 <= warp_between(speaker, speaker) <= 1.25
    assert ltas_distance(speaker, speaker) == 0.0
