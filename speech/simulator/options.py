"""What the simulated speech server was started with."""

from __future__ import annotations

from dataclasses import dataclass

from speech.simulator.faults import NO_FAULTS, Faults


@dataclass(frozen=True, slots=True)
class SpeechOptions:
    """``voices`` empty means that every name is served. ``delay`` is in seconds."""

    voices: tuple[str, ...] = ()
    api_key: str | None = None
    delay: float = 0.0
    faults: Faults = NO_FAULTS
