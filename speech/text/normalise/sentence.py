"""Applies the rules, in order, that write out the figures, signs and symbols of one sentence.

Each rule gets the text that the rules before it have left, and none matches words that another has
written. Specific forms come first: an address, a date or an amount of money contains figures that
would mean something else alone.
"""

from __future__ import annotations

import re

from speech.text.kinds import cricket, networks, notes, numerals, quantities, telephones
from speech.text.language import Language
from speech.text.normalise import (
    abbreviations,
    addresses,
    clock,
    codes,
    dates,
    fractions,
    measures,
    money,
    numbers,
    ordinals,
    signs,
    tokens,
    years,
)
from speech.text.normalise.characters import cleaned, plain
from speech.text.normalise.locale import Locale, Region

_RULES = (
    telephones.keys_written_out,
    networks.written_out,
    addresses.written_out,
    notes.written_out,
    abbreviations.written_out,
    cricket.written_out,
    signs.comparisons_written_out,
    dates.written_out,
    clock.written_out,
    codes.written_out,
    money.written_out,
    fractions.written_out,
    years.decades_written_out,
    quantities.written_out,
    measures.written_out,
    numerals.written_out,
    ordinals.written_out,
    signs.ranges_written_out,
    years.years_written_out,
    signs.maths_written_out,
    signs.others_written_out,
    tokens.remaining_written_out,
)
_RUN_OF_BLANKS = re.compile(r"\s{2,}")
_BLANKS = re.compile(r"\s{2,}|[^\S ]")
_AFTER_BRACKET = re.compile(r"(?<=[(\[]) +")
_BEFORE_MARK = re.compile(r"(?<=\S) +(?=[,.;:!?।)\]](?:\s|$))")


def normalised(text: str, language: Language, region: Region) -> str:
    """Write ``text`` as it is read out: without digits, and with signs that mean a word as words.

    Pass one sentence without markup. The function is idempotent.
    """
    locale = Locale(language, region)
    words = _RUN_OF_BLANKS.sub(" ", text)
    words = _BLANKS.sub(" ", numbers.canonical(plain(cleaned(words))))
    for rule in _RULES:
        words = rule(words, locale)
    words = _AFTER_BRACKET.sub("", _BEFORE_MARK.sub("", _BLANKS.sub(" ", words))).strip()
    # Spaces at the ends are kept, because the caller joins pieces.
    before, after = text[:1].isspace() and words != "", text[-1:].isspace()
    return f"{' ' if before else ''}{words}{' ' if after else ''}"
