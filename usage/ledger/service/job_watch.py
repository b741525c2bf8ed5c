"""The writer's one running job, and what is done when it takes long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from django.conf import settings

_WATCH_SECONDS: Final = 1.0


class JobWatch:
    """Whether a job runs; belongs to one event loop.

    ``late`` is called when a job has taken ``SVC_LEDGER_ANSWER_SECONDS``, and again after as long
    if it returns True. ``look`` is called once a second while jobs run.
    """

    def __init__(self, late: Callable[[], bool], look: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._late = late
        self._look = look
        self._timer: asyncio.TimerHandle | None = None
        self._watch: asyncio.TimerHandle | None = None
        self.is_busy = False
        """Whether a job runs."""

    def begin(self) -> None:
        """A job begins."""
        self.is_busy = True
        self._time()
        if self._watch is None:
            self._watch = self._loop.call_later(_WATCH_SECONDS, self._look_after)

    def end(self) -> None:
        """The job has ended."""
        self.is_busy = False
        if self._timer is not None:
            self._timer.cancel()

    def close(self) -> None:
        """Watch no more."""
        self.end()
        if self._watch is not None:
            self._watch.cancel()

    def _time(self) -> None:
        seconds = settings.SVC_LEDGER_ANSWER_SECONDS
        self._timer = self._loop.call_later(seconds, self._timed_out)

    def _timed_out(self) -> None:
        if self.is_busy and self._late():
            self._time()

    def _look_after(self) -> None:
        self._watch = None
        if self.is_busy:
            self._look()
            self._watch = self._loop.call_later(_WATCH_SECONDS, self._look_after)
