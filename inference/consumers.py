"""``POST /v1/chat/completions``: HTTP in and out, nothing else."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings

from accounts.keyring import authorization, keyring
from accounts.models import Scope
from inference import captures
from inference.exchange import Exchange
from inference.service import service
from svc_project.lib.drain import drain
from svc_project.lib.errors import (
    ApiError,
    MethodNotAllowed,
    ServerShuttingDown,
    error_body,
)
from svc_project.lib.http import Header, HttpConsumer
from svc_project.lib.places import in_flight
from svc_project.lib.sse import frame

SCOPES = frozenset({Scope.INFERENCE})
CAPTURE_HEADER = b"x-svc-diagnostic-capture"
CAPTURE_WORDS = frozenset({b"1", b"true", b"yes", b"on"})

STREAM_HEADERS: tuple[Header, ...] = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"connection", b"keep-alive"),
    (b"x-accel-buffering", b"no"),
)


class ChatCompletionsConsumer(HttpConsumer):
    """Authenticates before it reads the body, then tells the story with the sink that fits."""

    body_seconds: ClassVar[float] = settings.SVC_BODY_SECONDS

    async def answer(self) -> None:
        if self.scope["method"] != "POST":
            raise MethodNotAllowed("POST")
        principal = await keyring.authenticate(
            authorization(self.scope["headers"]), SCOPES, self.scope
        )
        if drain.draining:
            raise ServerShuttingDown
        self.owner = principal.organization_id
        chat = service()
        body = await self.read_body(chat.catalog.snapshot.largest_request_bytes)
        if self.gone:
            return
        captured = (self.header(CAPTURE_HEADER) or b"").strip().lower() in CAPTURE_WORDS
        if captured and not principal.captures_allowed:
            captured = False
            captures.forbidden()
        call = await chat.prepare(body, principal, self.request_id, self.arrived, captured)
        watch = self.watch_client()
        try:
            await chat.complete(call, StreamSink(self) if call.request.stream else BodySink(self))
        finally:
            watch.cancel()


class _ConsumerSink:
    """What both sinks share: the consumer's view of the client."""

    def __init__(self, consumer: ChatCompletionsConsumer) -> None:
        self._consumer = consumer
        self.status: int | None = None

    @property
    def gone(self) -> bool:
        return self._consumer.gone

    @property
    def backed_up(self) -> bool:
        return self._consumer.backed_up

    def admit(self) -> None:
        self._consumer.hold(in_flight)

    def follow(self, exchange: Exchange) -> None:
        self._consumer.follow(exchange)


class StreamSink(_ConsumerSink):
    """Server-sent events; the 200 leaves with the first frame."""

    async def send(self, frames: bytes) -> None:
        await self._begin()
        await self._consumer.send_body(frames, more=True)

    async def finish(self, last: bytes) -> None:
        await self._begin()
        await self._consumer.send_body(last, more=False)

    async def fail(self, error: ApiError) -> None:
        if self.status is None:
            raise error
        self._consumer.failure = error
        await self._consumer.send_body(frame(error_body(error)), more=False)

    async def _begin(self) -> None:
        if self.status is None:
            self.status = 200
            await self._consumer.start(200, STREAM_HEADERS)


class BodySink(_ConsumerSink):
    """One JSON body."""

    async def send(self, frames: bytes) -> None:
        raise TypeError("A whole answer has no frames.")

    async def finish(self, last: bytes) -> None:
        self.status = 200
        await self._consumer.respond(200, last)

    async def fail(self, error: ApiError) -> None:
        raise error
