"""The embedded engine: espeak-ng, installed by pip, in worker processes.

It needs no download and no GPU: a machine that runs svc can speak. The measurements behind its
constants: docs/explain/speech-engine.md.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from itertools import pairwise

from speech.audio.pcm import SAMPLE_RATE, SAMPLE_WIDTH, SHORTEST_SECONDS, samples, silence
from speech.engines import Engine, EngineError, SpokenWord, Utterance
from speech.engines.espeak.mnemonics import mnemonics
from speech.engines.espeak.pool import EspeakPool, Order, marks_of
from speech.engines.espeak.voices import EspeakVoice, parse_voice, variant_file
from speech.engines.sanitize import portions, sanitized
from speech.engines.word_times import Unit, spoken_words, words_of

WORDS_PER_MINUTE = 175
"""Speed of rate 1."""

_PIECE_BYTES = SAMPLE_RATE * SAMPLE_WIDTH
_FIRST_PIECE_BYTES = _PIECE_BYTES // 4
_SLOWEST, _FASTEST = 80, 700
"""Words per minute: espeak-ng gets no slower below; above is more than four times the speed."""
_LONGEST_STRETCH = 2.0
_MIDDLE_PITCH, _HIGHEST_PITCH = 50, 99
_PITCH_STEPS_PER_SEMITONE = 50 / 12  # espeak-ng's scale doubles the frequency in 50 steps


class Espeak(Engine):
    """espeak-ng in ``workers`` processes.

    ``most_waiting`` utterances may wait up to ``wait_seconds`` for a worker, then get
    ``EngineFull``. An order, about 20 s of sound that take some 20 ms, has ``order_seconds``, then
    ``EngineTimeout``.
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

    async def start(self) -> None:
        """Start the workers before the first utterance. Raises ``EngineError``."""
        await self._pool.start()

    async def speak(self, utterance: Utterance) -> AsyncGenerator[bytes, None]:
        """As ``Engine.speak``. A portion of the text is yielded only when it is complete.

        So no word is heard twice when a worker dies and its portion is retried.
        """
        async with aclosing(self._pieces_of(utterance, is_timed=False)) as pieces:
            async for piece in pieces:
                if isinstance(piece, bytes):
                    yield piece

    async def speak_timed(self, utterance: Utterance) -> AsyncGenerator[bytes | SpokenWord, None]:
        """As ``Engine.speak_timed``."""
        async with aclosing(self._pieces_of(utterance, is_timed=True)) as pieces:
            async for piece in pieces:
                yield piece

    async def _pieces_of(
        self, utterance: Utterance, *, is_timed: bool
    ) -> AsyncGenerator[bytes | SpokenWord, None]:
        voice = parse_voice(utterance.engine_voice)
        if voice.language != utterance.language:
            raise EngineError(
                f"The embedded voice {voice.name} speaks {voice.language}, "
                f"not {utterance.language[:20]}."
            )
        sounded = 0
        for portion in portions(sanitized(utterance.text)):
            order = _order(utterance, voice, portion, is_timed=is_timed)
            sound = await self._pool.run(
                order, utterance.organization_id, is_long=utterance.is_long
            )
            if is_timed:
                words, sound = await self._timed(order, sound, utterance.organization_id)
                for word in words:
                    yield word.later(sounded / _PIECE_BYTES)
            for piece in _pieces(sound):
                if piece:
                    sounded += len(piece)
                    yield piece
                    await asyncio.sleep(0)  # a long portion must not block the event loop
        if not sounded:
            yield silence(SHORTEST_SECONDS)

    async def _timed(
        self, order: Order, answered: bytes, organization_id: str
    ) -> tuple[list[SpokenWord], bytes]:
        """The words of a portion and its sound."""
        text, reported, sound = marks_of(answered)
        words = words_of(text)
        meant = {stand_in: word for stand_in, word, _ in order.sounds}
        begins: dict[int, float] = {}
        for offset, second in reported:
            # Of a word that espeak-ng cuts into several the first one counts.
            at = bisect_right([word.start() for word in words], offset) - 1
            begins.setdefault(max(0, at), second)
        groups = [
            [meant.get(word[0], word[0]) for word in words[at:following]]
            for at, following in pairwise([*sorted(begins), len(words)])
        ]
        lengths = await self._lengths(order.voice, groups, organization_id)
        units = [
            Unit(begins[at], tuple(group), of)
            for at, group, of in zip(sorted(begins), groups, lengths, strict=True)
        ]
        return spoken_words(units, samples(sound)), sound

    async def _lengths(
        self, voice: str, groups: list[list[str]], organization_id: str
    ) -> list[tuple[float, ...]]:
        """The phonemes of each word alone, where espeak-ng joined several."""
        joined = [word for group in groups if len(group) > 1 for word in group]
        texts = tuple(map(sanitized, joined))
        found = iter(await self.phonemes(voice, texts, organization_id) if joined else [])
        return [
            tuple(max(1.0, len(next(found))) for _ in group) if len(group) > 1 else (1.0,)
            for group in groups
        ]

    async def phonemes(self, voice: str, texts: tuple[str, ...], organization_id: str) -> list[str]:
        """The pronunciation of each of ``texts``, in IPA with ``^`` inside of one phoneme.

        The texts are ``sanitized``. For engines that speak phonemes. Raises ``EngineError``.
        """
        return await self._pool.phonemes(voice, texts, organization_id)

    async def close(self) -> None:
        """Stop the workers and delete their files."""
        await self._pool.close()


def _order(utterance: Utterance, voice: EspeakVoice, text: str, *, is_timed: bool) -> Order:
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
        eq_hz=() if profile is None else tuple(profile.eq_hz),
        eq_db=() if profile is None else tuple(profile.eq_db),
        marks=is_timed,
        sounds=tuple(
            (one.stand_in, one.word, mnemonics(one.ipa, voice.language))
            for one in utterance.stand_ins
            if one.stand_in in text
        ),
    )


def _pieces(sound: bytes) -> Iterator[bytes]:
    """Cut the sound of one portion: 250 ms first, then 1 s at a time.

    The first piece is short to be heard early; the others are long because each costs about 30 µs to
    send, whatever its length.
    """
    cuts = range(_FIRST_PIECE_BYTES, len(sound), _PIECE_BYTES)
    return (sound[start:end] for start, end in pairwise((0, *cuts, len(sound))))
