"""The faults of the simulator, which docs/develop/simulator.md describes."""

from __future__ import annotations

from enum import StrEnum

from simulators import fault_grammar
from simulators.fault_grammar import FaultGrammar

STATUSES = (400, 401, 404, 413, 422, 429, 500, 503)


class FaultName(StrEnum):
    # Before the headers
    STATUS = "status"
    SLOW_HEADER = "slow_header"
    REDIRECT = "redirect"
    HTML = "html"
    EMPTY = "empty"
    NULL = "null"
    ERROR_200 = "error_200"
    # Before the headers, or after a number of content frames
    CUT = "cut"
    RESET = "reset"
    HANG = "hang"
    # After a number of content frames
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


def _check(name: FaultName, number: float) -> None:
    if name is FaultName.STATUS and number not in STATUSES:
        raise ValueError(f"The fault status takes one of {', '.join(map(str, STATUSES))}.")


Faults = fault_grammar.Faults[FaultName]
NO_FAULTS = Faults()
parse_faults = FaultGrammar(FaultName, _TAKES_A_NUMBER, _NEEDS_A_NUMBER, _check).parse
