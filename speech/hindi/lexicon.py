"""The Hindi word that a typed Latin word most likely stands for.

A noisy channel: words of wordfreq's Hindi list (data CC-BY-SA 4.0, see NOTICE) by a phonetic key,
frequency against the distance between what was typed and how the word is romanized. The index
is built at the first use (about a second, 40 MB).
"""

from __future__ import annotations

import csv
import math
import re
import unicodedata
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

import wordfreq

from speech.hindi.rules import romanizations, spell, with_ending

OVERRIDE_SCORE = 5.5
"""Zipf score of a word of the exceptions' table: as frequent as the commonest English words."""

_WEIGHT = 0.7
"""Zipf units that one unit of distance costs."""
_FARTHEST = 1.6
"""A word farther away than this is a look-alike, not a spelling."""
_SILENT_H = 0.5
"""Zipf units that a word loses whose final h people may leave out: tara is a star before a manner."""
_FOLDS = [
    (r"chh|cch|ch", "C"), (r"ksh|x", "kS"), (r"sh", "S"), (r"kh", "K"), (r"gh", "G"),
    (r"jh", "J"), (r"th", "T"), (r"dh", "D"), (r"ph|f", "F"), (r"bh", "B"), (r"w", "v"),
    (r"z", "j"), (r"[qc]", "k"), (r"aa+", "A"), (r"ee+|ii+", "I"), (r"oo+|uu+", "U"),
    (r"ai|ei|ay(?![aeiouAIU])", "E"), (r"au|ou", "O"), (r"([a-zA-Z])\1+", r"\1"),
    (r"(?<=[aeiouAIUEO])h$", ""),
]  # fmt: skip
_FOLD_PATTERNS = [(re.compile(pattern), to) for pattern, to in _FOLDS]
_KEY = str.maketrans({"A": "a", "I": "i", "U": "u", "E": "e", "O": "o"})
_CHEAP = {
    frozenset("aA"): 0.4, frozenset("iI"): 0.25, frozenset("uU"): 0.25, frozenset("eE"): 0.5,
    frozenset("oO"): 0.5, frozenset("ei"): 0.7, frozenset("iE"): 0.7, frozenset("ou"): 0.7,
    frozenset("aE"): 0.8, frozenset("ao"): 0.8,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Match:
    """A Devanagari word and how sure it is: its Zipf frequency less the distance to it."""

    word: str
    score: float


@cache
def overrides() -> dict[str, str]:
    """Exceptions: ambiguous and very common words (speech/hindi/overrides.tsv)."""
    text = (files("speech.hindi") / "overrides.tsv").read_text("utf-8")
    rows = csv.reader(text.splitlines(), delimiter="\t")
    return {roman: unicodedata.normalize("NFC", word) for roman, word in rows}


@lru_cache(maxsize=20_000)
def match(roman: str) -> Match | None:
    """The best word for lower-case Latin ``roman``, or None when none is near enough."""
    if known := overrides().get(roman):
        return Match(known, OVERRIDE_SCORE)
    typed = fold(roman)
    best: Match | None = None
    for spelling, word, zipf in build_index().get(typed.translate(_KEY), ()):
        distance = _distance(typed, spelling)
        score = zipf - _WEIGHT * distance
        if distance <= _FARTHEST and (best is None or score > best.score):
            best = Match(word, score)
    return best


@lru_cache(maxsize=20_000)
def spelled(roman: str) -> str | None:
    """Devanagari by letter rules: a known stem with a verb's or pronoun's ending, else all letters.

    None when a letter has no sound.
    """
    for stem, ending in with_ending(roman):
        found = match(stem)
        if found is not None:
            return unicodedata.normalize("NFC", found.word + ending)
    word = spell(roman)
    return None if word is None else unicodedata.normalize("NFC", word)


def fold(roman: str) -> str:
    """One letter per sound: digraphs, long vowels (capital) and spelling habits are united."""
    for pattern, to in _FOLD_PATTERNS:
        roman = pattern.sub(to, roman)
    return roman


@cache
def build_index() -> dict[str, list[tuple[str, str, float]]]:
    """Phonetic key to (folded spelling, Devanagari word, Zipf frequency); built once."""
    index: dict[str, list[tuple[str, str, float]]] = {}
    for listed, frequency in wordfreq.get_frequency_dict("hi").items():
        word = unicodedata.normalize("NFC", listed)
        zipf = math.log10(frequency) + 9
        for at, spelling in enumerate(romanizations(word)):
            folded = fold(spelling)
            rank = zipf - 0.05 * at - (_SILENT_H if word.endswith("ह") else 0.0)
            index.setdefault(folded.translate(_KEY), []).append((folded, word, rank))
    return index


def _distance(typed: str, spelling: str) -> float:
    """Both have the same key, so they differ by vowels' length only: no insertions.

    A long vowel that is typed short costs little, and nothing at the end of a word; a short one
    that is typed long costs more.
    """
    distance = 0.0
    last = len(typed) - 1
    for at, (left, right) in enumerate(zip(typed, spelling, strict=True)):
        if left == right:
            continue
        if left.islower():
            distance += 0.0 if at == last else _CHEAP.get(frozenset((left, right)), 1.0)
        else:
            distance += 1.5
    return distance
