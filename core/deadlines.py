"""Deadlines of what runs on an event loop, without a timer for each.

A timer for each would cost several microseconds a request. One timer for all deadlines of a loop
checks, ``_TICK_SECONDS`` apart, which are due; setting a deadline is then an assignment.
"""

from __future__ import annotations

import asyncio
from math import inf
from types import TracebackType
from typing import Final, Self
from weakref import WeakKeyDictionary

_TICK_SECONDS: Final = 0.02
"""A deadline expires at most so much late."""


class _Wheel:
    """The deadlines in use on one event loop; its timer runs while there are any."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._running: set[Deadline] = set()
        self._is_ticking = False

    def add(self, deadline: Deadline) -> None:
        self._running.add(deadline)
        if not self._is_ticking:
            self._is_ticking = True
            self._loop.call_later(_TICK_SECONDS, self._tick)

    def remove(self, deadline: Deadline) -> None:
        self._running.discard(deadline)

    def _tick(self) -> None:
        now = self._loop.time()
        for each in [each for each in self._running if each.due <= now]:
            each.expire()
        self._is_ticking = bool(self._running)
        if self._is_ticking:
            self._loop.call_later(_TICK_SECONDS, self._tick)


_wheels: WeakKeyDictionary[asyncio.AbstractEventLoop, _Wheel] = WeakKeyDictionary()


class Deadline:
    """A context manager like ``asyncio.timeout``, entered with a plain ``with``; once.

    What runs inside is cancelled when the deadline, ``seconds`` after it was made, has passed, and
    leaving it raises ``TimeoutError``.
    """

    __slots__ = ("_cancelling", "_is_expired", "_loop", "_task", "due")

    def __init__(self, seconds: float = inf) -> None:
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._is_expired = False
        self.due = self._loop.time() + seconds
        """When it expires, on the loop's clock; may be moved at any time."""

    def __enter__(self) -> Self:
        self._task = asyncio.current_task()
        assert self._task is not None  # noqa: S101  # coroutines run in tasks
        self._cancelling = self._task.cancelling()
        self._wheel().add(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._wheel().remove(self)
        task, self._task = self._task, None
        if (
            self._is_expired
            and task is not None
            and task.uncancel() <= self._cancelling
            and kind is asyncio.CancelledError
        ):
            raise TimeoutError from error

    def expire(self) -> None:
        """Cancel what runs inside, once, if it still runs and is due."""
        if self._task is not None and not self._is_expired and self.due <= self._loop.time():
            self._is_expired = True
            self._task.cancel()

    def _wheel(self) -> _Wheel:
        wheel = _wheels.get(self._loop)
        if wheel is None:
            wheel = _wheels[self._loop] = _Wheel(self._loop)
        return wheel
