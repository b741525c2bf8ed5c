"""The faults of the simulated speech server, which docs/develop/simulator.md describes."""

from __future__ import annotations

from enum import StrEnum

from simulators import fault_grammar
from simulators.fault_grammar import FaultGrammar


class SpeechFault(StrEnum):
    # Before the headers
    STATUS = "status"
    SLOW_HEADER = "slow_header"
    REDIRECT = "redirect"
    HTML = "html"
    JSON = "json"
    EMPTY = "empty"
    # Before the headers, or after a number of bytes of the body
    CUT = "cut"
    RESET = "reset"
    HANG = "hang"
    UNFRAMED = "unframed"
    # The sound
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


def _check(name: SpeechFault, number: float) -> None:
    if name is SpeechFault.STATUS and not 201 <= number <= 599:
        raise ValueError("The fault status takes an HTTP status from 201 to 599.")


Faults = fault_grammar.Faults[SpeechFault]
NO_FAULTS = Faults()
parse_faults = FaultGrammar(SpeechFault, _TAKES_A_NUMBER, _NEEDS_A_NUMBER, _check).parse
