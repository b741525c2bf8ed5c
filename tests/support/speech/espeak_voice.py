"""The embedded engine for tests without an event loop, which listen to one voice after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from speech.audio.pcm import SAMPLE_RATE as RATE
from speech.audio.pcm import samples
from speech.engines import Utterance
from speech.engines.espeak.engine import Espeak
from speech.engines.espeak.profile import CloneProfile

__all__ = ["RATE", "Audio", "EspeakVoice"]

Audio = npt.NDArray[np.float32]
Found = TypeVar("Found")


class EspeakVoice:
    """Speaks with any voice of the engine, or as the clone that a profile describes."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._engine = Espeak(workers=1)

    def say(self, text: str, voice: str = "en-us") -> Audio:
        return samples(self._sound(Utterance(text, "en", voice))).astype(np.float32) / np.float32(
            32768
        )

    def speak(self, text: str, profile: CloneProfile) -> bytes:
        """Speak to 16-bit PCM at 24 000 Hz, as ``calibrate`` requires."""
        return self._sound(Utterance(text, "en", "en-us", profile=profile))

    def phonemes(self, text: str, voice: str) -> str:
        """The sounds of a text, in IPA."""
        return self._run(self._engine.phonemes(voice, (text,), ""))[0]

    def close(self) -> None:
        self._run(self._engine.close())
        self._loop.close()

    def _sound(self, utterance: Utterance) -> bytes:
        async def spoken() -> bytes:
            return b"".join([piece async for piece in self._engine.speak(utterance)])

        return self._run(spoken())

    def _run(self, work: Coroutine[Any, Any, Found]) -> Found:
        return self._loop.run_until_complete(work)
