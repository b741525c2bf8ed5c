"""The story of one ``POST /v1/audio/speech``: checked, admitted, spoken, encoded, written down.

``prepare`` is everything that can be refused before anything is taken; ``complete`` is the rest.
Streamed ``pcm`` and complete files differ only in when their bytes are ready.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from accounts.principal import Principal
from speech.audio import SAMPLE_RATE, SAMPLE_WIDTH
from speech.encoding import AudioFormat, encode_in_thread
from speech.engines.registry import Engines
from speech.errors import SpeechFull
from speech.meter import Identity, SpeechMeter
from speech.quota import Reserved, SpeechQuota
from speech.quota_refusals import refused_too_often
from speech.run_ahead import run_ahead
from speech.script import LONG_READING, Script, metered_characters, read_script
from speech.snapshot import VoiceRef
from speech.speaking import Speaker, speak_sentence
from speech.text.tags import TagError
from speech.voices import Voices
from speech.wire import SpeechRequest
from svc_project.lib.drain import drain
from svc_project.lib.errors import (
    ApiError,
    ClientDisconnected,
    InternalError,
    InvalidField,
    ServerShuttingDown,
)
from svc_project.lib.fair_thread import FairThread
from svc_project.lib.logs import log_unexpected
from svc_project.lib.refused_requests import RefusedRequests
from usage.ledger import Ledger

log = logging.getLogger(__name__)

PIECES_AHEAD: Final = 8
"""Pieces of sound that an engine may be ahead of a slow reader; a piece is at most about a second."""

PROGRESS_SECONDS: Final = 1.0
"""How often a stream's figures are noted in the journal."""

LONGEST_FILE: Final = 30 * 60
"""Seconds of one complete file, 86 MB as PCM. The longest text takes about 18 minutes at the slowest
pace; figures and signs, written out, can take six times as long, and streams may."""

CHUNK_BYTES: Final = 64 * 1024
"""Of a complete file, as it is handed to the socket."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request that passed every check but limits. ``arrived`` is on the ``perf_counter`` clock."""

    request_id: str
    arrived: float
    principal: Principal
    request: SpeechRequest
    voice: VoiceRef
    characters: int
    """What is metered for the text."""

    @property
    def audio_format(self) -> AudioFormat:
        """The format of the answer."""
        return self.request.response_format


class Sink(Protocol):
    """Where the sound goes: the consumer's view of the client."""

    @property
    def gone(self) -> bool:
        """Whether the client has hung up."""

    @property
    def status(self) -> int | None:
        """The status that was sent, or None while nothing was."""

    def admit(self) -> None:
        """Count the request as in flight. Raises ``ServerOverloaded``."""

    def follow(self, synthesis: Synthesis) -> None:
        """``synthesis`` makes the answer from now on: stop it when the client leaves."""

    def prepare(self, meter: SpeechMeter, length: int | None) -> None:
        """The 200 and its headers, which leave with the first bytes; ``length`` is None for a stream."""

    async def send(self, sound: bytes) -> None:
        """Hand over some of the body; nothing when the client is gone."""

    async def finish(self, last: bytes) -> None:
        """Hand over the last bytes."""


@dataclass(frozen=True, slots=True)
class SpeechService:
    """What the story needs: voices, limits, engines, the ledger."""

    voices: Voices
    quota: SpeechQuota
    engines: Engines
    ledger: Ledger
    refused: RefusedRequests
    thread: FairThread
    """Reads long texts."""

    async def prepare(
        self, body: bytes, principal: Principal, request_id: str, arrived: float
    ) -> Call:
        """Check ``body`` and find the voice. Raises the ``ApiError`` of the first check that fails;
        ``QuotaExceeded`` before anything is read where too many requests were refused."""
        self.check_refused(principal)
        try:
            request = SpeechRequest.from_body(body)
            voice = await self.voices.resolve(request.voice, principal)
            with _input_named():
                characters = metered_characters(request.input)
        except ApiError as error:
            self.count_refused(principal, error, len(body))
            raise
        return Call(request_id, arrived, principal, request, voice, characters)

    def check_refused(self, principal: Principal) -> None:
        """Raise ``QuotaExceeded`` when too many of the organization's requests were refused."""
        limit = principal.speech_limits.requests_per_minute
        if (too_many := self.refused.too_many(principal.organization_id, limit)) is not None:
            raise refused_too_often(too_many)

    def count_refused(self, principal: Principal, error: ApiError, body_bytes: int = 0) -> None:
        """Count a request or a session that ``error`` refuses, if it was itself at fault."""
        limit = principal.speech_limits.requests_per_minute
        self.refused.count(principal.organization_id, limit, error, body_bytes)

    async def complete(self, call: Call, sink: Sink) -> None:
        """Admit, speak, write the row; the last bytes leave after it.

        Raises ``QuotaExceeded`` or ``ServerOverloaded`` when it is not admitted (no row is written then),
        or why it failed.
        """
        reserved = await self.quota.reserve(call.principal, call.characters)
        meter = SpeechMeter(_identity(call, reserved))
        try:
            script = await self._script(call)
            sink.admit()
            await self.ledger.admit_durably(meter.admitted())
        except BaseException as error:
            reserved.cancel()
            if isinstance(error, ApiError):
                self.count_refused(call.principal, error)
            raise
        synthesis = Synthesis(call, script, meter, self, reserved)
        failure = await self._run(call, synthesis, sink)
        try:
            await self.ledger.record(
                meter.receipt(failure, _http_status(failure, sink)), begun=sink.status is not None
            )
        except InternalError as error:
            failure = failure or error
        if failure is not None:
            self.count_refused(call.principal, failure)
            raise failure
        await sink.finish(synthesis.last)

    async def _script(self, call: Call) -> Script:
        """The sentences of the text: the costly part of reading it, so its units are taken before."""
        text = call.request.input
        with _input_named():
            if len(text) <= LONG_READING:
                return read_script(text)
            return await self.thread.run(call.principal.organization_id, partial(read_script, text))

    async def _run(self, call: Call, synthesis: Synthesis, sink: Sink) -> ApiError | None:
        """Speak, and charge for it; whatever happens, there is a row to write."""
        try:
            sink.follow(synthesis)
            failure = await synthesis.run(sink)
        except Exception as error:
            log_unexpected(log, call.request_id, error)
            failure = InternalError()
        if failure is None and sink.gone:
            failure = ClientDisconnected()
        try:
            synthesis.settle_characters(failure)
        except Exception as error:
            log_unexpected(log, call.request_id, error)
            failure = failure or InternalError()
        return failure

    def note(self, meter: SpeechMeter, every_seconds: float = 0.0) -> None:
        """Note in the journal how far a request has come, unless it was noted just before."""
        if (progress := meter.progress(every_seconds)) is not None:
            self.ledger.progress(progress)


class Synthesis:
    """One admitted request on its way; ``stop`` ends it early from outside."""

    def __init__(
        self,
        call: Call,
        script: Script,
        meter: SpeechMeter,
        service: SpeechService,
        reserved: Reserved,
    ) -> None:
        self._call = call
        self._script = script
        self._meter = meter
        self._service = service
        self._reserved = reserved
        self._stopped: ApiError | None = None
        self._task: asyncio.Task[None] | None = None
        self.last = b""
        """What is held back of the answer until the row is durable; never empty on success."""

    def stop(self, reason: ApiError) -> None:
        """End because of ``reason``: the engine is told to stop at once."""
        if self._stopped is None:
            self._stopped = reason
            if self._task is not None:
                self._task.cancel()

    async def run(self, sink: Sink) -> ApiError | None:
        """Speak into ``sink``; returns how it failed, or None. Never raises: there is a row to write."""
        if self._stopped is not None:
            return self._stopped
        self._task = asyncio.create_task(self._deliver(sink))
        while not self._task.done():
            try:
                await asyncio.wait({self._task})
            except asyncio.CancelledError:
                (own := asyncio.current_task()) and own.uncancel()
                self.stop(ServerShuttingDown() if drain.draining else ClientDisconnected())
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

    def settle_characters(self, failure: ApiError | None) -> None:
        """Charge the request, or give its characters back.

        Charged: what reached the client in part or whole, and what a client let be spoken before
        it left. A refusal by a full engine also gives the request unit back.
        """
        heard = self._meter.clock.first_audio is not None
        left = isinstance(failure, ClientDisconnected) and heard
        if failure is None or self._meter.pcm_bytes or left:
            self._charged()
        elif isinstance(failure, SpeechFull):
            self._reserved.cancel()
        else:
            self._reserved.give_back()

    def _charged(self) -> None:
        self._meter.characters = self._script.characters
        self._meter.sentences = self._meter.sentences or len(self._script.sentences)

    async def _deliver(self, sink: Sink) -> None:
        if self._call.audio_format is AudioFormat.PCM:
            await self._stream(sink)
        else:
            await self._whole(sink)

    async def _stream(self, sink: Sink) -> None:
        """Send sound as it comes, always one sample behind, so that the last byte waits for the row."""
        sink.prepare(self._meter, None)
        async with aclosing(run_ahead(self._sound(), PIECES_AHEAD)) as pieces:
            async for piece in pieces:
                ready, self.last = self.last + piece[:-SAMPLE_WIDTH], piece[-SAMPLE_WIDTH:]
                await sink.send(ready)
                if sink.gone:
                    return
                self._meter.pcm_bytes += len(ready)
                self._charged()
                self._service.note(self._meter, PROGRESS_SECONDS)
        self._meter.pcm_bytes += len(self.last)

    async def _whole(self, sink: Sink) -> None:
        pcm = await whole_sound(self._sound(), "input")
        encoded = await encode_in_thread(pcm, self._call.audio_format)
        sink.prepare(self._meter, len(encoded))
        end = (len(encoded) - 1) // CHUNK_BYTES * CHUNK_BYTES
        for at in range(0, end, CHUNK_BYTES):
            await sink.send(encoded[at : at + CHUNK_BYTES])
        self.last = encoded[end:]
        if not sink.gone:
            self._meter.pcm_bytes = len(pcm)

    async def _sound(self) -> AsyncGenerator[bytes, None]:
        call = self._call
        engine = self._service.engines.of(call.voice)
        speaker = Speaker(
            call.voice,
            engine,
            call.principal.organization_id,
            call.request.speed,
            call.request.instructions,
        )
        for sentence in self._script.sentences:
            spoken = speak_sentence(sentence, speaker, self._meter.clock)
            async with aclosing(spoken) as pieces:
                async for piece in pieces:
                    yield piece


async def whole_sound(pieces: AsyncGenerator[bytes, None], param: str) -> bytes:
    """All of ``pieces`` together, which are held in memory until they are encoded.

    Raises ``InvalidField`` for ``param`` when they last longer than ``LONGEST_FILE`` seconds.
    """
    held: list[bytes] = []
    left = LONGEST_FILE * SAMPLE_RATE * SAMPLE_WIDTH
    async with aclosing(pieces) as following:
        async for piece in following:
            left -= len(piece)
            if left < 0:
                raise InvalidField(
                    f"'{param}': spoken, this takes longer than {LONGEST_FILE // 60} minutes, the "
                    "most that one file may last. Send it in several pieces, or speak faster.",
                    param=param,
                )
            held.append(piece)
    return b"".join(held)


@contextmanager
def _input_named() -> Iterator[None]:
    """Tells of what is wrong with the tags of ``input`` as of a field."""
    try:
        yield
    except TagError as error:
        raise InvalidField(f"'input': {error}", param="input") from None


def _identity(call: Call, reserved: Reserved) -> Identity:
    return Identity(
        request_id=call.request_id,
        organization_id=call.principal.organization_id,
        api_key_id=call.principal.api_key_id,
        day=reserved.day,
        voice=call.voice,
        audio_format=call.audio_format,
        transport="http",
        arrived=call.arrived,
    )


def _http_status(failure: ApiError | None, sink: Sink) -> int:
    """What the row says the client was sent: 499 for one that left, 200 for a begun answer."""
    if isinstance(failure, ClientDisconnected):
        return failure.status
    return sink.status or (200 if failure is None else failure.status)
