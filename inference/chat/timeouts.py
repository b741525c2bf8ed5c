"""The timeouts of one exchange with a backend: for the first byte, between bytes, and in total."""

from __future__ import annotations

from typing import Final

from svc_project.lib.deadlines import Deadline

_CLOCK_SLACK: Final = 0.01


class ExchangeTimeouts(Deadline):
    """The timeouts of an exchange, which ends ``total`` seconds after it was made.

    What runs inside is cancelled when the current timeout expires (``Deadline``).
    """

    __slots__ = ("_total_due",)

    def __init__(self, total: float) -> None:
        super().__init__()
        self._total_due = self._loop.time() + total

    @property
    def total_expired(self) -> bool:
        return self._loop.time() >= self._total_due - _CLOCK_SLACK

    def wait_at_most(self, seconds: float) -> None:
        """Let the next wait take ``seconds``, or until the exchange must end if that is sooner."""
        self.due = min(self._loop.time() + seconds, self._total_due)

    def wait_until_deadline(self) -> None:
        """Let the next wait take as long as the exchange may."""
        self.due = self._total_due

    def end_within(self, seconds: float) -> None:
        """End the exchange at most ``seconds`` from now, with a wait that has begun."""
        now = self._loop.time()
        self._total_due = self.due = min(self._total_due, now + seconds)
        if self.due <= now:
            self._loop.call_soon(self.expire)
