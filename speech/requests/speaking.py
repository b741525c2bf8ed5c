"""Speaks one admitted ``POST /v1/audio/speech`` into its sink.

Streamed ``pcm`` and complete files differ only in when their bytes are ready.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, Protocol

from accounts.keys.principal import Principal
from core.asgi.drain import absorbed_cancellation
from core.errors import ApiError, InternalError, InvalidField, ServerShuttingDown
from core.monitoring.logs import log_unexpected
from core.sharing.places import sound_bytes
from speech.audio.encoders import Encoders
from speech.audio.encoding import AudioFormat, chunks
from speech.audio.pcm import SAMPLE_RATE, SAMPLE_WIDTH
from speech.engines import SpokenWord
from speech.errors import UnreadableText
from speech.requests.meter import SpeechMeter
from speech.synthesis.prefetch import prefetch
from speech.synthesis.script import LONG_READING, Script, Sentence
from speech.synthesis.sentence import EngineClock, Speaker, speak_sentence
from speech.synthesis.text_process import TextProcess
from speech.synthesis.word_spans import TimedSentence, timed_words
from speech.text.pronunciations import NO_PRONUNCIATIONS, Lexicon
from speech.voices.engines import Engines
from speech.voices.snapshot import VoiceRef
from speech.wire import SpeechRequest


class HeldSound:
    """Counts the sound of one request against its organization's share (``SVC_MAX_SOUND_BYTES``)."""

    def __init__(self, organization_id: str) -> None:
        self._organization_id = organization_id
        self._size = 0

    def take(self, size: int) -> None:
        """Hold ``size`` more bytes. Raises ``ServerOverloaded``; then takes nothing."""
        sound_bytes.take(size, self._organization_id)
        self._size += size

    def release(self, size: int) -> None:
        """Release ``size`` of the bytes."""
        sound_bytes.release(size, self._organization_id)
        self._size -= size

    def release_all(self) -> None:
        """Release the rest."""
        self.release(self._size)


log = logging.getLogger(__name__)

PIECES_AHEAD: Final = 8
"""Pieces of sound that an engine may be ahead of a slow client; a piece is at most about 1 s."""

PROGRESS_SECONDS: Final = 1.0
"""How often the journal gets the progress of a stream."""

LONGEST_FILE: Final = 30 * 60
"""Seconds of one complete file, 86 MB as PCM. The longest text takes about 18 minutes at the slowest
pace; numbers and signs, written out, can take six times as long. Streams have no such limit."""

CHUNK_BYTES: Final = 64 * 1024
"""Size of the pieces in which a complete file is sent."""


@dataclass(frozen=True, slots=True)
class SpeechCall:
    """A request that passed every check except limits; ``arrived`` is a ``perf_counter`` time."""

    request_id: str
    arrived: float
    principal: Principal
    request: SpeechRequest
    voice: VoiceRef
    characters: int
    """Characters of the text that are metered."""
    lexicon: Lexicon = NO_PRONUNCIATIONS

    @property
    def audio_format(self) -> AudioFormat:
        """The format of the answer."""
        return self.request.response_format


class Sink(Protocol):
    """Sends the sound to the client; the consumers implement it."""

    @property
    def disconnected(self) -> bool:
        """Whether the client disconnected."""

    @property
    def status(self) -> int | None:
        """The status that was sent; None before the headers."""

    def admit(self) -> None:
        """Count the request as in flight. Raises ``ServerOverloaded``."""

    def follow(self, synthesis: Synthesis) -> None:
        """Stop ``synthesis``, which makes the answer, as soon as the client disconnects."""

    def prepare(self, meter: SpeechMeter, length: int | None) -> None:
        """Prepare the 200 and its headers, sent with the first bytes; ``length`` None: a stream."""

    async def send(self, sound: bytes) -> None:
        """Send a part of the body; do nothing when the client disconnected."""

    async def send_words(self, timed: TimedSentence) -> None:
        """Send the words of the sentence whose sound comes next; only for an answer by events."""

    async def finish(self, last: bytes) -> None:
        """Send the last bytes."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What all requests of a process speak with."""

    engines: Engines
    texts: TextProcess
    encoders: Encoders


class Synthesis:
    """Speaks one admitted request; ``stop`` aborts it from another task."""

    def __init__(
        self,
        call: SpeechCall,
        script: Script,
        meter: SpeechMeter,
        resources: Resources,
        report: Callable[[SpeechMeter, float], None],
    ) -> None:
        """``report`` is called with the meter and the seconds that reports are apart at least."""
        self._call = call
        self._script = script
        self._meter = meter
        self._resources = resources
        self._report = report
        self._stopped: ApiError | None = None
        self._task: asyncio.Task[None] | None = None
        self.last = b""
        """The end of the answer, held back until the row is durable; never empty on success."""

    def stop(self, reason: ApiError) -> None:
        """Abort with ``reason``; the engine is stopped at once."""
        if self._stopped is None:
            self._stopped = reason
            if self._task is not None:
                self._task.cancel()

    async def run(self, sink: Sink) -> ApiError | None:
        """Speak into ``sink``; return the failure or None. Never raises: a row must be written."""
        if self._stopped is not None:
            return self._stopped
        self._task = asyncio.create_task(self._deliver(sink))
        while not self._task.done():
            try:
                await asyncio.wait({self._task})
            except asyncio.CancelledError:
                self.stop(absorbed_cancellation())
        return self._failure(self._task)

    def _failure(self, task: asyncio.Task[None]) -> ApiError | None:
        error = ServerShuttingDown() if task.cancelled() else task.exception()
        if error is None:
            return None
        if self._stopped is not None:
            return self._stopped
        if isinstance(error, ApiError):
            return error
        log_unexpected(log, self._call.request_id, error)
        return InternalError()

    async def _deliver(self, sink: Sink) -> None:
        if self._call.audio_format is AudioFormat.PCM:
            await self._stream(sink)
        else:
            await self._whole(sink)

    async def _stream(self, sink: Sink) -> None:
        """Send sound as it comes, except one sample, so that the last byte waits for the row."""
        sink.prepare(self._meter, None)
        async with aclosing(prefetch(self._sound(), PIECES_AHEAD)) as pieces:
            async for piece in pieces:
                if isinstance(piece, TimedSentence):
                    await sink.send_words(piece)
                    continue
                ready, self.last = self.last + piece[:-SAMPLE_WIDTH], piece[-SAMPLE_WIDTH:]
                await sink.send(ready)
                if sink.disconnected:
                    return
                self._meter.pcm_bytes += len(ready)
                self._meter.charge(self._script.characters, len(self._script.sentences))
                self._report(self._meter, PROGRESS_SECONDS)
        self._meter.pcm_bytes += len(self.last)

    async def _whole(self, sink: Sink) -> None:
        """Send the sound as one file; it is in memory until the client has read it."""
        held = HeldSound(self._call.principal.organization_id)
        try:
            await self._send_file(sink, held)
        finally:
            held.release_all()

    async def _send_file(self, sink: Sink, held: HeldSound) -> None:
        timed: list[TimedSentence] = []
        parts, spoken_bytes = await self._file(held, timed)
        sink.prepare(self._meter, sum(map(len, parts)))
        for sentence in timed:
            await sink.send_words(sentence)
        for chunk in chunks(parts, CHUNK_BYTES):
            if self.last:
                await sink.send(self.last)
            self.last = chunk
        if not sink.disconnected:
            self._meter.pcm_bytes = spoken_bytes

    async def _file(self, held: HeldSound, timed: list[TimedSentence]) -> tuple[list[bytes], int]:
        """Return the parts of the encoded file, which ``held`` counts, and the bytes spoken; ``timed``
        gets the words, if the client wants them."""
        call, encoders = self._call, self._resources.encoders
        pieces = await whole_sound(_sound_alone(self._sound(), timed), "input", held)
        parts = await encoders.encode(pieces, call.audio_format, call.principal.organization_id)
        spoken_bytes = sum(map(len, pieces))
        held.release(max(0, spoken_bytes - sum(map(len, parts))))
        return parts, spoken_bytes

    async def _sound(self) -> AsyncGenerator[bytes | TimedSentence, None]:
        """Yield the sound of each sentence, after its words if the client wants their times."""
        call = self._call
        engine = self._resources.engines.of(call.voice)
        speaker = Speaker(
            call.voice,
            engine,
            self._resources.texts,
            call.principal.organization_id,
            call.request.speed,
            call.request.instructions,
            self._script.characters > LONG_READING,
            lexicon=call.lexicon,
            request_id=call.request_id,
        )
        spoken_bytes, unread = 0, None
        timing = _Timing(call.principal.organization_id) if call.request.timestamps else None
        for sentence in self._script.sentences:
            sound: AsyncGenerator[bytes | TimedSentence, None]
            if timing is None:
                sound = speak_sentence(sentence, speaker, self._meter.clock)
            else:
                sound = timing.spoken(sentence, speaker, self._meter.clock, spoken_bytes)
            async with aclosing(sound) as pieces:
                try:
                    async for piece in pieces:
                        spoken_bytes += len(piece) if isinstance(piece, bytes) else 0
                        yield piece
                except UnreadableText as error:
                    unread = unread or error
        if unread is not None and not spoken_bytes:
            raise unread


class _Timing:
    """Speaks sentences, each with its words before its sound, which is held meanwhile."""

    def __init__(self, organization_id: str) -> None:
        self._held = HeldSound(organization_id)
        self._spoken = 0

    async def spoken(
        self, sentence: Sentence, speaker: Speaker, clock: EngineClock, before: int
    ) -> AsyncGenerator[bytes | TimedSentence, None]:
        """The words of ``sentence``, then its sound; ``before`` bytes of sound precede."""
        words: list[SpokenWord] = []
        try:
            spoken = speak_sentence(sentence, speaker, clock, words)
            pieces = await whole_sound(spoken, "input", self._held)
            later = before / (SAMPLE_RATE * SAMPLE_WIDTH)
            timed = await timed_words(sentence, words, later, speaker)
            yield TimedSentence(self._spoken, timed)
            self._spoken += 1
            for piece in pieces:
                yield piece
        finally:
            self._held.release_all()


async def _sound_alone(
    spoken: AsyncGenerator[bytes | TimedSentence, None], timed: list[TimedSentence]
) -> AsyncGenerator[bytes, None]:
    """The sound in ``spoken``; ``timed`` gets the rest."""
    async with aclosing(spoken) as pieces:
        async for piece in pieces:
            if isinstance(piece, TimedSentence):
                timed.append(piece)
            else:
                yield piece


async def whole_sound(
    pieces: AsyncGenerator[bytes, None], param: str, counted: HeldSound
) -> list[bytes]:
    """Collect ``pieces`` in memory, to be encoded as one file; ``counted`` counts them.

    Raises ``InvalidField`` for ``param`` when they last longer than ``LONGEST_FILE`` seconds, and
    ``ServerOverloaded`` when they are more than ``counted`` may hold.
    """
    held: list[bytes] = []
    left = LONGEST_FILE * SAMPLE_RATE * SAMPLE_WIDTH
    async with aclosing(pieces) as following:
        async for piece in following:
            left -= len(piece)
            if left < 0:
                raise InvalidField(
                    f"'{param}' is too long: spoken, it takes more than {LONGEST_FILE // 60} "
                    "minutes, the limit of one file. Send it in several pieces, or raise 'speed'.",
                    param=param,
                )
            counted.take(len(piece))
            held.append(piece)
    return held
