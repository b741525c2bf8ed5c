"""The limits of a WebSocket session: idle time, duration, and messages a second."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from core.errors import ApiError
from core.limits.buckets import Bucket
from speech.synthesis.script import LONG_READING, SHORT_READING

BURST_SECONDS: Final = 10.0
"""Seconds of the steady rate that a client may send at once, such as a text word by word."""


UNSPOKEN_PER_UNIT: Final = 2000
"""Characters that were received and never spoken, which count as one refused request."""


class SessionIdle(ApiError):
    """The client sent no text within the idle timeout."""

    status = 408
    type = "invalid_request_error"
    default_message = "The session was idle for too long. Send text or 'done'."
    cause = "A WebSocket session got no text for too long."
    cure = "Send text as it comes, and `done` at its end; open sessions only when there is text."


class SessionTooLong(ApiError):
    """The session reached its longest duration."""

    status = 408
    type = "invalid_request_error"
    default_message = "The session lasted too long. Open another one for the rest."
    cause = "A WebSocket session reached its longest duration."
    cure = "Open another one for the rest."


@dataclass(frozen=True, slots=True)
class SessionBounds:
    """Timeouts in seconds, without text and in all, and the messages read a second.

    The last two may be 0 for no limit.
    """

    idle_seconds: float
    longest_seconds: float
    messages_per_second: float


def is_read_aside(characters: int, unspoken: int) -> bool:
    """Whether a text that is not long is read in the text process all the same, in a session that
    received ``unspoken`` characters before it that were not spoken yet.

    Those may never be spoken, and then nothing charges their reading. So a session gets little of
    the event loop in advance: texts until it has as much waiting as one long text.
    """
    return characters > SHORT_READING and unspoken >= LONG_READING


def refused_units(unspoken: int, failure: ApiError | None) -> int:
    """The refused requests that a session counts for ``unspoken`` characters when it ended.

    A remainder that an interrupted answer leaves counts nothing, nor a failure of the server.
    """
    if failure is not None and failure.status >= 500:
        return 0
    return unspoken // UNSPOKEN_PER_UNIT


class Pace:
    """A bucket of messages that delays and never refuses: a burst, then a steady rate.

    The caller passes times in seconds of one clock. At 0 a second there is no limit.
    """

    __slots__ = ("_bucket", "_interval")

    def __init__(self, per_second: float) -> None:
        self._interval = 1 / per_second if per_second else 0.0
        self._bucket = Bucket(float("-inf"), 1)
        """Holds seconds: those at the steady rate that the messages were ahead of their time."""

    def early(self, now: float) -> float:
        """Count a message; return the seconds to wait before it is handled, if above 0."""
        self._bucket.used = used = self._bucket.drain(now, 1) + self._interval
        return used - BURST_SECONDS
