"""The faults that the simulator can be told to have.

Each is written ``name``, or ``name@number``; several are joined by commas. What each one does is
listed in docs/develop/simulator.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

STATUSES = (400, 401, 404, 422, 429, 500, 503)


class FaultName(StrEnum):
    # Before the headers
    STATUS = "status"
    SLOW_HEADER = "slow_header"
    REDIRECT = "redirect"
    HTML = "html"
    EMPTY = "empty"
    NULL = "null"
    ERROR_200 = "error_200"
    # Before the headers, or after so many content frames
    CUT = "cut"
    RESET = "reset"
    HANG = "hang"
    # After so many content frames
    GARBAGE = "garbage"
    ERROR_FRAME = "error_frame"
    # Usage
    NO_USAGE = "no_usage"
    USAGE_TWICE = "usage_twice"
    NEGATIVE_USAGE = "negative_usage"
    DECREASING_USAGE = "decreasing_usage"
    ABSURD_USAGE = "absurd_usage"
    USAGE_EVERY_CHUNK = "usage_every_chunk"
    # Order and ends of a stream
    NO_FINISH = "no_finish"
    NO_DONE = "no_done"
    AFTER_DONE = "after_done"
    REPEAT_ROLE = "repeat_role"
    EMPTY_CHOICES_FIRST = "empty_choices_first"
    # Bytes
    SPLIT_BYTES = "split_bytes"
    CRLF = "crlf"
    COMMENTS = "comments"
    BOM = "bom"
    BIG_FRAME = "big_frame"


_TAKES_A_NUMBER = {
    FaultName.STATUS,
    FaultName.SLOW_HEADER,
    FaultName.CUT,
    FaultName.RESET,
    FaultName.HANG,
    FaultName.GARBAGE,
    FaultName.ERROR_FRAME,
}
_NEEDS_A_NUMBER = _TAKES_A_NUMBER - {FaultName.CUT, FaultName.RESET, FaultName.HANG}


@dataclass(frozen=True, slots=True)
class Faults:
    """The faults of one request, with the number of each; ``text`` is how they were written."""

    text: str | None = None
    numbers: tuple[tuple[FaultName, float | None], ...] = ()

    def __contains__(self, name: FaultName) -> bool:
        return any(name is known for known, _ in self.numbers)

    def number(self, name: FaultName) -> float | None:
        """The number given with ``name``; None when there is none, or no such fault."""
        return next((number for known, number in self.numbers if known is name), None)

    def early(self, name: FaultName) -> bool:
        """Whether ``name`` strikes before the headers: it was given without a number."""
        return name in self and self.number(name) is None


NO_FAULTS = Faults()


def parse_faults(text: str) -> Faults:
    """Reads ``cut@7`` or ``no_usage,cut@7``; ``none`` and an empty text are no faults at all.

    Raises ``ValueError`` with a message for people.
    """
    if text in ("", "none"):
        return NO_FAULTS
    return Faults(text, tuple(map(_parse_fault, text.split(","))))


def _parse_fault(text: str) -> tuple[FaultName, float | None]:
    written, _, argument = text.replace("=", "@", 1).partition("@")
    try:
        name = FaultName(written)
    except ValueError:
        raise ValueError(
            f"There is no fault {written!r}. Use one of {', '.join(FaultName)}."
        ) from None
    if not argument:
        if name in _NEEDS_A_NUMBER:
            raise ValueError(f"The fault {name} needs a number: {name}@1.")
        return name, None
    if name not in _TAKES_A_NUMBER:
        raise ValueError(f"The fault {name} takes no number.")
    try:
        number = float(argument)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise ValueError(f"The number of the fault {name} must be zero or more.")
    if name is FaultName.STATUS and number not in STATUSES:
        raise ValueError(f"The fault status takes one of {', '.join(map(str, STATUSES))}.")
    return name, number
