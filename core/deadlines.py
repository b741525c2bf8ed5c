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
        self.loop = loop
        self.running: set[Deadline] = set()
        self.is_ticking = False

    def start(self) -> None:
        self.is_ticking = True
        self.loop.call_later(_TICK_SECONDS, self._tick)

    def _tick(self) -> None:
        now = self.loop.time()
        for each in [each for each in self.running if each.due <= now]:
            each.expire()
        self.is_ticking = bool(self.running)
        if self.is_ticking:
            self.loop.call_later(_TICK_SECONDS, self._tick)


_wheels: WeakKeyDictionary[asyncio.AbstractEventLoop, _Wheel] = WeakKeyDictionary()
_latest: _Wheel | None = None
"""The wheel that was used last: a process mostly has one event loop."""


def _wheel_of(loop: asyncio.AbstractEventLoop) -> _Wheel:
    global _latest  # noqa: PLW0603
    wheel = _wheels.get(loop)
    if wheel is None:
        wheel = _wheels[loop] = _Wheel(loop)
    _latest = wheel
    return wheel


class Deadline:
    """A context manager like ``asyncio.timeout``, entered with a plain ``with``; once.

    What runs inside is cancelled when the deadline, ``seconds`` after it was made, has passed, and
    leaving it raises ``TimeoutError``.
    """

    __slots__ = ("_cancelling", "_is_expired", "_loop", "_task", "_wheel", "due")

    def __init__(self, seconds: float = inf) -> None:
        self._loop = loop = asyncio.get_running_loop()
        wheel = _latest
        self._wheel = wheel if wheel is not None and wheel.loop is loop else _wheel_of(loop)
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._is_expired = False
        self.due = loop.time() + seconds
        """When it expires, on the loop's clock; may be moved at any time."""

    def __enter__(self) -> Self:
        self._task = asyncio.current_task()
        assert self._task is not None  # noqa: S101  # coroutines run in tasks
        self._cancelling = self._task.cancelling()
        wheel = self._wheel
        wheel.running.add(self)
        if not wheel.is_ticking:
            wheel.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._wheel.running.discard(self)
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
