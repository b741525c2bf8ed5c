"""The HTTP side of ``POST /v1/chat/completions``."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from django.conf import settings

from accounts.keys.consumer import KeyConsumer
from accounts.keys.principal import Principal
from accounts.models import Scope
from core.asgi.http import JSON_TYPE, Header
from core.asgi.sse import frame
from core.errors import (
    ApiError,
    error_body,
)
from core.sharing.places import in_flight
from inference.catalog.lifecycle import deprecation_headers
from inference.chat import captures
from inference.chat.service import ChatService

CAPTURE_HEADER = b"x-svc-diagnostic-capture"
CAPTURE_WORDS = frozenset({b"1", b"true", b"yes", b"on"})

STREAM_HEADERS: tuple[Header, ...] = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"connection", b"keep-alive"),
    (b"x-accel-buffering", b"no"),
)


class ChatCompletionsConsumer(KeyConsumer):
    """Authenticates, reads the body, and is the ``Sink`` of the answer: server-sent events, or one JSON body.

    The status 200 is sent with the first bytes, or with a comment before them. ``service`` returns the
    process's ``ChatService``.
    """

    body_seconds: ClassVar[float] = settings.SVC_BODY_SECONDS
    scopes = frozenset({Scope.INFERENCE})
    surface: ClassVar[str] = "inference"
    route: ClassVar[str] = "chat"

    def __init__(self, service: Callable[[], ChatService]) -> None:
        super().__init__()
        self._service = service
        self.lifecycle_headers: tuple[Header, ...] = ()
        """Headers of the model's answers, by its place in the catalog's lifecycle."""
        self._streamed = False

    async def answer_to(self, principal: Principal) -> None:
        chat = self._service()
        preparation = chat.preparation
        body = await self.read_body(preparation.catalog.snapshot.largest_request_bytes)
        if self.disconnected:
            return
        captured = (self.header(CAPTURE_HEADER) or b"").strip().lower() in CAPTURE_WORDS
        if captured and not principal.captures_allowed:
            captured = False
            captures.forbidden()
        call = await preparation.prepare(body, principal, self.request_id, self.arrived, captured)
        self.model = call.model.id
        self._streamed = bool(call.request.stream)
        if self.observed is not None:
            self.observed.model = call.model.id
            self.observed.streamed = self._streamed
        self.lifecycle_headers = deprecation_headers(call.model)
        end_watch = self.watch_client()
        try:
            await chat.complete(call, self)
        finally:
            end_watch()

    def admit(self) -> None:
        self.hold(in_flight)

    def conclude(self) -> None:
        """Do nothing: the head is sent with the first bytes of the answer alone."""

    async def send_comment(self, comment: bytes) -> None:
        if not self.started:
            headers = STREAM_HEADERS + self.lifecycle_headers
            await self.start(200, headers, is_answer=False)
        await self.send_body(comment, more=True)

    async def send_frames(self, frames: bytes) -> None:
        if not self.started:
            await self.start(200, STREAM_HEADERS + self.lifecycle_headers)
        await self.send_body(frames, more=True)

    async def finish(self, last: bytes) -> None:
        if not self.started:
            length = (b"content-length", str(len(last)).encode())
            headers = STREAM_HEADERS if self._streamed else (JSON_TYPE, length)
            await self.start(200, headers + self.lifecycle_headers)
        await self.send_body(last, more=False)

    async def fail(self, error: ApiError) -> None:
        if not self.started:
            raise error
        self.failure = error
        await self.send_body(frame(error_body(error)), more=False)
