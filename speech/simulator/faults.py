"""The faults that the simulated speech server can be told to have.

Each is written ``name``, or ``name@number``; several are joined by commas. What each one does is
listed in docs/develop/simulator.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


class SpeechFault(StrEnum):
    # Before the headers
    STATUS = "status"
    SLOW_HEADER = "slow_header"
    REDIRECT = "redirect"
    HTML = "html"
    JSON = "json"
    EMPTY = "empty"
    # Before the headers, or after so many bytes of the body
    CUT = "cut"
    RESET = "reset"
    HANG = "hang"
    UNFRAMED = "unframed"
    # What is said
    SILENCE = "silence"
    SHORT = "short"
    HUGE = "huge"
    GARBAGE = "garbage"
    ODD = "odd"
    COMPRESSED = "compressed"
    # Events
    ERROR_EVENT = "error_event"
    NO_DONE = "no_done"
    BAD_EVENT = "bad_event"


_NEEDS_A_NUMBER = {SpeechFault.STATUS, SpeechFault.SLOW_HEADER}
_TAKES_A_NUMBER = _NEEDS_A_NUMBER | {
    SpeechFault.CUT,
    SpeechFault.RESET,
    SpeechFault.HANG,
    SpeechFault.UNFRAMED,
    SpeechFault.ERROR_EVENT,
}


@dataclass(frozen=True, slots=True)
class Faults:
    """The faults of one request, with the number of each; ``text`` is how they were written."""

    text: str | None = None
    numbers: tuple[tuple[SpeechFault, float | None], ...] = ()

    def __contains__(self, name: SpeechFault) -> bool:
        return any(name is known for known, _ in self.numbers)

    def number(self, name: SpeechFault) -> float | None:
        """The number given with ``name``; None when there is none, or no such fault."""
        return next((number for known, number in self.numbers if known is name), None)

    def early(self, name: SpeechFault) -> bool:
        """Whether ``name`` strikes before the headers: it was given without a number."""
        return name in self and self.number(name) is None


NO_FAULTS = Faults()


def parse_faults(text: str) -> Faults:
    """Reads ``cut@700`` or ``silence,odd``; ``none`` and an empty text are no faults at all.

    Raises ``ValueError`` with a message for people.
    """
    if text in ("", "none"):
        return NO_FAULTS
    return Faults(text, tuple(map(_parse_fault, text.split(","))))


def _parse_fault(text: str) -> tuple[SpeechFault, float | None]:
    written, _, argument = text.replace("=", "@", 1).partition("@")
    try:
        name = SpeechFault(written)
    except ValueError:
        raise ValueError(
            f"There is no fault {written!r}. Use one of {', '.join(SpeechFault)}."
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
    if name is SpeechFault.STATUS and not 201 <= number <= 599:
        raise ValueError("The fault status takes an HTTP status from 201 to 599.")
    return name, number
