"""One WebSocket session: text comes in, each sentence goes out as one complete file.

Three tasks run concurrently: read messages, speak and send sentences, check the key. Sentences are
spoken in order, at most two ahead of the one that is sent. When the process is about to end, the client
is told how long the session may still last.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from accounts.keys.principal import Principal
from core.asgi.drain import absorbed_cancellation
from core.asgi.websocket import SocketConsumer
from core.errors import ApiError, InternalError, InvalidField
from core.monitoring.logs import log_unexpected
from speech.errors import UnreadableText
from speech.quota.quota import Reserved
from speech.requests.http_request import SpeechService
from speech.requests.meter import SpeechMeter
from speech.requests.session_bounds import (
    Pace,
    SessionBounds,
    SessionIdle,
    SessionTooLong,
    is_read_aside,
)
from speech.requests.speaking import HeldSound, whole_sound
from speech.synthesis.prefetch import prefetch
from speech.synthesis.script import LONG_READING, ScriptReader, Sentence
from speech.synthesis.sentence import Speaker, read_sentence, speak_parts
from speech.text.tags import NothingToSpeak, TagError
from speech.wire import (
    LONGEST_SESSION,
    Cancel,
    Done,
    Flush,
    Start,
    Text,
    parse_message,
)

log = logging.getLogger(__name__)

KEY_SECONDS: Final = 0.5
"""How often the key of an open session is checked; a revoked key ends the session."""

_FRAMES_AHEAD: Final = 1
"""Spoken sentences that may wait to be sent, besides the one that is being spoken."""

CheckKey = Callable[[], Awaitable[Principal]]
"""Authenticates the key again and returns its owner. Raises ``InvalidCredential``."""


@dataclass(eq=False, slots=True)
class _Spoken:
    sentence: Sentence
    pieces: list[bytes]
    cloned: bool


class Session:
    """An admitted session; its principal is refreshed with each check of the key."""

    def __init__(
        self,
        service: SpeechService,
        socket: SocketConsumer,
        start: Start,
        meter: SpeechMeter,
        bounds: SessionBounds,
    ) -> None:
        self._service = service
        self._socket = socket
        self._start = start
        self._meter = meter
        self._bounds = bounds
        self._loop = asyncio.get_running_loop()
        self._reader = ScriptReader()
        self._sentences: asyncio.Queue[Sentence | None] = asyncio.Queue()
        """Sentences to speak, then None."""
        self._received = 0
        self._queued = 0
        self._unread = 0
        """Sentences that the voice could not read."""
        self._is_done = False
        self._active_at = self._loop.time()
        self._pace = Pace(bounds.messages_per_second)
        self._charged: list[Reserved] = []
        """Reservations of the sentences that were not sent yet, in order."""
        self._held = HeldSound(meter.identity.organization_id)

    @property
    def unspoken(self) -> int:
        """The characters that were received and not sent as sound."""
        return self._received - self._meter.characters

    async def run(self, principal: Principal, check_key: CheckKey, ready: str) -> ApiError | None:
        """Send ``ready``, then every sentence; return the failure or None.

        Never raises, because a row must be written. Characters of unsent sentences are refunded.
        """
        try:
            return await self._run(principal, check_key, ready)
        except Exception as error:
            log_unexpected(log, self._meter.identity.request_id, error)
            return InternalError()

    async def _run(self, principal: Principal, check_key: CheckKey, ready: str) -> ApiError | None:
        self._principal = principal
        delivering = asyncio.create_task(self._deliver(ready))
        others = [
            asyncio.create_task(self._listen()),
            asyncio.create_task(self._watch_key(check_key)),
        ]
        running = [delivering, *others]
        announcing = asyncio.create_task(self._announce_end())
        try:
            ends: list[asyncio.Future[Any]] = [*running, self._socket.stopping]
            longest = self._bounds.longest_seconds or None
            await asyncio.wait(ends, timeout=longest, return_when=asyncio.FIRST_COMPLETED)
            ended = next((part for part in running if part.done()), None)
            if ended is not None:
                return self._failure(ended)
            stopping = self._socket.stopping
            return stopping.result() if stopping.done() else SessionTooLong()
        except asyncio.CancelledError:
            return absorbed_cancellation()
        finally:
            for part in (*running, announcing):
                part.cancel()
            await asyncio.gather(*running, announcing, return_exceptions=True)
            for reserved in self._charged:
                reserved.refund_characters()
            self._held.release_all()

    def _failure(self, ended: asyncio.Task[None]) -> ApiError | None:
        error = ended.exception()
        if error is None or isinstance(error, ApiError):
            return error
        log_unexpected(log, self._meter.identity.request_id, error)
        return InternalError()

    # -- reading messages --------------------------------------------------------------------

    async def _listen(self) -> None:
        """Read messages until ``cancel``. Raises the ``ApiError`` that ends the session."""
        while True:
            message = parse_message(await self._next_message())
            if isinstance(message, Cancel):
                return
            if (early := self._pace.early(self._loop.time())) > 0:
                # Nothing is read meanwhile, which slows the client down (backpressure).
                await asyncio.sleep(early)
            if isinstance(message, Start):
                raise InvalidField("The session was started already. Send text.", param="type")
            if self._is_done:
                raise InvalidField("Only 'cancel' can follow 'done'.", param="type")
            try:
                await self._take(message)
            except TagError as error:
                raise InvalidField(f"'text': {error}", param="text") from None
            self._end_if_idle()

    async def _next_message(self) -> str:
        while True:
            due = None if self._is_done else self._active_at + self._bounds.idle_seconds
            try:
                async with asyncio.timeout_at(due):
                    return await self._socket.receive_text()
            except TimeoutError:
                self._end_if_idle()

    def _end_if_idle(self) -> None:
        """Raise ``SessionIdle`` after the idle timeout; messages without text do not reset it."""
        now = self._loop.time()
        if self._is_done or now < self._active_at + self._bounds.idle_seconds:
            return
        if self._queued == self._meter.sentences + self._unread:
            raise SessionIdle
        # The client may be waiting for sentences that it has already sent.
        self._active_at = now

    async def _take(self, message: Text | Flush | Done) -> None:
        if isinstance(message, Text):
            if message.text:
                self._active_at = self._loop.time()
            unspoken = self.unspoken
            self._received += len(message.text)
            if self._received > LONGEST_SESSION:
                raise InvalidField(
                    f"A session has at most {LONGEST_SESSION} characters of text. "
                    "Open another one for the rest.",
                    param="text",
                )
            self._queue(await self._read(message.text, unspoken))
            return
        self._queue(self._reader.flush())
        if isinstance(message, Done):
            if not self._queued:
                raise NothingToSpeak
            self._is_done = True
            self._sentences.put_nowait(None)

    async def _read(self, text: str, unspoken: int) -> list[Sentence]:
        """The sentences that ``text`` completed."""
        texts, organization_id = self._service.texts, self._principal.organization_id
        if len(text) > LONG_READING:
            self._reader, sentences = await texts.feed(self._reader, text, organization_id)
        elif is_read_aside(len(text), unspoken):
            # A client that sends short texts fast is not refused because many of them wait.
            self._reader, sentences = await texts.feed_in_turn(self._reader, text, organization_id)
        else:
            sentences = self._reader.feed(text)
        return sentences

    async def _announce_end(self) -> None:
        """Tell the client when the process is about to end; it may open the next session then."""
        await asyncio.wait([self._socket.draining])
        seconds = math.floor(self._socket.draining.result())
        message = {"type": "draining", "seconds": seconds}
        with contextlib.suppress(ApiError):
            await self._socket.send_text(msgspec.json.encode(message).decode())

    def _queue(self, sentences: list[Sentence]) -> None:
        if sentences:
            self._active_at = self._loop.time()
        self._queued += len(sentences)
        for sentence in sentences:
            self._sentences.put_nowait(sentence)

    # -- speaking ----------------------------------------------------------------------------

    async def _deliver(self, ready: str) -> None:
        """Send one file, or the error of an unreadable one, for each sentence, until the last."""
        audio_format = self._start.response_format
        await self._socket.send_text(ready)
        async with aclosing(prefetch(self._spoken(), _FRAMES_AHEAD)) as spoken:
            async for each in spoken:
                if isinstance(each, UnreadableText):
                    await self._socket.send_text(self._socket.error_message(each))
                    self._active_at = self._loop.time()
                    self._unread += 1
                    continue
                file = await self._service.encoders.encode(
                    each.pieces, audio_format, self._principal.organization_id
                )
                if each.cloned:
                    # The clone may have been deleted since its sentence was spoken.
                    await self._service.voices.resolve(self._start.voice, self._principal)
                await self._socket.send_bytes(b"".join(file))
                spoken_bytes = sum(map(len, each.pieces))
                self._held.release(spoken_bytes)
                self._active_at = self._loop.time()
                self._charged.pop(0)
                self._meter.characters += each.sentence.characters
                self._meter.sentences += 1
                self._meter.pcm_bytes += spoken_bytes
                self._service.report_progress(self._meter)

    async def _spoken(self) -> AsyncGenerator[_Spoken | UnreadableText, None]:
        while (sentence := await self._sentences.get()) is not None:
            principal = self._principal
            # Resolved for each sentence: a clone may have been deleted, a plan changed.
            voice = await self._service.voices.resolve(self._start.voice, principal)
            engine = self._service.engines.of(voice)
            manner = self._start.speed, self._start.instructions
            speaker = Speaker(
                voice, engine, self._service.texts, principal.organization_id, *manner
            )
            reserved = None
            try:
                # Before the charge, so that no limit refuses what is not charged.
                parts = await read_sentence(sentence, speaker)
                day = self._meter.identity.day
                reserved = await self._service.quota.charge(principal, sentence.characters, day)
                self._charged.append(reserved)
                spoken = speak_parts(parts, speaker, self._meter.clock)
                pieces = await whole_sound(spoken, "text", self._held)
            except UnreadableText as unread:
                if reserved is not None:
                    self._charged.pop().refund_characters()
                yield unread
                continue
            yield _Spoken(sentence, pieces, cloned=voice.clone is not None)

    async def _watch_key(self, check_key: CheckKey) -> None:
        """Check the key until it is revoked, then raise ``InvalidCredential``."""
        while True:
            await asyncio.sleep(KEY_SECONDS)
            self._principal = await check_key()
