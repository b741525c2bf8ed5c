"""The command-line options of the simulated speech server."""

from __future__ import annotations

from dataclasses import dataclass

from simulators.speech.faults import NO_FAULTS, Faults


@dataclass(frozen=True, slots=True)
class SpeechOptions:
    """If ``voices`` is empty, every name is served. ``delay`` is in seconds."""

    voices: tuple[str, ...] = ()
    api_key: str | None = None
    delay: float = 0.0
    faults: Faults = NO_FAULTS
