"""What may be written to a log: ids, counts and places, never what a caller sent."""

from __future__ import annotations

import logging


class WithheldError(Exception):
    """Stands in a log for an exception whose message could carry content."""


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
