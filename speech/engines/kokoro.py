"""The neural engine: Kokoro-82M in worker processes, with the phonemes of espeak-ng's.

Opt-in: its files are installed by ``kokoro_files``. Measured facts behind the choices here:
docs/explain/neural-engine.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from speech.audio import FADE_SECONDS, SAMPLE_RATE, Samples, faded, pcm_bytes, samples, silence
from speech.engines import Engine, EngineError, Utterance, kokoro_files
from speech.engines.espeak import SHORTEST_SECONDS, Espeak
from speech.engines.kokoro_phonemes import english, hindi, tokens
from speech.engines.kokoro_runs import Clause, Run, clauses, runs
from speech.engines.kokoro_voices import KokoroVoice, parse_voice
from speech.engines.sanitize import sanitized
from speech.engines.time_stretch import stretched
from speech.engines.worker_pool import Program, Worker, WorkerPool

log = logging.getLogger(__name__)

EDGE_SECONDS: Final = 0.025
"""Silence before and after the sound of an utterance; the model's own 0.3 to 0.5 s are cut off."""

SLOWEST: Final = 0.5
FASTEST: Final = 1.5
"""How far the model itself changes its pace and sounds right; the rest is stretched."""

TOO_SLOW: Final = 0.9
"""A real-time factor above it leaves live streams without sound now and then."""

_QUIET: Final = 160  # -46 dB: the model's silence is below, the softest consonants above
_MEASURED_WITH: Final = "The morning train was late again, so we walked along the river."
_FIRST_PIECE: Final = SAMPLE_RATE // 4
_MOST_BYTES: Final = 2 * 180 * SAMPLE_RATE


@dataclass(frozen=True, slots=True)
class Order:
    """What a worker is told to speak: the model's numbers, and the factor on its loudness."""

    tokens: list[int]
    voice: str
    speed: float = 1.0
    gain: float = 1.0


class KokoroPool(WorkerPool[Order]):
    """Workers that speak, each with ``threads``."""

    name = "kokoro"

    def __init__(
        self, directory: Path, threads: int, *, size: int, most_waiting: int, wait_seconds: float
    ) -> None:
        super().__init__(
            size=size, most_waiting=most_waiting, wait_seconds=wait_seconds, order_seconds=60.0
        )
        self._program = Program(
            name=self.name,
            module="speech.engines.kokoro_worker",
            arguments=(
                str(directory / kokoro_files.MODEL),
                str(kokoro_files.styles_directory(directory)),
                str(threads),
            ),
            ready=str(SAMPLE_RATE).encode(),
            start_seconds=60.0,
            most_bytes=_MOST_BYTES,
        )

    def make_worker(self, directory: Path) -> Worker:
        return Worker(self._program)


class Kokoro(Engine):
    """Kokoro-82M in ``workers`` processes of ``threads`` each.

    ``espeak`` tells the phonemes. ``most_waiting`` runs may wait up to ``wait_seconds`` for a
    worker, then ``EngineFull``. ``Utterance.rate`` is honoured from 0.25 to 4, its pitch is not.
    """

    def __init__(
        self,
        espeak: Espeak,
        directory: Path,
        *,
        workers: int = 1,
        threads: int = 1,
        most_waiting: int = 64,
        wait_seconds: float = 30.0,
    ) -> None:
        self._espeak = espeak
        self._directory = directory
        self._pool = KokoroPool(
            directory, threads, size=workers, most_waiting=most_waiting, wait_seconds=wait_seconds
        )
        self._starting = asyncio.Lock()
        self.real_time_factor: float | None = None
        """Seconds of work for a second of sound, measured when the engine started."""

    @property
    def worker_pids(self) -> list[int]:
        """Process ids of the workers that run, for operators and tests."""
        return self._pool.pids

    async def start(self) -> None:
        """Start the workers and measure how fast they are; raises ``EngineError``."""
        async with self._starting:
            if self.real_time_factor is not None:
                return
            if (reason := kokoro_files.missing(self._directory)) is not None:
                raise EngineError(reason)
            await self._pool.ask_all((Order([50, 83, 54], "af_heart"),))
            factor = await self._measured()
            self.real_time_factor = factor
        told = "the neural engine takes %.2f s for a second of sound"
        if factor > TOO_SLOW:
            log.warning(told + ": this machine is too slow for live streams of it", factor)
        else:
            log.info(told, factor)

    async def _measured(self) -> float:
        began = time.perf_counter()
        utterance = Utterance(_MEASURED_WITH, "en", "af_heart")
        heard = [piece async for piece in self._spoken(utterance, parse_voice("af_heart"))]
        taken = time.perf_counter() - began
        return taken * 2 * SAMPLE_RATE / sum(map(len, heard))

    async def speak(self, utterance: Utterance) -> AsyncGenerator[bytes, None]:
        """As ``Engine.speak``. A run of the text is yielded once it is whole."""
        voice = parse_voice(utterance.engine_voice)
        if voice.language != utterance.language:
            raise EngineError(
                f"The neural voice {voice.name} speaks {voice.language}, "
                f"not {utterance.language[:20]}."
            )
        await self.start()
        async with contextlib.aclosing(self._spoken(utterance, voice)) as pieces:
            async for piece in pieces:
                yield piece

    async def _spoken(
        self, utterance: Utterance, voice: KokoroVoice
    ) -> AsyncGenerator[bytes, None]:
        speed = min(max(utterance.rate, SLOWEST), FASTEST)
        made = await self._runs(utterance, voice)
        for number, run in enumerate(made):
            order = Order(tokens(run.symbols), voice.name, speed, voice.gain)
            raw = await self._pool.ask(order, utterance.organization_id)
            shaped = _shaped(samples(raw), utterance.rate / speed)
            for piece in _pieces(shaped):
                yield piece
                await asyncio.sleep(0)  # a long run must not hold up the event loop
            if number < len(made) - 1 and (still := silence(run.pause / utterance.rate)):
                yield still
        if not made:
            yield silence(SHORTEST_SECONDS)

    async def _runs(self, utterance: Utterance, voice: KokoroVoice) -> list[Run]:
        parts = clauses(sanitized(utterance.text))
        if not parts:
            return []
        told = await self._espeak.phonemes(
            voice.espeak_voice,
            tuple(clause.words for clause in parts),
            utterance.organization_id,
        )
        spoken = [
            Clause(_spelt(ipa, voice), clause.mark) for ipa, clause in zip(told, parts, strict=True)
        ]
        return [run for run in runs(spoken) if tokens(run.symbols)]

    async def close(self) -> None:
        """Stop the workers."""
        await self._pool.close()


def _spelt(ipa: str, voice: KokoroVoice) -> str:
    if voice.language == "hi":
        return hindi(ipa)
    return english(ipa, british=voice.is_british)


def _shaped(sound: Samples, factor: float) -> Samples:
    """One run's sound at ``factor`` times its pace, its silent edges cut to ``EDGE_SECONDS``."""
    loud = np.flatnonzero(np.abs(sound.astype(np.int32)) > _QUIET)
    if not len(loud):
        return sound[: round(SHORTEST_SECONDS * SAMPLE_RATE)]
    edge = round(EDGE_SECONDS * SAMPLE_RATE)
    kept = stretched(sound[max(0, loud[0] - edge) : loud[-1] + edge], factor)
    fade = round(FADE_SECONDS * SAMPLE_RATE)
    return faded(kept, start=fade, end=fade)


def _pieces(sound: Samples) -> Iterator[bytes]:
    """A quarter of a second first, to be sent early, then one second at a time."""
    cuts = range(_FIRST_PIECE, len(sound), SAMPLE_RATE)
    for start, end in pairwise((0, *cuts, len(sound))):
        if start < end:
            yield pcm_bytes(sound[start:end])
