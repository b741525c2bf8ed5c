"""The allowed espeak-ng voices, and the voice file of a clone.

espeak-ng uses names as file paths, a long name overflows a buffer and an unknown one keeps the
voice of the last order: so only names of these lists ever reach it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from speech.engines import CloneProfile, EngineError

BASES: Final = {
    "en": "en",  # British; espeak-ng does not take "en-gb" as a name
    "en-us": "en",
    "en-us-nyc": "en",
    "en-029": "en",  # Caribbean
    "en-gb-scotland": "en",
    "en-gb-x-gbclan": "en",
    "en-gb-x-gbcwmd": "en",
    "en-gb-x-rp": "en",
    "hi": "hi",
}
"""Each base voice and its language."""

VARIANTS: Final = frozenset(
    [
        "f1",
        "f2",
        "f3",
        "f4",
        "f5",
        "m1",
        "m2",
        "m3",
        "m4",
        "m5",
        "m6",
        "m7",
        "m8",
        "Alex",
        "Alicia",
        "Andrea",
        "Andy",
        "Annie",
        "Denis",
        "Lee",
        "Michael",
        "Mike",
        "adam",
        "announcer",
        "anika",
        "aunty",
        "belinda",
        "benjamin",
        "boris",
        "croak",
        "david",
        "edward",
        "grandma",
        "grandpa",
        "ian",
        "klatt",
        "klatt2",
        "klatt3",
        "klatt4",
        "linda",
        "marcelo",
        "max",
        "norbert",
        "paul",
        "quincy",
        "rob",
        "robert",
        "shelby",
        "steph",
        "steph2",
        "travis",
        "victor",
        "whisper",
        "whisperf",
    ]
)
"""Manners of speaking that can be added to any base: ``en-us+f3``."""

_PITCH_OF_BASE = 82.0
_FORMANTS = range(1, 9)


class UnknownEngineVoice(EngineError):
    """No such espeak-ng voice; the message names it."""


@dataclass(frozen=True, slots=True)
class EspeakVoice:
    """An allowed voice: a base, and a variant or None."""

    base: str
    variant: str | None

    @property
    def language(self) -> str:
        """``en`` or ``hi``."""
        return BASES[self.base]

    @property
    def name(self) -> str:
        """The name in espeak-ng's spelling."""
        return self.base if self.variant is None else f"{self.base}+{self.variant}"


def parse_voice(engine_voice: str) -> EspeakVoice:
    """Parse ``base`` or ``base+variant``. Raises ``UnknownEngineVoice``."""
    base, plus, variant = engine_voice.partition("+")
    if base not in BASES or (plus and variant not in VARIANTS):
        raise UnknownEngineVoice(
            f"The embedded engine has no voice {engine_voice[:60]!r}. Use one of "
            f"{', '.join(sorted(BASES))}, alone or with a variant such as '+f3'."
        )
    return EspeakVoice(base, variant if plus else None)


def variant_file(profile: CloneProfile) -> str:
    """The voice file that gives the base voice a clone's pitch, intonation and vocal tract.

    Form: espeak-ng, docs/voices.md. ``pitch`` also moves the formants a little, which ``formant``
    corrects. ``flutter`` is low so that the pitch is as measured.
    """
    pitch = _within(profile.pitch, 30, 400)
    highest = _within(profile.pitch_range, pitch, 600)
    side_effect = 1 + 0.125 * (pitch - _PITCH_OF_BASE) / _PITCH_OF_BASE
    formant = round(_within(100 * profile.warp / side_effect, 50, 200))
    lines = [
        "language variant",
        "name clone",
        f"pitch {pitch:.0f} {highest:.0f}",
        *(f"formant {number} {formant} 100 100" for number in _FORMANTS),
        "flutter 2",
    ]
    return "\n".join(lines) + "\n"


def _within(value: float, least: float, most: float) -> float:
    return max(least, min(most, value))
