"""The sound of one WebSocket session: its sentences are spoken in order and sent, a file each.

Sentences are spoken at most two ahead of the one that is sent. ``clear`` drops those that were not
sent; a frame that is being sent by then counts as spoken.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import msgspec

from accounts.keys.principal import Principal
from core.asgi.websocket import SocketConsumer
from speech.engines import SpokenWord
from speech.errors import UnreadableText
from speech.quota.quota import Reserved
from speech.requests.http_request import SpeechService, require_word_times
from speech.requests.meter import SpeechMeter
from speech.requests.speaking import HeldSound, whole_sound
from speech.synthesis.prefetch import prefetch
from speech.synthesis.script import Sentence
from speech.synthesis.sentence import Speaker, read_sentence, speak_parts
from speech.synthesis.word_spans import TimedSentence, TimedWord, timed_words
from speech.text.pronunciations import Growth
from speech.wire import Start

_FRAMES_AHEAD: Final = 1
"""Spoken sentences that may wait to be sent, besides the one that is being spoken."""


class _End(Enum):
    """What ends after the sentences that were added before."""

    UTTERANCE = 1
    SESSION = 2


@dataclass(eq=False, slots=True)
class _Spoken:
    sentence: Sentence
    pieces: list[bytes]
    cloned: bool
    words: list[TimedWord] | None
    """The times of its words; None unless the client wants them."""


@dataclass(eq=False, slots=True)
class _Unread:
    """A sentence that the voice cannot speak."""

    sentence: Sentence
    error: UnreadableText


class Delivery:
    """Speaks the sentences that are added, and sends them.

    ``principal`` is the owner of the session's key as last checked. Belongs to one event loop.
    """

    def __init__(
        self, service: SpeechService, socket: SocketConsumer, start: Start, meter: SpeechMeter
    ) -> None:
        self._service = service
        self._socket = socket
        self._start = start
        self._meter = meter
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[Sentence | _End] = asyncio.Queue()
        self._charged: list[Reserved] = []
        """Reservations of the sentences that were not sent yet, in order."""
        self._held = HeldSound(meter.identity.organization_id)
        self._sending: asyncio.Task[None] | None = None
        self._frame = asyncio.Lock()
        """Held while a message is sent, which nothing interrupts."""
        self._resumed = asyncio.Event()
        self._growth = Growth()
        self._spoken: list[str] = []
        """The texts of the utterance's sentences that were sent, as they are metered."""
        self.principal: Principal
        self.sentences_waiting = 0
        """Sentences that were added and neither sent nor found unreadable."""
        self.characters_waiting = 0
        """Their characters as received."""
        self.characters_sent = 0
        """Those of the sentences that were sent."""
        self.utterances_waiting = 0
        """Ends of utterances that were added and not reported."""
        self.active_at = self._loop.time()
        """The loop's time of the last sentence or message."""

    def add(self, sentences: list[Sentence]) -> None:
        """Speak ``sentences`` after the earlier ones."""
        if sentences:
            self.active_at = self._loop.time()
        for sentence in sentences:
            self.sentences_waiting += 1
            self.characters_waiting += sentence.received_characters
            self._queue.put_nowait(sentence)

    def end_utterance(self) -> None:
        """Send ``utterance.done`` after the sentences that were added."""
        self.utterances_waiting += 1
        self._queue.put_nowait(_End.UTTERANCE)

    def end(self) -> None:
        """Let ``run`` return after the sentences that were added."""
        self._queue.put_nowait(_End.SESSION)

    async def run(self) -> None:
        """Send each sentence until ``end``. Raises the ``ApiError`` that ends the session."""
        while True:
            self._resumed.clear()
            sending = self._sending = asyncio.create_task(self._send_all())
            try:
                await asyncio.wait({sending})
            finally:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
            if not sending.cancelled():
                return sending.result()
            await self._resumed.wait()

    async def clear(self) -> None:
        """Drop what was not sent and refund it; send ``cleared`` with what the utterance has spoken.

        Then the next sentences can be added. Does nothing when the session failed meanwhile.
        """
        async with self._frame:
            sending = self._sending
            if sending is not None:
                sending.cancel()
                await asyncio.wait({sending})
                if not sending.cancelled():
                    return
            self.drop()
            text = "".join(self._spoken)
            await self._report("cleared", text=text)
            self._resumed.set()

    def drop(self) -> None:
        """Forget the sentences that were not sent; refund their characters."""
        while not self._queue.empty():
            self._queue.get_nowait()
        for reserved in self._charged:
            reserved.refund_characters()
        self._charged.clear()
        self._held.release_all()
        self._growth.forget()
        self._sending = None  # the traceback of its error refers to this object
        self.sentences_waiting = self.characters_waiting = self.utterances_waiting = 0

    async def _send_all(self) -> None:
        """Send one file, or the error of an unreadable one, for each sentence, until the last."""
        async with aclosing(prefetch(self._speak_all(), _FRAMES_AHEAD)) as spoken:
            async for each in spoken:
                if isinstance(each, _Spoken):
                    await self._send(each)
                    continue
                async with self._frame:
                    await self._send_other(each)

    async def _send(self, spoken: _Spoken) -> None:
        sentence = spoken.sentence
        file = await self._service.encoders.encode(
            spoken.pieces, self._start.response_format, self.principal.organization_id
        )
        async with self._frame:
            if spoken.cloned:
                # The clone may have been deleted since its sentence was spoken.
                await self._service.voices.resolve(self._start.voice, self.principal)
            if spoken.words is not None:
                timed = TimedSentence(self._meter.sentences, spoken.words).message("timestamps")
                await self._socket.send_text(msgspec.json.encode(timed).decode())
            await self._socket.send_bytes(b"".join(file))
            spoken_bytes = sum(map(len, spoken.pieces))
            self._held.release(spoken_bytes)
            self._charged.pop(0)
            self._finished(sentence)
            if self._start.keep_open:
                self._spoken.append(sentence.metered_text)
            self.characters_sent += sentence.received_characters
            self._meter.characters += sentence.characters
            self._meter.sentences += 1
            self._meter.pcm_bytes += spoken_bytes
            self._service.report_progress(self._meter)

    async def _send_other(self, each: _Unread | _End) -> None:
        """Send what stands in the place of a frame, or after the last one."""
        if isinstance(each, _Unread):
            await self._socket.send_text(self._socket.error_message(each.error))
            self._finished(each.sentence)
            return
        self.utterances_waiting -= 1
        await self._report("utterance.done")

    async def _report(self, kind: str, **more: Any) -> None:
        """Send what the utterance has spoken and charged; the next one begins."""
        characters = sum(map(len, self._spoken))
        spoken = {"type": kind, "sentences": len(self._spoken), "characters": characters, **more}
        self._spoken.clear()
        await self._socket.send_text(msgspec.json.encode(spoken).decode())
        self.active_at = self._loop.time()

    def _finished(self, sentence: Sentence) -> None:
        self.active_at = self._loop.time()
        self.sentences_waiting -= 1
        self.characters_waiting -= sentence.received_characters

    async def _speak_all(self) -> AsyncGenerator[_Spoken | _Unread | _End, None]:
        while (each := await self._queue.get()) is not _End.SESSION:
            yield await self._speak(each) if isinstance(each, Sentence) else each

    async def _speak(self, sentence: Sentence) -> _Spoken | _Unread:
        principal = self.principal
        # Resolved for each sentence: a clone may have been deleted, a plan changed.
        voice = await self._service.voices.resolve(self._start.voice, principal)
        began = self._meter.identity.voice
        if began.is_neural:
            # By the engine with which the session began; a clone also with the mix.
            voice = began if began.clone is not None else voice.as_neural()
        speaker = Speaker(
            voice,
            self._service.engines.of(voice),
            self._service.texts,
            principal.organization_id,
            self._start.speed,
            self._start.instructions,
            is_interactive=self._start.keep_open,
            growth=self._growth,
            request_id=self._meter.identity.request_id,
            lexicon=await self._service.pronunciations.of(voice, principal.organization_id),
        )
        words: list[SpokenWord] | None = None
        if self._start.timestamps is not None:
            require_word_times(voice)
            words = []
        reserved = None
        try:
            # Before the charge, so that no limit refuses what is not charged.
            parts = await read_sentence(sentence, speaker)
            day = self._meter.identity.day
            reserved = await self._service.quota.charge(principal, sentence.characters, day)
            self._charged.append(reserved)
            spoken = speak_parts(parts, speaker, self._meter.clock, words)
            pieces = await whole_sound(spoken, "text", self._held)
        except UnreadableText as unread:
            self._growth.forget()
            if reserved is not None:
                self._charged.pop().refund_characters()
            return _Unread(sentence, unread)
        timed = None if words is None else await timed_words(sentence, words, 0.0, speaker)
        return _Spoken(sentence, pieces, voice.clone is not None, timed)
