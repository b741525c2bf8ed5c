"""The length of the pause between two sentences. Rules: docs/explain/speech-text.md, Pauses."""

from __future__ import annotations

import re
from typing import Final

from speech.text.markdown import Line, Place
from speech.text.markdown_inline import is_word

AFTER_CLAUSE: Final = 0.08
"""Seconds after a part that was cut at a comma: engines make no pause at the end of a part."""

AFTER_SENTENCE: Final = 0.23
"""Seconds. With the still edges that a part keeps, 0.2 to 0.3 s are heard."""

AFTER_LINE: Final = 0.3
"""Seconds between lines: items of a list, rows of a table, verses."""

AFTER_PARAGRAPH: Final = 0.43
"""Seconds. With the still edges that a part keeps, 0.4 to 0.5 s are heard."""

_WRAPPED_LINE: Final = 50
"""Code points from which a line without a full stop may go on in the next one."""

_BREAK = re.compile(r"\r\n|[\n\r\u2028\u2029]")
_NOTES = re.compile(r"(?:\[[^\[\]\s]{1,64}\])+\Z")
_LONGEST_END = 200
_CLOSING = " \t\n\r\u2028\u2029)]}\"'”’»*_~`"  # noqa: RUF001 quotes of all kinds
_CLAUSE_MARKS = ",;:—–-"  # noqa: RUF001 the dash is meant


def between(before: str, place: Place, after: str, next_place: Place) -> float:
    """Seconds of silence between two texts as they were received, one sentence each.

    ``place`` is where the first one ended, ``next_place`` where the second one did.
    """
    breaks = len(_BREAK.findall(before[len(before.rstrip()) :] + after.rstrip()))
    if not breaks:
        return after_part(before)
    headed = Line.HEADING in (place.line, next_place.line)
    in_code = place.line is Line.CODE and next_place.line is Line.CODE
    if headed or (breaks > 1 and not in_code):
        return AFTER_PARAGRAPH
    return 0.0 if _goes_on(before, place, after.strip()) else AFTER_LINE


def after_part(text: str) -> float:
    """Seconds of silence after a part of a line, by its last mark; 0 within a phrase."""
    end = _NOTES.sub("", text.rstrip()[-_LONGEST_END:]).rstrip(_CLOSING)[-1:]
    if not end or is_word(end):
        return 0.0
    return AFTER_CLAUSE if end in _CLAUSE_MARKS else AFTER_SENTENCE


def _goes_on(before: str, place: Place, after: str) -> bool:
    """Whether a line was only wrapped: it is long and unfinished, and the next is lower-case."""
    wrapped = place.line in (Line.TEXT, Line.ITEM) and place.length >= _WRAPPED_LINE
    return wrapped and not after_part(before) and after[:1].isalpha() and not after[0].isupper()
