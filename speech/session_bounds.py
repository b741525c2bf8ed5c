"""What bounds a WebSocket session: silence, its length, and how fast messages are taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from svc_project.lib.errors import ApiError

BURST_SECONDS: Final = 10.0
"""How much of the steady rate a client may send at once, as when a whole text is cut into words."""


class SessionIdle(ApiError):
    """The client said nothing for too long."""

    status = 408
    type = "invalid_request_error"
    default_message = "Nothing was sent for too long. Send text or 'done'."


class SessionTooLong(ApiError):
    """The session reached the longest time that one may last."""

    status = 408
    type = "invalid_request_error"
    default_message = "The session lasted too long. Open another one for the rest."


@dataclass(frozen=True, slots=True)
class SessionBounds:
    """``idle_seconds`` without text, ``longest_seconds`` in all, messages taken a second.

    The last two may be 0 for no bound.
    """

    idle_seconds: float
    longest_seconds: float
    messages_per_second: float


class Pace:
    """Says when the next message may be taken: after a burst, at a steady rate.

    Times are in seconds on one clock, which the caller reads. At 0 a second there is no bound.
    """

    __slots__ = ("_due", "_interval")

    def __init__(self, per_second: float) -> None:
        self._interval = 1 / per_second if per_second else 0.0
        self._due = float("-inf")

    def early(self, now: float) -> float:
        """Count a message; returns how many seconds it is ahead of the burst, or less than 0."""
        self._due = max(self._due, now) + self._interval
        return self._due - now - BURST_SECONDS
