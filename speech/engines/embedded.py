"""The engines that run on this machine: their names, their voices, and whether they can run."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from speech.engines import espeak_voices, kokoro_files, kokoro_voices

ESPEAK: Final = "espeak"
KOKORO: Final = "kokoro"

_failed: dict[str, str] = {}


def language_of(engine: str, engine_voice: str) -> str:
    """The language that an engine's voice speaks. Raises ``EngineError`` where there is none."""
    if engine == KOKORO:
        return kokoro_voices.parse_voice(engine_voice).language
    return espeak_voices.parse_voice(engine_voice).language


def problem(engine: str, neural_directory: Path) -> str | None:
    """Why no voice of ``engine`` is served by this process; None when they are."""
    if engine != KOKORO:
        return None
    return _failed.get(engine) or kokoro_files.missing(neural_directory)


def failed(engine: str, reason: str) -> None:
    """Note that ``engine`` did not start, until the process ends."""
    _failed[engine] = reason
