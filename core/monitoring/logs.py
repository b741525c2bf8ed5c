"""Log filters. Logs carry ids, counts and code locations, never content of a request."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from core.monitoring.current_request import current_id

MOST_A_MINUTE: Final = 10
"""The most lines of one kind in a minute."""

LOUD: Final = ("django.", "uvicorn.", "svc_project.gate.", "core.api.views")
"""Prefixes of the loggers that any client can cause to write."""

SHARED: Final = ("usage.ledger.", "core.limits.")
"""Prefixes of the loggers of what works for all requests; one of them only happens to run it."""

_MINUTE = 60.0
_MOST_KINDS = 1000


class WithheldError(Exception):
    """Replaces in a log an exception whose message could carry content."""


class RequestFormatter(logging.Formatter):
    """Begins each message that is written for a request with the request's id.

    One ``grep`` for an id then finds all lines of its request, those of tracebacks apart.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # of the base
        request_id = "" if record.name.startswith(SHARED) else current_id()
        if request_id and not record.message.startswith(request_id):
            record.message = f"{request_id}: {record.message}"
        return super().formatMessage(record)


class LimitRepeatedLines(logging.Filter):
    """Passes ``MOST_A_MINUTE`` lines of a kind a minute, and reports the number of dropped ones.

    Only loggers that write for requests of any client are limited (``LOUD``). A kind is a logger
    and its message without arguments; for Django's security loggers it is the logger alone,
    because their messages quote the request.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._seen: dict[tuple[str, str], tuple[float, int]] = {}
        """The start of the minute of a kind, and its lines since."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write ``record``; the first one after dropped lines reports their number."""
        if not record.name.startswith(LOUD):
            return True
        if record.name.startswith("django.security"):
            # A traceback through Django does not show the client's mistake.
            record.exc_info = None
            kind = record.name, ""
        else:
            kind = record.name, str(record.msg)
        now = time.monotonic()
        with self._lock:
            began, seen = self._seen.get(kind, (now, 0))
            if now - began >= _MINUTE:
                if seen > MOST_A_MINUTE:
                    record.msg = f"{record.msg} (and {seen - MOST_A_MINUTE} more like it before)"
                began, seen = now, 0
            if len(self._seen) >= _MOST_KINDS:
                self._seen.clear()
            self._seen[kind] = began, seen + 1
            return seen < MOST_A_MINUTE


class Outages:
    """Logs when something fails and when it works again, one outage a minute at most.

    A state that changes every second would fill the log. An outage within a minute of a logged one is
    counted instead, and so is its end; one that lasts is logged once the minute is over.
    """

    def __init__(self, log: logging.Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._clock = clock
        self._logged_at = float("-inf")
        self._is_failing = False
        self._is_logged = False
        self._unlogged = 0

    def failed(self, level: int, message: str, *arguments: object) -> None:
        """Log ``message``, unless this outage is in the log already. Call it for every failure."""
        self._is_failing = True
        now = self._clock()
        if self._is_logged or now - self._logged_at < _MINUTE:
            return
        if self._unlogged:
            message, arguments = f"{message} (%d more like it before)", (*arguments, self._unlogged)
        self._is_logged, self._logged_at, self._unlogged = True, now, 0
        self._log.log(level, message, *arguments)

    def ended(self, message: str, *arguments: object) -> None:
        """Log ``message`` if the outage that ends now is in the log. Call it for every success."""
        if not self._is_failing:
            return
        if self._is_logged:
            self._log.info(message, *arguments)
        else:
            self._unlogged += 1
        self._is_failing = self._is_logged = False


class DropClientFaults(logging.Filter):
    """Drops uvicorn's error lines about invalid client data.

    Any client could fill the log with them, and their traceback quotes the message.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        return not str(record.msg).startswith("Invalid UTF-8 sequence received")


def log_unexpected(log: logging.Logger, request_id: str, error: BaseException) -> None:
    """Log an internal error: its type and traceback, without its message."""
    bare = WithheldError(type(error).__name__).with_traceback(error.__traceback__)
    log.error("%s: unexpected %s", request_id, type(error).__name__, exc_info=bare)
