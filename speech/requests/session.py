"""One WebSocket session: text comes in, each sentence goes out as one complete file.

Three tasks run concurrently: read messages, speak and send sentences (``delivery``), check the key.
When the process is about to end, the client is told how long the session may still last.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from accounts.keys.principal import Principal
from core.asgi.drain import absorbed_cancellation
from core.asgi.websocket import SocketConsumer
from core.errors import ApiError, InternalError, InvalidField
from core.monitoring.logs import log_unexpected
from speech.requests.delivery import Delivery
from speech.requests.http_request import SpeechService
from speech.requests.meter import SpeechMeter
from speech.requests.session_bounds import (
    Pace,
    SessionBounds,
    SessionIdle,
    SessionTooLong,
    is_read_aside,
    refused_units,
)
from speech.synthesis.script import LONG_READING, ScriptReader, Sentence
from speech.text.tags import NothingToSpeak, TagError
from speech.wire import (
    LONGEST_SESSION,
    MOST_UTTERANCES,
    Cancel,
    Clear,
    Close,
    Done,
    Flush,
    Start,
    Text,
    parse_message,
)

log = logging.getLogger(__name__)

KEY_SECONDS: Final = 0.5
"""How often the key of an open session is checked; a revoked key ends the session."""

CheckKey = Callable[[], Awaitable[Principal]]
"""Authenticates the key again and returns its owner. Raises ``InvalidCredential``."""


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
        self._delivery = Delivery(service, socket, start, meter)
        self._reader = ScriptReader.of_session(takes_ssml=start.ssml)
        self._received = 0
        self._received_before = 0
        """Characters that were received before the utterance; 0 in a session of one utterance."""
        self._has_sentences = False
        self._is_done = False
        self._active_at = self._loop.time()
        self._pace = Pace(bounds.messages_per_second)
        self._units = 0
        """Refused requests that were counted for unspoken text."""

    @property
    def unspoken(self) -> int:
        """The characters that were received and not sent as sound."""
        return self._received - self._delivery.characters_sent

    def refused_units(self, failure: ApiError | None) -> int:
        """The refused requests to count for unspoken text when the session ended."""
        return max(0, refused_units(self.unspoken, failure) - self._units)

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
        self._principal = self._delivery.principal = principal
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
            self._delivery.drop()

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
                last = "close" if self._start.keep_open else "done"
                raise InvalidField(f"Only 'cancel' can follow '{last}'.", param="type")
            try:
                await self._take(message)
            except TagError as error:
                raise InvalidField(f"'text': {error}", param="text") from None
            self._end_if_idle()

    async def _next_message(self) -> str:
        while True:
            due = None if self._expects_no_text else self._active_since + self._bounds.idle_seconds
            try:
                async with asyncio.timeout_at(due):
                    return await self._socket.receive_text()
            except TimeoutError:
                self._end_if_idle()

    @property
    def _expects_no_text(self) -> bool:
        """Whether the session may be silent: after its text, and between two utterances."""
        return self._is_done or (self._start.keep_open and not self._in_utterance)

    @property
    def _in_utterance(self) -> int:
        """The characters of the utterance that were received."""
        return self._received - self._received_before

    @property
    def _active_since(self) -> float:
        return max(self._active_at, self._delivery.active_at)

    def _end_if_idle(self) -> None:
        """Raise ``SessionIdle`` after the idle timeout; messages without text do not reset it."""
        now = self._loop.time()
        if self._expects_no_text or now < self._active_since + self._bounds.idle_seconds:
            return
        if not self._delivery.sentences_waiting:
            raise SessionIdle
        # The client may be waiting for sentences that it has already sent.
        self._active_at = now

    async def _take(self, message: Text | Flush | Done | Clear | Close) -> None:
        match message:
            case Text(text):
                await self._take_text(text)
            case Flush():
                self._queue(self._reader.flush())
            case Done():
                self._end_utterance()
            case Clear() | Close() if not self._start.keep_open:
                raise InvalidField(
                    "'clear' and 'close' need 'keep_open': true in 'start'.", param="type"
                )
            case Clear():
                await self._clear()
            case Close():
                if self._in_utterance:
                    self._end_utterance()
                self._is_done = True
                self._delivery.end()

    async def _take_text(self, text: str) -> None:
        if text:
            self._active_at = self._loop.time()
        unspoken = self.unspoken
        self._received += len(text)
        if self._in_utterance > LONGEST_SESSION:
            what, advice = "A session", "Open another one for the rest."
            if self._start.keep_open:
                what, advice = "An utterance", "Send 'done', and the rest as the next one."
            raise InvalidField(
                f"{what} has at most {LONGEST_SESSION} characters of text. {advice}", param="text"
            )
        if self._delivery.characters_waiting + len(text) > LONGEST_SESSION:
            raise InvalidField(
                f"At most {LONGEST_SESSION} characters may wait to be spoken. "
                "Send the next utterance when 'utterance.done' has come.",
                param="text",
            )
        self._queue(await self._read(text, unspoken))

    def _end_utterance(self) -> None:
        self._queue(self._reader.end())
        if not self._start.keep_open:
            if not self._has_sentences:
                raise NothingToSpeak
            self._is_done = True
            self._delivery.end()
            return
        if self._delivery.utterances_waiting >= MOST_UTTERANCES:
            raise InvalidField(
                f"At most {MOST_UTTERANCES} utterances may wait to be spoken. "
                "Send the next one when 'utterance.done' has come.",
                param="type",
            )
        self._delivery.end_utterance()
        self._received -= self._reader.markup_after
        self._begin_utterance()
        self._count_unspoken()

    def _begin_utterance(self) -> None:
        self._reader = ScriptReader.of_session(takes_ssml=self._start.ssml)
        self._received_before = self._received

    async def _clear(self) -> None:
        """Drop what was not spoken."""
        self._begin_utterance()
        await self._delivery.clear()
        self._count_unspoken()

    def _count_unspoken(self) -> None:
        """Count text that was read and will not be spoken as refused requests: nothing else charges
        it. Raises ``QuotaExceeded`` when there are too many of them. What others were refused ends no
        conversation."""
        lost = self.unspoken - self._delivery.characters_waiting
        units = max(0, refused_units(lost, None) - self._units)
        if units:
            self._units += units
            self._service.count_unspoken(self._principal, units)
            self._service.check_refused(self._principal)

    async def _read(self, text: str, unspoken: int) -> list[Sentence]:
        """The sentences that ``text`` completed."""
        texts, organization_id = self._service.texts, self._principal.organization_id
        if len(text) > LONG_READING:
            self._reader, sentences = await texts.feed(self._reader, text, organization_id)
        elif len(text) + self._reader.held > LONG_READING or is_read_aside(len(text), unspoken):
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
        self._has_sentences = self._has_sentences or bool(sentences)
        self._delivery.add(sentences)

    async def _deliver(self, ready: str) -> None:
        await self._socket.send_text(ready)
        await self._delivery.run()

    async def _watch_key(self, check_key: CheckKey) -> None:
        """Check the key until it is revoked, then raise ``InvalidCredential``."""
        while True:
            await asyncio.sleep(KEY_SECONDS)
            self._principal = self._delivery.principal = await check_key()
