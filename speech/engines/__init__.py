"""Engines turn text into sound: one interface, one package per engine.

An engine gets a sentence and yields PCM (``speech.audio.pcm``) as it is made. API clients see a
failure as ``proxy_error``: ``EngineFull`` 503 with ``retry-after``, ``EngineTimeout`` 504, any
other ``EngineError`` 502 (docs/explain/speech-engine.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from speech.text.pronunciations import StandIn


class EngineError(Exception):
    """The engine could not speak. Messages never quote the request's text.

    ``outcome`` is the ledger's outcome of such a failure (``usage.models.SpeechOutcome``).
    """

    outcome: ClassVar[str] = "backend_error"


class EngineTimeout(EngineError):
    """The engine took too long."""

    outcome = "backend_timeout"


class EngineFull(EngineError):
    """The engine and its queue are full; retry soon."""

    outcome = "backend_unavailable"


class EngineUnavailable(EngineError):
    """The engine cannot be reached, or the connection broke while it spoke."""

    outcome = "backend_unavailable"


class EngineProtocolError(EngineError):
    """The engine's answer is not sound, or is incomplete."""

    outcome = "backend_protocol_error"


class CloneProfile(Protocol):
    """The measured features of a speaker that the embedded engine can imitate.

    ``speech.voices.clones`` makes them.
    """

    @property
    def pitch(self) -> float:
        """First number of ``pitch`` in an espeak-ng voice file, 30 to 400 (base voice: 82)."""

    @property
    def pitch_range(self) -> float:
        """Second number of ``pitch``: the peak of intonation, 30 to 600 (base voice: 118)."""

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
class StyleMix:
    """A clone as the neural engine speaks it; the speaker's recording cannot be restored from it.

    ``styles`` are voices of the engine with their shares, the largest first. ``pitch`` is a factor on
    that of the mix, ``gain`` one on its loudness; ``eq_db`` are gains in
    ``speech.audio.speaker.BAND_CENTRES``.
    """

    styles: tuple[tuple[str, float], ...]
    pitch: float
    gain: float
    eq_db: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Utterance:
    """A text to speak at once: a sentence, or a clause of a very long one.

    ``rate`` is a factor on the voice's speed, ``pitch`` is in semitones above the voice's own.
    ``instructions`` say in words how to speak; engines without that feature ignore them.
    ``engine_voice`` is the engine's name of the voice. A clone is named by ``clone_id``; the
    embedded engine imitates it by ``profile``, the neural one by ``mix``. Waiting utterances of different
    ``organization_id`` take turns. ``is_long``: it belongs to a long text, which takes its time
    anyway, so an engine may put short ones first. ``is_interactive``: it may be interrupted, and
    the next one is awaited at once, so an engine begins no long work for it. ``stand_ins``: words
    of the text that stand for others, with the sounds of these; only for engines that take IPA.
    Utterances of one ``request_id`` are spoken by the same server, where a voice has several.
    """

    text: str
    language: str
    engine_voice: str
    rate: float = 1.0
    pitch: float = 0.0
    profile: CloneProfile | None = None
    mix: StyleMix | None = None
    clone_id: str | None = None
    organization_id: str = ""
    instructions: str = ""
    is_long: bool = False
    is_interactive: bool = False
    stand_ins: tuple[StandIn, ...] = ()
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class SpokenWord:
    """A word as an engine spoke it, with its start and end in seconds."""

    text: str
    start: float
    end: float

    def later(self, seconds: float) -> SpokenWord:
        """The word when ``seconds`` of sound precede."""
        return SpokenWord(self.text, self.start + seconds, self.end + seconds)


class Engine(ABC):
    """Speaks utterances. An instance serves one event loop and any number of them at once."""

    @abstractmethod
    def speak(self, utterance: Utterance) -> AsyncGenerator[bytes, None]:
        """Yield the utterance as PCM pieces, at least one, none empty.

        Raises ``EngineError``, if possible before the first piece. Close the generator (``aclose``)
        to stop early; the worker or slot is freed promptly.
        """

    def speak_timed(self, utterance: Utterance) -> AsyncGenerator[bytes | SpokenWord, None]:
        """As ``speak``, with each word before the sound in which it begins.

        The seconds of a word count from the beginning of the utterance's sound. Not every speech
        server gives them: ``speech.voices.snapshot.VoiceRef.has_word_times``.
        """
        raise NotImplementedError

    @abstractmethod
    async def close(self) -> None:
        """Release all resources. Running utterances end with ``EngineError``."""
