"""Watchers of an organization's requests, in any process, and their news.

Each process announces the organizations that it has watchers of to all processes, at once and then
every ``ROUND_SECONDS``; they publish the rows of these organizations until the announcement has
expired, so a process that dies is forgotten. Both go through the channel layer: in memory for one
process, through Redis for several. A message says only that requests have ended. One that is lost
costs seconds, because every watcher looks again from time to time (``usage.console.live.consumer``).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from channels.layers import get_channel_layer
from django.conf import settings

from usage.ledger.announcements import Ended, announcements

log = logging.getLogger(__name__)

ROUND_SECONDS: Final = 10.0
EXPIRY_SECONDS: Final = 30.0
"""How long an organization counts as watched after the last announcement."""
GATHER_SECONDS: Final = 0.25
"""How long rows gather before one message is sent for each organization."""
_CANCEL_SECONDS: Final = 0.5
"""How long ``close`` waits for a cancelled task before it cancels it again."""
LAYER_SECONDS: Final = 2.0
"""Timeout of the channel layer."""
MOST_WATCHED: Final = 1000
"""The most organizations that one process publishes for."""

_ALL: Final = "svc.live"
_CHANNEL: Final = "svc.live"


@dataclass(eq=False)
class Watcher:
    """One socket. ``news`` is set when rows of its organization and kind may have appeared."""

    organization_id: str
    is_speech: bool
    news: asyncio.Event = field(default_factory=asyncio.Event)


class LiveHub:
    """The watchers of one process; all methods belong to the event loop of ``start``."""

    def __init__(self) -> None:
        self.published = 0
        """Messages about rows that this process sent."""
        self._watchers: dict[str, set[Watcher]] = {}
        self._watched_until: dict[str, float] = {}
        self._ended: set[Ended] = set()
        self._has_ended = asyncio.Event()
        self._round_due = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._failing_until = 0.0
        self._layer: Any = None
        self._channel = ""

    @property
    def sees_all_rows(self) -> bool:
        """Whether rows of every process are published to this one."""
        is_shared = bool(settings.REDIS_URL) or settings.SVC_WORKERS == 1
        return is_shared and time.monotonic() > self._failing_until

    def start(self) -> None:
        """Listen to other processes and to this one's ledger."""
        self._layer = get_channel_layer()
        # They belong to the event loop, and a process may begin another one.
        self._channel, self._has_ended, self._round_due = "", asyncio.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()

        def rows_written(ended: frozenset[Ended]) -> None:
            with suppress(RuntimeError):  # the loop is closed: the process ends
                loop.call_soon_threadsafe(self._note, ended)

        announcements.listen(rows_written)
        self._tasks = [
            loop.create_task(self._repeat(self._receive)),
            loop.create_task(self._repeat(self._announce)),
            loop.create_task(self._repeat(self._publish)),
        ]

    async def close(self) -> None:
        """Stop listening and publishing."""
        announcements.listen(None)
        running = set(self._tasks)
        while running:
            for task in running:
                task.cancel()
            # A library on the way can take a cancellation for its own timeout, and lose it.
            _, running = await asyncio.wait(running, timeout=_CANCEL_SECONDS)
        if self._layer is not None and hasattr(self._layer, "close_pools"):
            with suppress(Exception):  # connections that were closed before
                await _answered(self._layer.close_pools())

    def enter(self, organization_id: str, *, is_speech: bool) -> Watcher:
        """Add a watcher, with news to begin with; ``leave`` removes it."""
        watcher = Watcher(organization_id, is_speech)
        watcher.news.set()
        self._watchers.setdefault(organization_id, set()).add(watcher)
        self._round_due.set()
        return watcher

    def leave(self, watcher: Watcher) -> None:
        """Remove ``watcher``; its organization counts as watched until that expires."""
        others = self._watchers[watcher.organization_id]
        others.discard(watcher)
        if not others:
            del self._watchers[watcher.organization_id]

    # -- rows of this process ----------------------------------------------------------------

    def _note(self, ended: frozenset[Ended]) -> None:
        self._ended |= ended
        self._has_ended.set()

    async def _publish(self) -> None:
        await self._has_ended.wait()
        await asyncio.sleep(GATHER_SECONDS)
        self._has_ended.clear()
        ended, self._ended = self._ended, set()
        by_organization: dict[str, list[bool]] = {}
        for each in ended:
            by_organization.setdefault(each.organization_id, []).append(each.is_speech)
        for organization_id, kinds in by_organization.items():
            message = {"type": "ended", "organization": organization_id, "speech": kinds}
            await _answered(self._layer.group_send(_group_of(organization_id), message))
            self.published += 1

    # -- messages of all processes -----------------------------------------------------------

    async def _announce(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(ROUND_SECONDS):
                await self._round_due.wait()
        self._round_due.clear()
        self._expire()
        if not self._channel:
            return
        # Joining again is cheap, and a Redis that lost its data learns of the groups.
        await _answered(self._layer.group_add(_ALL, self._channel))
        watched = list(self._watchers)
        for organization_id in watched:
            await _answered(self._layer.group_add(_group_of(organization_id), self._channel))
        if watched:
            message = {"type": "watched", "organizations": watched}
            await _answered(self._layer.group_send(_ALL, message))

    async def _receive(self) -> None:
        if not self._channel:
            self._channel = await _answered(self._layer.new_channel(_CHANNEL))
            self._round_due.set()
        message = await self._layer.receive(self._channel)
        if message["type"] == "watched":
            until = time.monotonic() + EXPIRY_SECONDS
            for organization_id in message["organizations"]:
                if organization_id in self._watched_until or (
                    len(self._watched_until) < MOST_WATCHED
                ):
                    self._watched_until[organization_id] = until
            announcements.organizations = frozenset(self._watched_until)
        elif message["type"] == "ended":
            for watcher in self._watchers.get(message["organization"], ()):
                if watcher.is_speech in message["speech"]:
                    watcher.news.set()

    def _expire(self) -> None:
        now = time.monotonic()
        left = {each: until for each, until in self._watched_until.items() if until > now}
        if len(left) < len(self._watched_until):
            self._watched_until = left
            announcements.organizations = frozenset(left)

    async def _repeat(self, step: Callable[[], Awaitable[None]]) -> None:
        """Repeat ``step`` for ever; wait a round after a failure of the channel layer."""
        while True:
            try:
                await step()
            except Exception as error:
                log.warning("live requests: the channel layer failed: %s", type(error).__name__)
                self._failing_until = time.monotonic() + 2 * ROUND_SECONDS
                await asyncio.sleep(ROUND_SECONDS)


async def _answered(call: Awaitable[Any]) -> Any:
    """The result of a call to the channel layer. Raises ``TimeoutError``."""
    async with asyncio.timeout(LAYER_SECONDS):
        return await call


def _group_of(organization_id: str) -> str:
    return f"{_ALL}.{organization_id}"


hub = LiveHub()
"""The hub of this process."""
