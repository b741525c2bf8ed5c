"""The engines that run on this machine: their names, their voices, and whether they can run."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from speech.engines.espeak import voices
from speech.engines.kokoro import files
from speech.engines.kokoro import files as kokoro_voices

ESPEAK: Final = "espeak"
KOKORO: Final = "kokoro"

_failed: dict[str, str] = {}


def language_of(engine: str, engine_voice: str) -> str:
    """The language of an engine's voice. Raises ``EngineError`` for an unknown voice."""
    if engine == KOKORO:
        return kokoro_voices.parse_voice(engine_voice).language
    return voices.parse_voice(engine_voice).language


def problem(engine: str, neural_directory: Path) -> str | None:
    """Why this process cannot serve the voices of ``engine``; None when it can."""
    if engine != KOKORO:
        return None
    return _failed.get(engine) or files.missing(neural_directory)


def mark_failed(engine: str, reason: str) -> None:
    """Mark ``engine`` as unusable in this process, because it did not start."""
    _failed[engine] = reason


def failed() -> dict[str, str]:
    """The engines that did not start in this process, each with the reason."""
    return dict(_failed)
