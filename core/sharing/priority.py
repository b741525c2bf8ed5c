"""The priority classes of requests that wait for the same slots."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Priority(IntEnum):
    """A class; the lower its number, the earlier its requests get a slot."""

    INTERACTIVE = 0
    """A person waits for the answer, as in a chat."""
    STANDARD = 1
    """The class of every request until an operator sets another."""
    BATCH = 2
    """A job runs in the background, such as an evaluation at night."""

    @property
    def label(self) -> str:
        """Its name in the database, in answers and in metrics."""
        return _LABELS[self]


_LABELS: Final = tuple(each.name.lower() for each in Priority)
