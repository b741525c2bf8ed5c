"""The neural engine: Kokoro-82M in worker processes, with phonemes from espeak-ng.

Opt-in: ``files`` installs the model. The measurements behind the constants:
docs/explain/neural-engine.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from core.sharing.priority import Priority
from speech.audio.pcm import (
    FADE_SECONDS,
    SAMPLE_RATE,
    SAMPLE_WIDTH,
    SHORTEST_SECONDS,
    Samples,
    faded,
    pcm_bytes,
    samples,
    silence,
)
from speech.audio.speaker import BAND_CENTRES
from speech.engines import Engine, EngineError, SpokenWord, Utterance
from speech.engines.espeak.engine import Espeak
from speech.engines.kokoro import files
from speech.engines.kokoro.files import KokoroVoice, parse_voice
from speech.engines.kokoro.phonemes import english, hindi, tokens
from speech.engines.kokoro.phrases import Phrase, Phrases
from speech.engines.kokoro.pool import KokoroPool, Order
from speech.engines.kokoro.runs import Clause, Run, clauses, runs
from speech.engines.kokoro.timing import Group, groups_of, units
from speech.engines.sanitize import sanitized
from speech.engines.word_times import Unit, spoken_words, words_of
from speech.engines.worker_frames import split_marks
from speech.text.ipa import written_ipa
from speech.text.pronunciations import STAND_IN

_WINDOW: Final = 720  # samples: 30 ms at 24 000 a second, more than two periods of a low voice
_HOP: Final = _WINDOW // 2
_SEARCH: Final = 240


def stretched(signal: Samples, factor: float) -> Samples:
    """Return ``signal`` at ``factor`` times its speed and its pitch; 2 halves its length.

    Overlap-add of windows, moved to where they fit best (WSOLA; Verhelst and Roelands, 1993).
    """
    if abs(factor - 1) < 0.01 or len(signal) < 4 * _WINDOW:
        return signal
    source = np.pad(signal.astype(np.float32), (_SEARCH, _WINDOW + _HOP + 2 * _SEARCH))
    count = round(len(signal) / factor / _HOP)
    window = np.hanning(_WINDOW + 1)[:-1].astype(np.float32)
    made = np.zeros(count * _HOP + _WINDOW, dtype=np.float32)
    at = _SEARCH
    for number in range(count):
        made[number * _HOP :][:_WINDOW] += source[at : at + _WINDOW] * window
        wanted = source[at + _HOP : at + _HOP + _WINDOW]
        nominal = min(round((number + 1) * _HOP * factor), len(signal))
        region = source[nominal : nominal + _WINDOW + 2 * _SEARCH]
        likeness = np.correlate(region, wanted[: len(region) - 2 * _SEARCH], "valid")
        at = nominal + int(likeness.argmax())
    return np.clip(np.rint(made[: count * _HOP]), -32768, 32767).astype(np.int16)


log = logging.getLogger(__name__)

EDGE_SECONDS: Final = 0.025
"""Silence kept before and after an utterance; the model makes 0.3 to 0.5 s, which are cut."""

SLOWEST: Final = 0.5
FASTEST: Final = 1.5
"""The range of speeds at which the model sounds right; beyond it, the sound is stretched."""

TOO_SLOW: Final = 0.9
"""With a real-time factor above it, live streams have gaps."""

_QUIET: Final = 160  # -46 dB: the model's silence is below, the softest consonants above
_MEASURED_WITH: Final = "The morning train was late again, so we walked along the river."
_FIRST_PIECE: Final = SAMPLE_RATE // 4


class Kokoro(Engine):
    """Kokoro-82M in ``workers`` processes of ``threads`` each.

    ``espeak`` makes the phonemes. ``most_waiting`` runs may wait up to ``wait_seconds`` for a
    worker, then get ``EngineFull``. ``Utterance.rate`` works from 0.25 to 4; pitch is ignored.
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
        self._phrases = Phrases()
        self.real_time_factor: float | None = None
        """Seconds of computing for a second of sound, measured when the engine started."""

    async def start(self) -> None:
        """Start the workers and measure their speed. Raises ``EngineError``."""
        async with self._starting:
            if self.real_time_factor is not None:
                return
            if (reason := files.missing(self._directory)) is not None:
                raise EngineError(reason)
            await self._pool.run_on_all((Order([50, 83, 54], (("af_heart", 1.0),)),))
            factor = await self._measured()
            if factor > TOO_SLOW:  # once more: the gateway itself starts at the same time
                factor = min(factor, await self._measured())
            self.real_time_factor = factor
        log.info("the neural engine takes %.2f s for a second of sound", factor)
        if factor > TOO_SLOW:
            log.warning(
                "this machine is too slow for live streams of the neural engine; "
                "espeak-ng speaks the voices that it has too"
            )

    @property
    def is_free(self) -> bool:
        """Whether it was measured, speaks faster than it is heard, and speaks to fewer than it can."""
        factor = self.real_time_factor
        if factor is None or not self.speaks_live:
            return False
        return self._pool.orders < max(1, int(self._pool.size / factor))

    @property
    def speaks_live(self) -> bool:
        """Whether its measured real-time factor is low enough for live streams (``TOO_SLOW``)."""
        return self.real_time_factor is not None and self.real_time_factor <= TOO_SLOW

    async def _measured(self) -> float:
        began = time.perf_counter()
        utterance = Utterance(_MEASURED_WITH, "en", "af_heart")
        spoken = self._runs_spoken(utterance, parse_voice("af_heart"), is_timed=False)
        made = sum([len(piece) async for piece in spoken if isinstance(piece, bytes)])
        return (time.perf_counter() - began) * 2 * SAMPLE_RATE / made

    async def speak(self, utterance: Utterance) -> AsyncGenerator[bytes, None]:
        """As ``Engine.speak``. A run of the text is yielded when it is complete."""
        async with contextlib.aclosing(self._spoken(utterance, is_timed=False)) as pieces:
            async for piece in pieces:
                if isinstance(piece, bytes):
                    yield piece

    async def speak_timed(self, utterance: Utterance) -> AsyncGenerator[bytes | SpokenWord, None]:
        """As ``Engine.speak_timed``."""
        async with contextlib.aclosing(self._spoken(utterance, is_timed=True)) as pieces:
            async for piece in pieces:
                yield piece

    async def _spoken(
        self, utterance: Utterance, *, is_timed: bool
    ) -> AsyncGenerator[bytes | SpokenWord, None]:
        voice = parse_voice(utterance.engine_voice)
        if voice.language != utterance.language:
            raise EngineError(
                f"The neural voice {voice.name} speaks {voice.language}, "
                f"not {utterance.language[:20]}."
            )
        await self.start()
        if utterance.mix is not None:
            # Not held: nothing of a clone is left in memory when it was deleted.
            async with contextlib.aclosing(self._runs_spoken(utterance, voice, is_timed)) as pieces:
                async for piece in pieces:
                    yield piece
            return
        phrase = Phrase.of(utterance)
        if (held := self._phrases.find(phrase, is_timed=is_timed)) is not None:
            for piece in held:
                yield piece
                await asyncio.sleep(0)
            return
        made: list[bytes | SpokenWord] = []
        async with contextlib.aclosing(self._runs_spoken(utterance, voice, is_timed)) as pieces:
            async for piece in pieces:
                made.append(piece)
                yield piece
        self._phrases.keep(phrase, tuple(made), is_timed=is_timed)

    async def _runs_spoken(
        self, utterance: Utterance, voice: KokoroVoice, is_timed: bool
    ) -> AsyncGenerator[bytes | SpokenWord, None]:
        speed = min(max(utterance.rate, SLOWEST), FASTEST)
        made, groups = await self._runs(utterance, voice, is_timed)
        sounded = 0
        for number, run in enumerate(made):
            order = _order(tokens(run.symbols), utterance, voice, speed, is_timed=is_timed)
            raw = await self._pool.run(
                order, utterance.organization_id, priority=_priority(utterance)
            )
            frames, raw = _unmarked(raw) if is_timed else ([], raw)
            shaped = _shaped(samples(raw), utterance.rate / speed)
            for word in spoken_words(shaped.moved(units(run, groups, frames)), shaped.sound):
                yield word.later(sounded / SAMPLE_RATE)
            for piece in _pieces(shaped.sound):
                yield piece
                await asyncio.sleep(0)  # a long run must not block the event loop
            sounded += len(shaped.sound)
            if number < len(made) - 1 and (still := silence(run.pause / utterance.rate)):
                sounded += len(still) // SAMPLE_WIDTH
                yield still
        if not made:
            yield silence(SHORTEST_SECONDS)

    async def _runs(
        self, utterance: Utterance, voice: KokoroVoice, is_timed: bool
    ) -> tuple[list[Run], Iterator[Group]]:
        """The runs of the text, and, if ``is_timed``, the words of all their symbols."""
        parts = clauses(sanitized(utterance.text))
        spelt = await self._spelt([clause.words for clause in parts], voice, utterance)
        spoken = [
            Clause(symbols, clause.mark) for symbols, clause in zip(spelt, parts, strict=True)
        ]
        groups: list[Group] = []
        if is_timed:
            words = [[word[0] for word in words_of(clause.words)] for clause in parts]
            alone = iter(await self._spelt([word for of in words for word in of], voice, utterance))
            meant = {one.stand_in: one.word for one in utterance.stand_ins}
            for of, symbols in zip(words, spelt, strict=True):
                lengths = [next(alone) for _ in of]
                groups += groups_of([meant.get(word, word) for word in of], lengths, symbols)
        made = runs(spoken, is_interactive=utterance.is_interactive)
        return [run for run in made if tokens(run.symbols)], iter(groups)

    async def _spelt(self, texts: list[str], voice: KokoroVoice, utterance: Utterance) -> list[str]:
        """The model's symbols of each of ``texts``."""
        given = {one.stand_in: written_ipa(one.ipa) for one in utterance.stand_ins}
        cut = [_cut(text, given) for text in texts]
        unknown = tuple(part for parts in cut for part in parts if part not in given)
        if unknown:
            phonemes = iter(
                await self._espeak.phonemes(voice.espeak_voice, unknown, utterance.organization_id)
            )
        return [
            " ".join(
                _spelt(given[part] if part in given else next(phonemes), voice) for part in parts
            )
            for parts in cut
        ]

    async def close(self) -> None:
        """Stop the workers."""
        await self._pool.close()


class BackgroundKokoro(Kokoro):
    """Kokoro-82M for background work: one process with one thread, at the lowest priority.

    Its speed is not measured. The process starts with the first utterance.
    """

    def __init__(self, espeak: Espeak, directory: Path) -> None:
        super().__init__(espeak, directory)
        self._pool = KokoroPool(directory, threads=1, size=1, in_background=True)

    async def start(self) -> None:
        """Raises ``EngineError`` if the engine is not installed."""
        if (reason := files.missing(self._directory)) is not None:
            raise EngineError(reason)


def _order(
    of_run: list[int], utterance: Utterance, voice: KokoroVoice, speed: float, *, is_timed: bool
) -> Order:
    if (mix := utterance.mix) is None:
        return Order(of_run, ((voice.name, 1.0),), speed, gain=voice.gain, marks=is_timed)
    styles = tuple((parse_voice(name).name, share) for name, share in mix.styles)
    return Order(
        of_run, styles, speed, mix.pitch, mix.gain, BAND_CENTRES, mix.eq_db, marks=is_timed
    )


def _priority(utterance: Utterance) -> Priority:
    """The class in which a run waits; of several workers, one is kept free of long texts while there
    are interactive ones."""
    if utterance.is_interactive:
        return Priority.INTERACTIVE
    return Priority.BATCH if utterance.is_long else Priority.STANDARD


def _cut(text: str, given: Mapping[str, str]) -> list[str]:
    """``text`` cut before and after each stand-in, if any is ``given``."""
    if not given:
        return [text]
    return [part.strip() for part in STAND_IN.split(text) if part.strip()]


def _spelt(ipa: str, voice: KokoroVoice) -> str:
    if voice.language == "hi":
        return hindi(ipa)
    return english(ipa, british=voice.is_british)


def _unmarked(answered: bytes) -> tuple[list[int], bytes]:
    marks, sound = split_marks(answered)
    return msgspec.json.decode(marks, type=list[int]), sound


@dataclass(frozen=True, slots=True)
class _Shaped:
    """The sound of a run, of which ``cut`` seconds were cut off before it was stretched."""

    sound: Samples
    cut: float = 0.0
    factor: float = 1.0

    def moved(self, units: list[Unit]) -> list[Unit]:
        """``units`` of the sound that the model made, at their times in this one."""
        return [replace(unit, start=(unit.start - self.cut) / self.factor) for unit in units]


def _shaped(sound: Samples, factor: float) -> _Shaped:
    """The sound of one run at ``factor`` times its pace, silent edges cut to ``EDGE_SECONDS``."""
    loud = np.flatnonzero(np.abs(sound.astype(np.int32)) > _QUIET)
    if not len(loud):
        return _Shaped(sound[: round(SHORTEST_SECONDS * SAMPLE_RATE)])
    edge = round(EDGE_SECONDS * SAMPLE_RATE)
    start = max(0, int(loud[0]) - edge)
    kept = stretched(sound[start : loud[-1] + edge], factor)
    fade = round(FADE_SECONDS * SAMPLE_RATE)
    return _Shaped(faded(kept, start=fade, end=fade), start / SAMPLE_RATE, factor)


def _pieces(sound: Samples) -> Iterator[bytes]:
    """Cut ``sound`` into 250 ms first, to be sent early, then 1 s at a time."""
    cuts = range(_FIRST_PIECE, len(sound), SAMPLE_RATE)
    for start, end in pairwise((0, *cuts, len(sound))):
        if start < end:
            yield pcm_bytes(sound[start:end])
