"""A clone on the embedded engine: the numbers that make a base voice resemble a speaker.

The engine is passed in as a callable that speaks a text with a profile. Calibration lets it speak,
measures the sound, and corrects the profile until the voice has the speaker's pitch and long-term
spectrum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from speech.audio.speaker import (
    BAND_CENTRES,
    MAX_WARP,
    MIN_WARP,
    Signal,
    Speaker,
    analyse,
    ltas_difference,
    ltas_distance,
    warp_between,
)

SPEAK_RATE = 24_000
MAX_GAIN_DB = 12.0
NEUTRAL_PITCH, NEUTRAL_PITCH_RANGE = 82.0, 118.0
"""The engine's own base voice (espeak-ng: ``pitch 82 118``)."""

CALIBRATION_TEXT = (
    "The morning train was late again, so we walked along the river and talked about the weather. "
    "Could you bring five yellow cups and a small jar of honey? "
    "She thought that the old house by the shore would never be sold."
)

_MIN_PITCH, _MAX_PITCH = 40.0, 420.0
_TUNED_ROUNDS, _EQUALISED_ROUNDS = 3, 3
_TEXT_DB = 2.0
_MAX_SPREAD_RATIO = 2.5


class UnreadableProfile(Exception):
    """The text is not a profile of this version."""


@dataclass(frozen=True, slots=True)
class CloneProfile:
    """A clone's voice in numbers; the speaker's recording cannot be restored from it.

    ``f0`` (Hz, 0 where unknown) and ``spread`` (semitones) are measured on the speaker. The others
    control the engine: ``warp`` is the ratio of formant frequencies to the base voice's, ``pitch``
    and ``pitch_range`` are the two numbers of an espeak-ng voice file's ``pitch`` line, ``eq_db``
    is the gain at each of ``eq_hz``, from -12 to 12 dB, for the equaliser after the engine.
    ``NEUTRAL`` changes nothing.
    """

    f0: float
    spread: float
    warp: float
    pitch: float
    pitch_range: float
    eq_db: tuple[float, ...]

    @property
    def eq_hz(self) -> tuple[float, ...]:
        """Frequencies of the equaliser's points in Hz, rising."""
        return BAND_CENTRES

    def to_json(self) -> bytes:
        """The profile as one JSON object; ``from_json`` restores an equal one."""
        return msgspec.json.encode(self)

    @classmethod
    def from_json(cls, text: bytes | str) -> CloneProfile:
        """Parse the JSON of ``to_json``. Raises ``UnreadableProfile``."""
        try:
            profile = msgspec.json.decode(text, type=cls)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UnreadableProfile(str(error)) from None
        if len(profile.eq_db) != len(BAND_CENTRES):
            raise UnreadableProfile(f"{len(profile.eq_db)} gains for {len(BAND_CENTRES)} bands.")
        return profile


NEUTRAL = CloneProfile(
    f0=0.0,
    spread=0.0,
    warp=1.0,
    pitch=NEUTRAL_PITCH,
    pitch_range=NEUTRAL_PITCH_RANGE,
    eq_db=(0.0,) * len(BAND_CENTRES),
)
"""The unchanged base voice, from which calibration starts."""

Speak = Callable[[str, CloneProfile], bytes]
"""Speaks a text with a profile; returns 16-bit little-endian mono PCM at 24 000 Hz."""


def calibrate(speaker: Speaker, speak: Speak) -> CloneProfile:
    """Find the profile with which ``speak`` comes nearest to ``speaker``.

    Calls ``speak`` up to seven times with ``CALIBRATION_TEXT`` and raises its errors. It blocks: run
    it in a thread. Without a pitch (a recording of noise), the clone keeps the base voice's pitch
    and formants and takes on the spectrum only.
    """
    profile, measured = _tuned(speaker, speak)
    tried = [(measured, profile)]
    gains = np.zeros(len(BAND_CENTRES))
    for _ in range(_EQUALISED_ROUNDS):
        gains = np.clip(gains + missing_gains(speaker, measured), -MAX_GAIN_DB, MAX_GAIN_DB)
        # The new timbre shifts the measured pitch a little, so the pitch is corrected too.
        profile = replace(
            _repitched(profile, speaker, measured),
            eq_db=tuple(round(float(gain), 2) for gain in gains),
        )
        measured = _measure(speak, profile)
        tried.append((measured, profile))
    return min(tried, key=lambda pair: distance(speaker, pair[0]))[1]


def _tuned(speaker: Speaker, speak: Speak) -> tuple[CloneProfile, Speaker]:
    """The profile with the speaker's pitch and formants, and its sound as measured."""
    measured = _measure(speak, NEUTRAL)
    if speaker.f0 is None or measured.f0 is None:
        return NEUTRAL, measured
    # Intonation peaks 44 % above the base voice's pitch; the rise is scaled to the spread.
    rise = 0.44 * min(speaker.spread / max(measured.spread, 0.1), _MAX_SPREAD_RATIO)
    profile = replace(
        NEUTRAL,
        f0=round(speaker.f0, 2),
        spread=round(speaker.spread, 3),
        pitch_range=round(NEUTRAL_PITCH * (1 + rise), 1),
    )
    trust = 1.0
    for _ in range(_TUNED_ROUNDS):
        warp = profile.warp * warp_between(speaker, measured) ** trust
        profile = _repitched(profile, speaker, measured)
        profile = replace(profile, warp=round(min(max(warp, MIN_WARP), MAX_WARP), 4))
        measured = _measure(speak, profile)
        # The remaining difference is noisy.
        trust = 0.5
    return profile, measured


def _repitched(profile: CloneProfile, speaker: Speaker, measured: Speaker) -> CloneProfile:
    """``profile`` with its pitch corrected by the ratio of the speaker's to ``measured``'s."""
    if speaker.f0 is None or measured.f0 is None:
        return profile
    pitch = min(max(profile.pitch * speaker.f0 / measured.f0, _MIN_PITCH), _MAX_PITCH)
    rise = profile.pitch_range / profile.pitch
    return replace(profile, pitch=round(pitch, 1), pitch_range=round(pitch * rise, 1))


def missing_gains(speaker: Speaker, measured: Speaker) -> Signal:
    """The gain that ``measured`` lacks in each band in dB; small differences count for less.

    Two texts of one speaker differ by about 2 dB in a band, which is not the voice. A band that
    the speaker's recording does not have is left alone.
    """
    difference = np.nan_to_num(ltas_difference(speaker, measured))
    return difference * difference**2 / (difference**2 + _TEXT_DB**2)


def distance(speaker: Speaker, measured: Speaker) -> float:
    """The distance of ``measured`` from ``speaker``: 1 for each dB of spectrum and % of pitch."""
    off = 0.0
    if speaker.f0 is not None and measured.f0 is not None:
        off = 100 * abs(measured.f0 / speaker.f0 - 1)
    return ltas_distance(speaker, measured) + off


def _measure(speak: Speak, profile: CloneProfile) -> Speaker:
    pcm = np.frombuffer(speak(CALIBRATION_TEXT, profile), "<i2")
    return analyse(pcm.astype(np.float32) / np.float32(32768), SPEAK_RATE)
