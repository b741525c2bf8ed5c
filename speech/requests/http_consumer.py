"""``POST /v1/audio/speech``: HTTP in and out, nothing else."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import Any, ClassVar, Final

import msgspec
from django.conf import settings

from accounts.keys.consumer import KeyConsumer
from accounts.keys.principal import Principal
from accounts.models import Scope
from core.asgi.http import Header
from core.errors import (
    ApiError,
)
from core.sharing.places import in_flight
from speech.audio.encoding import AudioFormat
from speech.errors import RETRY_SOON, error_type, speech_error_body
from speech.requests.http_request import SpeechService
from speech.requests.meter import SpeechMeter
from speech.requests.speaking import Synthesis
from speech.synthesis.word_spans import TimedSentence
from speech.wire import LARGEST_BODY, StreamFormat

_EVENTS: Final = "text/event-stream; charset=utf-8"


class SpeechConsumer(KeyConsumer):
    """Authenticates before it reads the body, then answers through the sink that fits.

    ``service`` gives the process's ``SpeechService``.
    """

    body_seconds: ClassVar[float] = settings.SVC_BODY_SECONDS
    scopes = frozenset({Scope.SPEECH})
    surface: ClassVar[str] = "speech"
    route: ClassVar[str] = "speech"
    overload_headers = RETRY_SOON

    def __init__(self, service: Callable[[], SpeechService]) -> None:
        super().__init__()
        self._service = service

    async def answer_to(self, principal: Principal) -> None:
        speech = self._service()
        body = await self.read_body(LARGEST_BODY)
        if self.disconnected:
            return
        call = await speech.prepare(body, principal, self.request_id, self.arrived)
        end_watch = self.watch_client()
        by_events = call.request.stream_format is StreamFormat.SSE
        sink = (EventSink if by_events else SpeechSink)(self, call.audio_format)
        try:
            await speech.complete(call, sink)
        except ApiError as error:
            await sink.fail(error)
            raise
        finally:
            end_watch()

    def render_error(self, error: ApiError) -> bytes:
        return speech_error_body(error)


class SpeechSink:
    """Sends the bytes of one answer; the headers are sent with the first bytes."""

    def __init__(self, consumer: SpeechConsumer, audio_format: AudioFormat) -> None:
        self._consumer = consumer
        self._audio_format = audio_format
        self._meter: SpeechMeter | None = None
        self._length: int | None = None
        self.status: int | None = None

    @property
    def disconnected(self) -> bool:
        return self._consumer.disconnected

    @property
    def content_type(self) -> str:
        """The ``Content-Type`` of the answer."""
        return self._audio_format.content_type

    @property
    def content_length(self) -> int | None:
        """The length of the answer in bytes; None for a stream."""
        return self._length

    def admit(self) -> None:
        self._consumer.hold(in_flight)

    def follow(self, synthesis: Synthesis) -> None:
        self._consumer.follow(synthesis)

    def prepare(self, meter: SpeechMeter, length: int | None) -> None:
        self._meter, self._length = meter, length

    async def send(self, sound: bytes) -> None:
        if sound:
            await self._hand_over(sound, more=True)

    async def send_words(self, timed: TimedSentence) -> None:
        """Nothing: an answer without events has no place for words."""

    async def finish(self, last: bytes) -> None:
        await self._hand_over(last, more=False)

    async def fail(self, error: ApiError) -> None:
        """Report a failure after the headers were sent: here the body is left incomplete."""

    async def _hand_over(self, sound: bytes, *, more: bool) -> None:
        if self.status is None:
            self.status = 200
            await self._consumer.start(200, self._headers())
        await self._consumer.send_body(sound, more=more)

    def _headers(self) -> list[Header]:
        headers: list[Header] = [
            (b"content-type", self.content_type.encode()),
            (b"cache-control", b"no-store"),
        ]
        if self._meter is not None:
            streamed = self._length is None
            upstream = self._meter.first_upstream_ms if streamed else self._meter.upstream_ms
            headers += [
                (b"x-upstream-ms", str(upstream).encode()),
                (b"x-gateway-ms", str(max(upstream, self._meter.elapsed_ms)).encode()),
            ]
        if (length := self.content_length) is None:
            headers.append((b"x-accel-buffering", b"no"))
        else:
            headers.append((b"content-length", str(length).encode()))
        return headers


class EventSink(SpeechSink):
    """Sends the same bytes as server-sent events of the OpenAI-compatible convention.

    ``speech.audio.delta`` carries a piece in base64, ``speech.audio.timestamps`` the words of a
    sentence, if the client wants them, ``speech.audio.done`` the usage: the charged
    characters, in the place of tokens. The last piece is sent with it, after the row is durable.
    A failure after the first event is sent as an event.
    """

    @property
    def content_type(self) -> str:
        return _EVENTS

    @property
    def content_length(self) -> int | None:
        return None

    async def send(self, sound: bytes) -> None:
        if sound:
            await self._hand_over(_delta(sound), more=True)

    async def send_words(self, timed: TimedSentence) -> None:
        await self._hand_over(_event(timed.message("speech.audio.timestamps")), more=True)

    async def finish(self, last: bytes) -> None:
        charged = 0 if self._meter is None else self._meter.characters
        usage = {"input_tokens": charged, "output_tokens": 0, "total_tokens": charged}
        done = _event({"type": "speech.audio.done", "usage": usage})
        await self._hand_over(_delta(last) + done, more=False)

    async def fail(self, error: ApiError) -> None:
        if self.status is not None:
            shown = {"message": error.message, "type": error_type(error)}
            await self._hand_over(_event({"type": "error", "error": shown}), more=False)


def _delta(sound: bytes) -> bytes:
    return _event({"type": "speech.audio.delta", "audio": b64encode(sound).decode("ascii")})


def _event(content: dict[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(content) + b"\n\n"
