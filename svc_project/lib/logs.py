"""What may be written to a log: ids, counts and places, never what a caller sent."""

from __future__ import annotations

import logging


class WithheldError(Exception):
    """Stands in a log for an exception whose message could carry content."""


def log_unexpected(log: logging.Logger, request_id: str, error: BaseException) -> None:
    """Log a fault of ours: its type and traceback, without its message."""
    bare = WithheldError(type(error).__name__).with_traceback(error.__traceback__)
    log.error("%s: unexpected %s", request_id, type(error).__name__, exc_info=bare)
