"""The embedded engine: espeak-ng, which ``pip install`` brings along, in worker processes.

Nothing to download and no GPU: a machine that runs svc can speak. Measured facts behind the choices
here: docs/explain/speech-engine.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from itertools import pairwise

import numpy as np

from speech.audio import FADE_SECONDS, Resampler, faded, pcm_bytes, samples, silence
from speech.engines import CloneProfile, Engine, EngineError, Utterance
from speech.engines.equaliser import Equaliser
from speech.engines.espeak_pool import WORKER_RATE, EspeakPool, Order
from speech.engines.espeak_voices import EspeakVoice, parse_voice, variant_file
from speech.engines.sanitize import portions, sanitized

WORDS_PER_MINUTE = 175
"""Speed of rate 1."""

SHORTEST_SECONDS = 0.02
"""Length of the silence that stands for text without a sound."""

_FIRST_PIECE_SAMPLES = WORKER_RATE // 4
_PIECE_SAMPLES = WORKER_RATE
_SLOWEST, _FASTEST = 80, 700
"""Words per minute: below, espeak-ng itself gets no slower; above is beyond four times."""
_LONGEST_STRETCH = 2.0
_MIDDLE_PITCH, _HIGHEST_PITCH = 50, 99
_PITCH_STEPS_PER_SEMITONE = 50 / 12  # espeak-ng's scale doubles the frequency in 50 steps


class Espeak(Engine):
    """espeak-ng in ``workers`` processes.

    ``most_waiting`` utterances may wait up to ``wait_seconds`` for a worker, then ``EngineFull``.
    A worker has ``order_seconds`` for about 20 seconds of sound, which take it some 20
    milliseconds, then ``EngineTimeout``.
    """

    def __init__(
        self,
        *,
        workers: int = 2,
        most_waiting: int = 64,
        wait_seconds: float = 5.0,
        order_seconds: float = 5.0,
    ) -> None:
        self._pool = EspeakPool(
            size=workers,
            most_waiting=most_waiting,
            wait_seconds=wait_seconds,
            order_seconds=order_seconds,
        )

    @property
    def worker_pids(self) -> list[int]:
        """Process ids of the workers that run, for operators and tests."""
        return self._pool.pids

    async def start(self) -> None:
        """Start the workers ahead of the first utterance; raises ``EngineError``."""
        await self._pool.start()

    async def speak(self, utterance: Utterance) -> AsyncGenerator[bytes, None]:
        """As ``Engine.speak``. A portion of the text is yielded once it is whole.

        So a worker's death never makes a listener hear a word twice: the portion is retried unheard.
        """
        voice = parse_voice(utterance.engine_voice)
        if voice.language != utterance.language:
            raise EngineError(
                f"The embedded voice {voice.name} speaks {voice.language}, "
                f"not {utterance.language[:20]}."
            )
        shape = _Shape(utterance.profile)
        sounded = False
        for portion in portions(sanitized(utterance.text)):
            order = _order(utterance, voice, portion)
            raw = await self._pool.ask(order, utterance.organization_id)
            for piece in shape.pieces(raw):
                if piece:
                    sounded = True
                    yield piece
                    await asyncio.sleep(0)  # a long portion must not hold up the event loop
        if rest := shape.finish():
            yield rest
        elif not sounded:
            yield silence(SHORTEST_SECONDS)

    async def phonemes(self, voice: str, texts: tuple[str, ...], organization_id: str) -> list[str]:
        """How espeak-ng pronounces each of ``texts``, in IPA with ``^`` inside of one phoneme.

        The texts are ``sanitized``. For engines that speak phonemes; raises ``EngineError``.
        """
        return await self._pool.phonemes(voice, texts, organization_id)

    async def close(self) -> None:
        """Stop the workers and remove their files."""
        await self._pool.close()


def _order(utterance: Utterance, voice: EspeakVoice, text: str) -> Order:
    rate = round(WORDS_PER_MINUTE * utterance.rate)
    pitch = round(_MIDDLE_PITCH + _PITCH_STEPS_PER_SEMITONE * utterance.pitch)
    profile = utterance.profile
    return Order(
        voice=voice.name if profile is None else voice.base,
        text=text,
        rate=max(_SLOWEST, min(_FASTEST, rate)),
        stretch=min(_LONGEST_STRETCH, max(1.0, _SLOWEST / max(rate, 1))),
        pitch=max(0, min(_HIGHEST_PITCH, pitch)),
        variant=None if profile is None else variant_file(profile),
    )


class _Shape:
    """What is done to a worker's samples: a clone's equaliser, then the common rate."""

    def __init__(self, profile: CloneProfile | None) -> None:
        self._resampler = Resampler(WORKER_RATE)
        self._equaliser = (
            Equaliser(profile.eq_hz, profile.eq_db, WORKER_RATE)
            if profile is not None and len(profile.eq_hz)
            else None
        )

    def pieces(self, raw: bytes) -> Iterator[bytes]:
        """One portion's sound, its edges silent: a quarter of a second first, then one at a time.

        The first is short to be heard early; the others are long because each costs about 30
        microseconds on its way, whatever its length.
        """
        fade = round(FADE_SECONDS * WORKER_RATE)
        whole = faded(samples(raw), start=fade, end=fade)
        cuts = range(_FIRST_PIECE_SAMPLES, len(whole), _PIECE_SAMPLES)
        for start, end in pairwise((0, *cuts, len(whole))):
            part = whole[start:end]
            if self._equaliser is not None:
                part = self._equaliser.piece(part)
            yield self._resampler.piece(pcm_bytes(part))

    def finish(self) -> bytes:
        """The end of the sound."""
        rest = np.zeros(0, dtype=np.int16) if self._equaliser is None else self._equaliser.finish()
        return self._resampler.piece(pcm_bytes(rest)) + self._resampler.finish()
