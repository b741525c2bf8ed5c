"""Computes the evidence that a place in a text is Hindi, from the words around it.

Hindi that is mixed with English keeps its own function words, so these weigh most. The weights were
tuned on tests/support/texts/hindi_development.tsv and English texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise

from speech.text.hindi.frequencies import english_zipf
from speech.text.hindi.lexicon import OVERRIDE_SCORE, Group, guess, match, overrides

RARE = 3.6
"""Zipf frequency below which an English word does not occur in a Hindi text by chance."""

_NO_WORD = 4.1
"""Zipf frequency that pieces of English names and abbreviations reach: ``ka``, ``ko``."""
_COMMON = 5.8
"""Zipf frequency of the commonest English words: few of them are loans in Hindi."""
_SPREAD = 3.0
"""The largest weight of one word in the evidence for its neighbours."""
_WINDOW = 6
"""Words on each side that count as evidence for a place."""
_HINDI_FUNCTION_WORD = 1.5
_PERHAPS_FUNCTION_WORD = 0.4
_HINDI_WORD = 0.25
"""The factor on the lead of Hindi over English."""
_HINDI_FORM = 0.4
"""The weight of a form of a Hindi word that is not English."""
_ENGLISH_WORD = -0.15
_COMMON_ENGLISH_WORD = -0.6
_ENGLISH_FUNCTION_WORD = -1.0
_THE = -0.5
_ARTICLE = -1.5
"""The weight of ``the`` where थे cannot stand."""
_ARTICLES = frozenset(
    (before, "the")
    for before in ("in", "on", "of", "at", "for", "from", "by", "with", "to", "do", "use", "open",
                   "close", "into", "is")
)  # fmt: skip
_ENGLISH_FUNCTION_WORDS = frozenset({
    "of", "and", "a", "an", "that", "this", "with", "for", "you", "she", "it", "we", "they", "was",
    "were", "his", "her", "my", "our", "your", "their", "from", "at", "be", "been", "has", "have",
    "had", "will", "would", "can", "could", "should", "i", "there", "what", "when", "where", "how",
    "why", "who", "which", "if", "as", "than", "then", "about", "into", "does", "did", "its", "not",
    "but",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reading:
    """The meanings of a lower-case Latin word, and its frequency in both languages (Zipf)."""

    hindi: str | None
    guess: str | None
    """The word's form if its text is surely Hindi; for words that the lexicon does not have."""
    hindi_score: float
    english_score: float
    group: Group | None = None
    """Why the word is in the table of exceptions, or None."""

    @property
    def lead(self) -> float:
        return max(-_SPREAD, min(_SPREAD, self.hindi_score - self.english_score))


@lru_cache(maxsize=20_000)
def reading(word: str) -> Reading:
    """The reading of lower-case Latin ``word``."""
    english = english_zipf(word)
    found = match(word)
    if found is None:
        guessed = guess(word) if english < RARE else None
        return Reading(None, guessed.word if guessed else None, min(english, 1.0), english)
    group = overrides()[word][1] if word in overrides() else None
    return Reading(found.word, None, min(found.score, OVERRIDE_SCORE), english, group)


def evidence_for_hindi(typed: Sequence[str], readings: Sequence[Reading]) -> list[float]:
    """The evidence for each word of a text that its place is Hindi: above 0 it is."""
    lower = ["", *(word.lower() for word in typed)]
    weights = [
        _ARTICLE if pair in _ARTICLES else _weight(word, pair[0] == "", read)
        for pair, word, read in zip(pairwise(lower), typed, readings, strict=True)
    ]
    sums = [0.0, *accumulate(weights)]
    last = len(weights)
    return [sums[min(last, at + _WINDOW + 1)] - sums[max(0, at - _WINDOW)] for at in range(last)]


def _weight(typed: str, first: bool, read: Reading) -> float:
    word = typed.lower()
    if word in _ENGLISH_FUNCTION_WORDS:
        return _ENGLISH_FUNCTION_WORD
    if word == "the":
        return _THE
    if read.group and read.english_score >= RARE:
        return _PERHAPS_FUNCTION_WORD if read.english_score < _NO_WORD else 0.0
    if read.group is Group.FUNCTION:
        return _HINDI_FUNCTION_WORD
    if read.lead > 0:
        return _HINDI_WORD * read.lead if first or typed.islower() else 0.0
    if read.guess and read.english_score == 0:
        return _HINDI_FORM if typed.islower() else 0.0
    return _COMMON_ENGLISH_WORD if read.english_score > _COMMON else _ENGLISH_WORD
