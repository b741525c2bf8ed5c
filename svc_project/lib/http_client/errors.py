"""The failures of an exchange, named by what the server can have done with the request."""

from __future__ import annotations

import enum
from typing import ClassVar


class HttpError(Exception):
    """An exchange failed. No message holds a byte of the request or of the answer.

    ``may_have_run``: whether the server can have received the whole request and started on it.
    ``reused``: whether the connection had carried an earlier exchange.
    """

    may_have_run: ClassVar[bool] = True

    def __init__(self, message: str = "", *, reused: bool = False) -> None:
        super().__init__(message)
        self.reused = reused


class Obstacle(enum.Enum):
    """Why no connection could be made."""

    UNKNOWN_NAME = "unknown name"
    REFUSED = "refused or unreachable"
    TIMED_OUT = "timed out"
    TLS = "no TLS connection"


class NotConnected(HttpError):
    """No connection could be made. ``cause`` is the system's error, or that of TLS."""

    may_have_run = False

    def __init__(self, obstacle: Obstacle, cause: Exception | None = None) -> None:
        super().__init__(obstacle.value)
        self.obstacle = obstacle
        self.cause = cause


class NotSent(HttpError):
    """The connection ended before the whole request was handed to the system's socket."""

    may_have_run = False


class NoAnswer(HttpError):
    """The connection ended after the request was sent and before the first byte of an answer.

    On a reused connection the server had probably closed it while it was idle (RFC 9112, 9.3.1). That
    is no proof: a server that crashes on the request looks the same.
    """


class BrokenOff(HttpError):
    """The connection ended inside an answer: in its head, or before the end of its body."""


class ProtocolViolation(HttpError):
    """The server sent something else than an HTTP/1.1 answer within this client's bounds."""


class Phase(enum.Enum):
    """What an exchange waited for when its time was over."""

    SENDING = "sending the request"
    FIRST_BYTE = "the head of the answer"
    BODY = "the body of the answer"


class TimedOut(HttpError):
    """The deadline of the exchange passed; the connection is closed."""

    def __init__(self, phase: Phase, *, reused: bool = False) -> None:
        super().__init__(phase.value, reused=reused)
        self.phase = phase


class BodyTooLarge(HttpError):
    """The body is longer than the caller's bound; the connection is closed."""


class Closed(HttpError):
    """This side closed the answer or the client."""
