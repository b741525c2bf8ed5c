"""A monotonic clock that a test sets."""

from __future__ import annotations


class Clock:
    """Seconds; the test adds to ``now``."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now
