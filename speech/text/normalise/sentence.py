"""One sentence with its figures, signs and symbols in words: the order of the rules.

Each rule reads what the rules before it have left, and none reads words that another has written.
Specific forms come first: an address, a date or an amount of money holds figures that would mean
something else by themselves.
"""

from __future__ import annotations

import re

from speech.text.language import Language
from speech.text.normalise import (
    abbreviations,
    addresses,
    clock,
    codes,
    dates,
    figures,
    fractions,
    measures,
    mixed,
    money,
    ordinals,
    signs,
    years,
)
from speech.text.normalise.characters import cleaned, plain
from speech.text.normalise.locale import Locale, Region

_RULES = (
    addresses.written_out,
    abbreviations.written_out,
    signs.comparisons_written_out,
    dates.written_out,
    clock.written_out,
    codes.written_out,
    money.written_out,
    fractions.written_out,
    years.decades_written_out,
    measures.written_out,
    ordinals.written_out,
    signs.ranges_written_out,
    years.written_out,
    signs.maths_written_out,
    signs.others_written_out,
    mixed.written_out,
)
_RUN_OF_BLANKS = re.compile(r"\s{2,}")
_BLANKS = re.compile(r"\s{2,}|[^\S ]")
_AFTER_BRACKET = re.compile(r"(?<=[(\[]) +")
_BEFORE_MARK = re.compile(r"(?<=\S) +(?=[,.;:!?।)\]](?:\s|$))")


def normalised(text: str, language: Language, region: Region) -> str:
    """``text`` as it is to be read out: no digit is left, and signs that mean a word are words.

    Give it one sentence, without markup. The same text comes back when it is given its own result.
    """
    locale = Locale(language, region)
    words = _RUN_OF_BLANKS.sub(" ", text)
    words = _BLANKS.sub(" ", figures.canonical(plain(cleaned(words))))
    for rule in _RULES:
        words = rule(words, locale)
    words = _AFTER_BRACKET.sub("", _BEFORE_MARK.sub("", _BLANKS.sub(" ", words))).strip()
    # Blanks at the ends are kept as they were: the caller joins pieces.
    before, after = text[:1].isspace() and words != "", text[-1:].isspace()
    return f"{' ' if before else ''}{words}{' ' if after else ''}"
