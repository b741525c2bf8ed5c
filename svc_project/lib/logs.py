"""What may be written to a log: ids, counts and places, never what a caller sent."""

from __future__ import annotations

import logging
import threading
import time
from typing import Final

MOST_A_MINUTE: Final = 10
"""Lines of one kind that a caller can cause."""

LOUD: Final = ("django.", "uvicorn.", "svc_project.lib.views")
"""How the names of the loggers begin that callers can make write."""

_MINUTE = 60.0
_MOST_KINDS = 1000


class WithheldError(Exception):
    """Stands in a log for an exception whose message could carry content."""


class AFewAMinute(logging.Filter):
    """Lets ``MOST_A_MINUTE`` lines of a kind pass in a minute, and then says how many it left out.

    Only loggers that write a line, or a traceback, for a request that anybody can send are meant
    (``LOUD``). A kind is a logger and a text before its arguments are put in; of Django's security
    loggers it is the logger alone, because their texts quote the request.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._seen: dict[tuple[str, str], tuple[float, int]] = {}
        """When the minute of a kind began, and its lines since."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write ``record``; the first one after lines were left out tells their number."""
        if not record.name.startswith(LOUD):
            return True
        if record.name.startswith("django.security"):
            # A traceback through Django says nothing about what a client did wrong.
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


class WithoutFaultsOfClients(logging.Filter):
    """Leaves out what uvicorn calls an error and is a client's doing.

    Anybody could fill the log with it, and its traceback quotes what was sent.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        return not str(record.msg).startswith("Invalid UTF-8 sequence received")


def log_unexpected(log: logging.Logger, request_id: str, error: BaseException) -> None:
    """Log a fault of ours: its type and traceback, without its message."""
    bare = WithheldError(type(error).__name__).with_traceback(error.__traceback__)
    log.error("%s: unexpected %s", request_id, type(error).__name__, exc_info=bare)
