"""The voices of the neural engine, Kokoro-82M, and their languages.

A name is the letter of the language, ``f`` or ``m``, then a first name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from speech.engines import EngineError

ESPEAK_VOICES: Final = {"a": "en-us", "b": "en", "h": "hi"}
"""The espeak-ng voice that makes the phonemes of a voice, by the first letter of its name."""

_LANGUAGES: Final = {"a": "en", "b": "en", "h": "hi"}

_GAINS: Final = {
    "af_alloy": 1.04,
    "af_aoede": 0.72,
    "af_bella": 1.27,
    "af_heart": 1.35,
    "af_jessica": 1.19,
    "af_kore": 0.79,
    "af_nicole": 1.04,
    "af_nova": 1.8,
    "af_river": 1.12,
    "af_sarah": 1.0,
    "af_sky": 1.35,
    "am_adam": 0.78,
    "am_echo": 1.11,
    "am_eric": 1.04,
    "am_fenrir": 0.85,
    "am_liam": 1.12,
    "am_michael": 1.41,
    "am_onyx": 1.07,
    "am_puck": 0.72,
    "am_santa": 1.24,
    "bf_alice": 0.95,
    "bf_emma": 0.93,
    "bf_isabella": 0.67,
    "bf_lily": 1.01,
    "bm_daniel": 1.1,
    "bm_fable": 1.17,
    "bm_george": 1.04,
    "bm_lewis": 1.27,
    "hf_alpha": 0.51,
    "hf_beta": 0.62,
    "hm_omega": 0.56,
    "hm_psi": 0.65,
}
"""Gains that make each voice as loud as espeak-ng's (-19.5 dB in speech), no peak above 0.9."""

VOICES: Final = tuple(_GAINS)
"""The American, British and Hindi voices."""


class UnknownKokoroVoice(EngineError):
    """No such voice; the message names it."""


@dataclass(frozen=True, slots=True)
class KokoroVoice:
    """An existing voice."""

    name: str

    @property
    def language(self) -> str:
        """``en`` or ``hi``."""
        return _LANGUAGES[self.name[0]]

    @property
    def espeak_voice(self) -> str:
        """The espeak-ng voice that makes its phonemes."""
        return ESPEAK_VOICES[self.name[0]]

    @property
    def gain(self) -> float:
        """The factor on the model's samples."""
        return _GAINS[self.name]

    @property
    def is_british(self) -> bool:
        return self.name[0] == "b"


def parse_voice(engine_voice: str) -> KokoroVoice:
    """The voice of that name. Raises ``UnknownKokoroVoice``."""
    if engine_voice not in VOICES:
        raise UnknownKokoroVoice(
            f"The neural engine has no voice {engine_voice[:60]!r}. Use one of {', '.join(VOICES)}."
        )
    return KokoroVoice(engine_voice)
