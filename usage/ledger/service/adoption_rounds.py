"""When to adopt what dead processes left, and what the last round found."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from django.conf import settings

from usage.ledger.writer import Adopted, LedgerWriter

_ROUND_SECONDS: Final = 15.0
_REFUSED_SECONDS: Final = 300.0


class AdoptionRounds:
    """A round is due at once, and then every 15 seconds; belongs to one event loop.

    ``wake`` is called when a round is due. Rows that the database refused are retried in the first
    round and every 5 minutes.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._wake = wake
        self._refused_tried_at = float("-inf")
        self.is_going_on = False
        """Whether a round is due or has begun; its next step is ``step``."""
        self.rows_written = 0
        """Rows of other processes that the rounds wrote to the database."""
        self.refused_waiting = 0
        """Rows in files that the database refuses: as of the last retry, plus those found since."""
        self.unreadable_files: frozenset[str] = frozenset()
        """Files that the last round could not adopt."""
        self.others_admit = False
        """Whether other processes had admissions in the database in the last round."""
        self._timer: asyncio.Handle = self._loop.call_soon(self._begin)

    def step(self, writer: LedgerWriter, done: Callable[[], None]) -> None:
        """Give the writer the next step of the round; ``done`` is called after it."""
        refused_too = time.monotonic() - self._refused_tried_at > _REFUSED_SECONDS

        def adopted(result: Adopted) -> None:
            if result.over:
                self._end(result, refused_too=refused_too)
            done()

        writer.adopt(adopted, refused_too=refused_too)

    def close(self) -> None:
        """Begin no further round."""
        self.is_going_on = False
        self._timer.cancel()

    def _begin(self) -> None:
        self.is_going_on = True
        seconds = min(_ROUND_SECONDS, settings.SVC_ADMISSION_LEASE_SECONDS / 2)
        self._timer = self._loop.call_later(seconds, self._begin)
        self._wake()

    def _end(self, result: Adopted, *, refused_too: bool) -> None:
        self.is_going_on = False
        self.rows_written += result.found.new
        self.unreadable_files = frozenset(result.found.unreadable)
        self.others_admit = result.found.others_admit
        if refused_too:
            self._refused_tried_at = time.monotonic()
            self.refused_waiting = 0
        self.refused_waiting += result.found.refused_rows
