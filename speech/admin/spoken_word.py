"""The one word that a test of a speech backend has spoken."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from typing import Final

from speech.audio.pcm import duration
from speech.engines import EngineError, Utterance
from speech.engines.http.engine import HttpEngine
from speech.models import Language, SpeechBackend, Voice
from speech.voices.clones.clips import clips
from speech.voices.snapshot import backend_ref
from svc_project.lib.admin.backend_test import StepFailed

_WORDS: Final[Mapping[str, str]] = {Language.ENGLISH: "One.", Language.HINDI: "एक।"}


async def speak_word(backend: SpeechBackend, voice: Voice) -> str:
    """Have ``backend`` speak a word by ``voice``; return how long it sounds. Raises ``StepFailed``."""
    engine = HttpEngine(backend_ref(backend), clips)
    utterance = Utterance(_WORDS[voice.language], voice.language, voice.engine_voice)
    sound = bytearray()
    try:
        async with aclosing(engine.speak(utterance)) as pieces:
            async for piece in pieces:
                sound += piece
    except EngineError as error:
        raise StepFailed(str(error)) from None
    finally:
        await engine.close()
    return f"{duration(bytes(sound)):.2f} s of sound"
