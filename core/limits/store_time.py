"""The timeout of the limit store, which a busy worker does not use up."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Final

_LATE_SECONDS: Final = 0.01
"""A timer that runs so late says that the event loop did not run."""
_LONGEST_SECONDS: Final = 1.0
"""The longest wait of a call on a busy host, unless the timeout itself is longer."""


class StoreTime:
    """An asynchronous context that raises ``TimeoutError`` when the store has had ``seconds`` to answer.

    Time in which the event loop did not run is not the store's: its answer may have arrived
    meanwhile, and is only read in the turn that ends the timeout. So a timeout that expires late begins
    again, as often as that happens and up to ``_LONGEST_SECONDS`` in all.
    """

    __slots__ = ("_due", "_latest", "_limit", "_loop", "_seconds", "_timer")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._limit = asyncio.timeout(None)

    async def __aenter__(self) -> None:
        await self._limit.__aenter__()
        now = self._loop.time()
        self._due = now + self._seconds
        self._latest = now + max(self._seconds, _LONGEST_SECONDS)
        self._timer = self._loop.call_at(self._due, self._expire)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        await self._limit.__aexit__(kind, error, trace)

    def _expire(self) -> None:
        now = self._loop.time()
        if now - self._due > _LATE_SECONDS and now < self._latest:
            self._due = now + self._seconds
            self._timer = self._loop.call_at(self._due, self._expire)
        else:
            self._limit.reschedule(now)
