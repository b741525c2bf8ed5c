"""The WebSocket of the console's list of requests: it says when to read the newer rows."""

from __future__ import annotations

import asyncio
import time
from typing import Any, ClassVar, Final
from urllib.parse import parse_qs

import msgspec

from accounts.console.sessions import SessionEnded, sessions
from accounts.models import Scope
from core.asgi.drain import drain
from core.asgi.websocket import SocketConsumer
from core.errors import ApiError, InvalidField, ServerShuttingDown
from core.sharing.places import watching
from usage.console.live.hub import Watcher, hub
from usage.console.query_string import SPEECH

CHECK_SECONDS: Final = 15.0
"""How often session and membership are checked; the page then reads newer rows in any case."""
LOOK_SECONDS: Final = 5.0
"""How often the page reads newer rows when this process does not learn of all rows."""
LEAST_SECONDS: Final = 1.0
"""The least time between two messages."""

_NEWS: Final = '{"type":"ended"}'
_CLOSE_CODES: Final[dict[type[ApiError], int]] = {
    SessionEnded: 4401,
    InvalidField: 4400,
    ServerShuttingDown: 1012,
}


class LiveRequestsConsumer(SocketConsumer):
    """One page that is watched, by a member of the organization that the query names.

    Rows are never sent here: the page reads them with its own filters, by session. The socket ends
    with the session and with the membership.
    """

    surface: ClassVar[str] = "inference"
    route: ClassVar[str] = "live_requests"
    largest_message: ClassVar[int] = 1024

    async def converse(self) -> None:
        query = parse_qs(self.scope["query_string"].decode("latin-1"))
        self._asked = query.get("organization", [""])[0]
        if drain.draining:
            raise ServerShuttingDown
        await self._check_session()
        self.owner = self._asked
        self.hold(watching)
        watcher = hub.enter(self.owner, is_speech=query.get("surface") == [SPEECH])
        try:
            await self.accept()
            await self._watch(watcher)
        finally:
            hub.leave(watcher)

    async def _check_session(self) -> None:
        """Raises ``SessionEnded``, also when the query names no organization of the person."""
        principal = await sessions.principal_of(self.scope, Scope.READ)
        if principal.organization_id != self._asked:
            raise SessionEnded

    async def _watch(self, watcher: Watcher) -> None:
        """Send a message for the news of each second. Raises ``ApiError`` at the end."""
        receiving = asyncio.ensure_future(self.receive_text())
        checked = time.monotonic()
        try:
            while True:
                seconds = CHECK_SECONDS if hub.sees_all_rows else LOOK_SECONDS
                await self._wait(seconds, receiving, watcher)
                if time.monotonic() - checked > CHECK_SECONDS:
                    await self._check_session()
                    checked = time.monotonic()
                watcher.news.clear()
                await self.send_text(_NEWS)
                await self._wait(LEAST_SECONDS, receiving)
        finally:
            receiving.cancel()

    async def _wait(
        self, seconds: float, receiving: asyncio.Future[str], watcher: Watcher | None = None
    ) -> None:
        """Wait for news of ``watcher``, for ``seconds`` at most. Raises what ends the socket."""
        news = [asyncio.ensure_future(watcher.news.wait())] if watcher is not None else []
        ends: list[asyncio.Future[Any]] = [receiving, self.draining, *news]
        try:
            await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in news:
                each.cancel()
        if receiving.done():
            receiving.result()
            raise InvalidField("This WebSocket accepts no messages.")
        if self.draining.done():
            # The page opens another one, at a process that stays.
            raise ServerShuttingDown

    def error_message(self, error: ApiError) -> str:
        return msgspec.json.encode({"type": "error", "message": error.message}).decode()

    def close_code(self, error: ApiError) -> int:
        return next((code for kind, code in _CLOSE_CODES.items() if isinstance(error, kind)), 1011)
