"""A clone on the neural engine: the mix of its voices that is nearest to a speaker.

The model cannot take on a voice that it was not trained with. But what it speaks from, the styles of
its voices, can be mixed; its pitch can be moved; and an equaliser gives the sound the speaker's
timbre. Each voice is measured as the speaker was, so a few of them are chosen by arithmetic; then the
mix is let speak, measured, and corrected.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from speech.audio.pcm import SAMPLE_RATE, samples
from speech.audio.speaker import BAND_CENTRES, Signal, Speaker, analyse
from speech.engines import StyleMix
from speech.engines.espeak.profile import CALIBRATION_TEXT, MAX_GAIN_DB, distance, missing_gains
from speech.engines.kokoro.files import parse_voice

MEASURING_TEXT: Final = CALIBRATION_TEXT[: CALIBRATION_TEXT.index(".") + 1]
"""A sentence by which voices are compared with each other."""

MOST_STYLES: Final = 5
LOWEST_PITCH, HIGHEST_PITCH = 0.75, 1.45
"""Factors on the pitch between which the model sounds right."""

LOUDNESS: Final = 0.106
"""Root mean square of speech, as loud as the other voices (-19.5 dB of full scale)."""

_SEMITONE_DB: Final = 1.0
"""How far apart in each band voices are that count as far apart as a semitone in pitch."""

_ROUNDS: Final = 3
_STEPS: Final = 60
_STILL: Final = 0.02

Speak = Callable[[str, StyleMix], bytes]
"""Speaks a text with a mix; returns PCM as ``speech.audio.pcm`` has it."""


def calibrate(
    speaker: Speaker, voices: Collection[str], speak: Speak, known: dict[str, Speaker]
) -> StyleMix:
    """Find the mix of ``voices`` with which ``speak`` comes nearest to ``speaker``.

    Calls ``speak`` once for each voice whose measurement is not in ``known``, which gets it, then
    three times, and raises its errors. It blocks: run it in a thread. Without a pitch (a recording of
    noise) the mix keeps its own.
    """
    for voice in voices:
        if voice not in known:
            known[voice] = analyse(_sound(speak(MEASURING_TEXT, _alone(voice))), SAMPLE_RATE)
    mix = first_mix(speaker, {voice: known[voice] for voice in voices})
    gains = np.zeros(len(BAND_CENTRES))
    tried: list[tuple[float, StyleMix]] = []
    for _ in range(_ROUNDS):
        sound = _sound(speak(CALIBRATION_TEXT, mix))
        measured = analyse(sound, SAMPLE_RATE)
        mix = replace(mix, gain=round(mix.gain * LOUDNESS / _loudness(sound), 3))
        tried.append((distance(speaker, measured), mix))
        gains = np.clip(gains + missing_gains(speaker, measured), -MAX_GAIN_DB, MAX_GAIN_DB)
        pitch = mix.pitch
        if speaker.f0 is not None and measured.f0 is not None:
            pitch = _bounded(pitch * speaker.f0 / measured.f0)
        mix = replace(mix, pitch=pitch, eq_db=tuple(round(float(gain), 2) for gain in gains))
    return min(tried, key=lambda pair: pair[0])[1]


def first_mix(speaker: Speaker, voices: Mapping[str, Speaker]) -> StyleMix:
    """The mix of at most ``MOST_STYLES`` of ``voices`` that is nearest by their measurements."""
    voiced = sorted(name for name, voice in voices.items() if voice.f0 is not None)
    names = voiced or sorted(voices)
    shares = _shares([voices[name] for name in names], speaker)
    largest = sorted(np.flatnonzero(shares > _STILL), key=lambda at: -shares[at])
    total = sum(shares[at] for at in largest)
    styles = tuple((names[at], round(float(shares[at] / total), 4)) for at in largest)
    pitch = 1.0
    if speaker.f0 is not None and voiced:
        own = np.exp(sum(share * np.log(voices[name].f0 or 1.0) for name, share in styles))
        pitch = _bounded(speaker.f0 / float(own))
    gain = sum(share * parse_voice(name).gain for name, share in styles)
    return StyleMix(styles, pitch, round(gain, 3), (0.0,) * len(BAND_CENTRES))


def _shares(voices: list[Speaker], speaker: Speaker) -> Signal:
    """The shares of the voices in the mix that is nearest to ``speaker``, of which few are not 0.

    Each step moves the mix towards the voice that brings it nearer the fastest (Frank and Wolfe, 1956).
    """
    levels = np.array([speaker.ltas, *(voice.ltas for voice in voices)])
    known = np.flatnonzero(np.isfinite(levels).all(axis=0))
    features = np.array([_features(voice, known) for voice in voices])
    wanted = _features(speaker, known)
    if speaker.f0 is None:
        features, wanted = features[:, 1:], wanted[1:]
    shares = np.zeros(len(voices))
    shares[np.argmin(np.sum((features - wanted) ** 2, axis=1))] = 1.0
    for _ in range(_STEPS):
        missing = wanted - shares @ features
        nearer = features @ missing
        if np.count_nonzero(shares) == MOST_STYLES:
            nearer[shares == 0] = -np.inf
        best = int(np.argmax(nearer))
        way = features[best] - shares @ features
        step = float(np.clip(missing @ way / max(float(way @ way), 1e-9), 0.0, 1.0))
        shares *= 1 - step
        shares[best] += step
    return shares


def _features(voice: Speaker, known: NDArray[np.intp]) -> Signal:
    """Pitch and the ``known`` bands of the spectrum as one vector, in decibels."""
    bands = voice.ltas[known]
    semitones = 12 * np.log2(voice.f0 or 1.0) * _SEMITONE_DB * np.sqrt(len(bands))
    return np.array([semitones, *(bands - bands.mean())])


def _alone(voice: str) -> StyleMix:
    return StyleMix(((voice, 1.0),), 1.0, parse_voice(voice).gain, ())


def _sound(pcm: bytes) -> NDArray[np.float32]:
    return samples(pcm).astype(np.float32) / np.float32(32768)


def _bounded(pitch: float) -> float:
    return round(min(max(pitch, LOWEST_PITCH), HIGHEST_PITCH), 4)


def _loudness(sound: NDArray[np.float32]) -> float:
    """Root mean square of the frames of 20 ms that are not silent; 1 without any."""
    frames = sound[: len(sound) // 480 * 480].reshape(-1, 480).astype(np.float64)
    power = np.mean(frames**2, axis=1)
    loud = power[power > power.max(initial=0.0) / 1000]
    return float(np.sqrt(loud.mean())) if len(loud) and loud.mean() > 0 else 1.0
