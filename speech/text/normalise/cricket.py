"""Writes out the signs of cricket: ``104*`` not out, ``172b`` balls."""

from __future__ import annotations

import re

from speech.text.normalise.locale import Locale

_WORDS = re.compile(
    r"\b(?:overs|wickets?|wkts?|at stumps|innings|lbw|batting|off \d{1,3} ?b(?:alls)?)\b"
    r"|\d\*? (?:all|not) out\b|\b[A-Z][a-z]{1,20} \d{1,3}\* ?\(\d{1,3}b?\)"
    r"|(?<![\u0900-\u097f])(?:ओवर|विकेट|पारी)(?![\u0900-\u097f])"
)
_NOT_OUT = re.compile(r"(?<=\d)\*(?!\w)")
_BALLS = re.compile(r"(?P<before>\boff \d{1,3}|\(\d{1,3}) ?b(?!\w)")


def is_meant(text: str) -> bool:
    """Whether a sentence has words of cricket."""
    return _WORDS.search(text) is not None


def written_out(text: str, locale: Locale) -> str:
    """Write the signs of a sentence about cricket in words."""
    if "*" not in text and not _BALLS.search(text):
        return text
    if not is_meant(text):
        return text
    text = _NOT_OUT.sub(" नाबाद" if locale.is_hindi else " not out", text)
    return _BALLS.sub(r"\g<before> गेंद" if locale.is_hindi else r"\g<before> balls", text)
