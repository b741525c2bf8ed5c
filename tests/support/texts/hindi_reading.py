"""Compares Hindi readings with words written by hand.

"Right" is tolerant of spellings that sound alike: nukta, chandrabindu or anusvara, ये or ए, यी or ई.
A word of the data may have several readings, ``meeting|मीटिंग``: an English loan is right in either
script, a name only in Devanagari.
"""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import NamedTuple

from speech.text.hindi.detect import transliterate
from speech.text.hindi.lexicon import match, spelled

HERE = Path(__file__).parent
_MARKS = ".,?!'\""


class Miss(NamedTuple):
    """A word that was not read as expected."""

    typed: str
    read: str
    expected: str


def rows(name: str) -> list[list[str]]:
    """The lines of a table beside this module, split at tabs."""
    return [line.split("\t") for line in (HERE / name).read_text("utf-8").splitlines()]


def sounds(text: str) -> str:
    """Write spellings of ``text`` that sound alike in one way."""
    plain = unicodedata.normalize("NFD", text).replace("\u093c", "")
    return plain.replace("ँ", "ं").replace("ये", "ए").replace("यी", "ई")


def word_in_hindi(word: str) -> str:
    """Transliterate a Latin word that is known to be Hindi; the word itself when it cannot be written."""
    lower = word.lower()
    found = match(lower)
    return found.word if found else spelled(lower) or word


def misses(sentences: list[list[str]]) -> list[Miss]:
    """The words of ``sentences`` (typed, expected) with a wrong reading."""
    found: list[Miss] = []
    for typed, expected in sentences:
        words = zip(typed.split(), transliterate(typed).split(), expected.split(), strict=True)
        for word, read, readings in words:
            right = {sounds(reading) for reading in readings.split("|")}
            if sounds(read.strip(_MARKS)) not in right:
                found.append(Miss(word.strip(_MARKS), read.strip(_MARKS), readings))
    return found


def share_right(sentences: list[list[str]]) -> float:
    """The share of the words of ``sentences`` with a right reading."""
    return 1 - len(misses(sentences)) / sum(len(typed.split()) for typed, _ in sentences)
