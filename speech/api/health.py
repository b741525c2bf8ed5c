"""``GET /health``: answered by the process itself, without the database (speech contract, Health)."""

from __future__ import annotations

import time
from typing import ClassVar

import msgspec

from core.asgi.drain import drain
from core.asgi.http import HttpConsumer
from core.errors import ApiError, MethodNotAllowed, ServerShuttingDown
from speech.errors import speech_error_body

_STARTED = time.monotonic()


class HealthConsumer(HttpConsumer):
    """Answers 200 while this process serves, 503 while it drains."""

    surface: ClassVar[str] = "speech"
    route: ClassVar[str] = "health"

    async def answer(self) -> None:
        if self.scope["method"] not in ("GET", "HEAD"):
            raise MethodNotAllowed("GET, HEAD")
        if drain.draining:
            raise ServerShuttingDown
        uptime = round(time.monotonic() - _STARTED, 3)
        await self.respond(
            200,
            msgspec.json.encode({"ok": True, "uptime_s": uptime}),
            [(b"cache-control", b"no-store")],
        )

    def render_error(self, error: ApiError) -> bytes:
        return speech_error_body(error)
