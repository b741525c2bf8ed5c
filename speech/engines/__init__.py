"""What turns text into sound: one interface, one module per engine.

An engine is given a sentence and yields PCM (``speech.audio``) as it comes. How failures reach a
caller: ``EngineFull`` 503 with ``retry-after``, ``EngineTimeout`` 504, any other ``EngineError``
502, all ``proxy_error`` (docs/explain/speech-engine.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol


class EngineError(Exception):
    """The engine could not speak. Messages name no text of the caller.

    ``outcome`` is how the ledger names the failure (``usage.models.Outcome``).
    """

    outcome: ClassVar[str] = "backend_error"


class EngineTimeout(EngineError):
    """The engine took too long."""

    outcome = "backend_timeout"


class EngineFull(EngineError):
    """Every place to speak is taken, and so are the places to wait; try again soon."""

    outcome = "backend_unavailable"


class EngineUnavailable(EngineError):
    """The engine cannot be reached, or went away while it spoke."""

    outcome = "backend_unavailable"


class EngineProtocolError(EngineError):
    """What came from the engine is not sound, or cannot be all of it."""

    outcome = "backend_protocol_error"


class CloneProfile(Protocol):
    """The measured manner of a speaker, as far as the embedded engine can take it on.

    Made by ``speech.clones``; anything with these members will do.
    """

    @property
    def pitch(self) -> float:
        """First figure of ``pitch`` in an espeak-ng voice file, 30 to 400 (base voice: 82)."""

    @property
    def pitch_range(self) -> float:
        """Second figure of ``pitch``: where intonation peaks, 30 to 600 (base voice: 118)."""

    @property
    def warp(self) -> float:
        """Vocal-tract ratio: formant frequencies over those of the base voice, 0.5 to 2."""

    @property
    def eq_hz(self) -> Sequence[float]:
        """Frequencies of the equaliser's points, rising."""

    @property
    def eq_db(self) -> Sequence[float]:
        """Gains at ``eq_hz`` in decibels."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """One thing to say: a sentence, or a clause of a very long one.

    ``rate`` is a factor on the voice's speed, ``pitch`` is in semitones above the voice's own.
    ``instructions`` say in words how to speak; engines that take no such text leave them out.
    ``engine_voice`` is the name by which the engine knows the voice. A clone is named by
    ``clone_id``; ``profile`` is what the embedded engine takes on of it. Utterances of different
    ``organization_id`` take turns where an engine makes them wait.
    """

    text: str
    language: str
    engine_voice: str
    rate: float = 1.0
    pitch: float = 0.0
    profile: CloneProfile | None = None
    clone_id: str | None = None
    organization_id: str = ""
    instructions: str = ""


class Engine(ABC):
    """Speaks. One instance serves one event loop and any number of utterances at once."""

    @abstractmethod
    def speak(self, utterance: Utterance) -> AsyncGenerator[bytes, None]:
        """Yield the utterance as PCM pieces, at least one, none empty.

        Raises ``EngineError`` before the first piece where it can. Close the generator
        (``aclose``) to stop early; nothing of it goes on to hold a place for long.
        """

    @abstractmethod
    async def close(self) -> None:
        """Free everything. Utterances that still run end with ``EngineError``."""
