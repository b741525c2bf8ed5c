"""A clone on the embedded engine: the figures that make a base voice resemble a speaker.

The engine is not known here: it is a callable that speaks a text with a profile. Calibration lets
it speak, listens, and corrects the figures until the voice that comes out has the speaker's pitch
and long-term spectrum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from speech.clones.analysis import (
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
    """A clone's voice in figures; it holds no audio, and no audio of the speaker can be made of it.

    ``f0`` (Hz, 0 where unknown) and ``spread`` (semitones) are the speaker's, measured. The others
    are what the engine needs: ``warp`` is the ratio of formant frequencies to the base voice's,
    ``pitch`` and ``pitch_range`` are the two figures of an espeak-ng voice file's ``pitch`` line,
    ``eq_db`` is the gain at each of ``eq_hz``, from -12 to 12 dB, for the equaliser behind the
    engine. The profile that changes nothing is ``NEUTRAL``.
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
        """The profile as one JSON object; ``from_json`` gives an equal one back."""
        return msgspec.json.encode(self)

    @classmethod
    def from_json(cls, text: bytes | str) -> CloneProfile:
        """Raises ``UnreadableProfile``."""
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
"""The base voice as it is: what calibration starts from."""

Speak = Callable[[str, CloneProfile], bytes]
"""Speaks a text with a profile applied; gives 16-bit little-endian mono PCM at 24 000 Hz."""


def calibrate(speaker: Speaker, speak: Speak) -> CloneProfile:
    """The profile with which ``speak`` comes nearest to ``speaker``.

    ``speak`` is called up to seven times with ``CALIBRATION_TEXT``; what it raises comes through.
    It blocks: run it in a thread. A speaker without a pitch (a recording of noise) keeps the base
    voice's pitch and formants and takes on the spectrum only.
    """
    profile, heard = _tuned(speaker, speak)
    tried = [(heard, profile)]
    gains = np.zeros(len(BAND_CENTRES))
    for _ in range(_EQUALISED_ROUNDS):
        gains = np.clip(gains + _missing(speaker, heard), -MAX_GAIN_DB, MAX_GAIN_DB)
        # Another timbre shifts the measured pitch a little, so that is corrected along with it.
        profile = replace(
            _repitched(profile, speaker, heard),
            eq_db=tuple(round(float(gain), 2) for gain in gains),
        )
        heard = _listen(speak, profile)
        tried.append((heard, profile))
    return min(tried, key=lambda pair: _unlikeness(speaker, pair[0]))[1]


def _tuned(speaker: Speaker, speak: Speak) -> tuple[CloneProfile, Speaker]:
    """The profile with the speaker's pitch and formants, and how it sounds before equalising."""
    heard = _listen(speak, NEUTRAL)
    if speaker.f0 is None or heard.f0 is None:
        return NEUTRAL, heard
    # Intonation peaks 44 % above the pitch in the base voice; that is scaled to the spread.
    rise = 0.44 * min(speaker.spread / max(heard.spread, 0.1), _MAX_SPREAD_RATIO)
    profile = replace(
        NEUTRAL,
        f0=round(speaker.f0, 2),
        spread=round(speaker.spread, 3),
        pitch_range=round(NEUTRAL_PITCH * (1 + rise), 1),
    )
    trust = 1.0
    for _ in range(_TUNED_ROUNDS):
        warp = profile.warp * warp_between(speaker, heard) ** trust
        profile = _repitched(profile, speaker, heard)
        profile = replace(profile, warp=round(min(max(warp, MIN_WARP), MAX_WARP), 4))
        heard = _listen(speak, profile)
        # What is left over is a noisy figure.
        trust = 0.5
    return profile, heard


def _repitched(profile: CloneProfile, speaker: Speaker, heard: Speaker) -> CloneProfile:
    """``profile`` with its melody shifted by what ``heard``'s pitch is off."""
    if speaker.f0 is None or heard.f0 is None:
        return profile
    pitch = min(max(profile.pitch * speaker.f0 / heard.f0, _MIN_PITCH), _MAX_PITCH)
    rise = profile.pitch_range / profile.pitch
    return replace(profile, pitch=round(pitch, 1), pitch_range=round(pitch * rise, 1))


def _missing(speaker: Speaker, heard: Speaker) -> Signal:
    """What ``heard`` lacks in each band in dB; small differences count for less.

    Two texts of one speaker differ by about 2 dB in a band: that is not the voice. A band that
    the speaker's recording does not have is left alone.
    """
    difference = np.nan_to_num(ltas_difference(speaker, heard))
    return difference * difference**2 / (difference**2 + _TEXT_DB**2)


def _unlikeness(speaker: Speaker, heard: Speaker) -> float:
    """How far ``heard`` is from ``speaker``: 1 for each dB of spectrum and each % of pitch."""
    off = 0.0
    if speaker.f0 is not None and heard.f0 is not None:
        off = 100 * abs(heard.f0 / speaker.f0 - 1)
    return ltas_distance(speaker, heard) + off


def _listen(speak: Speak, profile: CloneProfile) -> Speaker:
    pcm = np.frombuffer(speak(CALIBRATION_TEXT, profile), "<i2")
    return analyse(pcm.astype(np.float32) / np.float32(32768), SPEAK_RATE)
