"""Which words of a Latin text are Hindi, and those words in Devanagari.

A word is Hindi when its Hindi score, helped or hindered by its neighbours, beats its frequency in
English. English words, names and every word that is not surely Hindi stay as they are: the engine's
Hindi voices read Latin words by English rules.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import wordfreq

from speech.hindi.lexicon import OVERRIDE_SCORE, build_index, match, overrides, spelled

_LINK = re.compile(r"\S*(?:://|@|www\.)\S*")
_WORD = re.compile(r"(?<![A-Za-z0-9])(?<![A-Za-z]['’])[A-Za-z]{1,40}(?![A-Za-z0-9'’])")  # noqa: RUF001
_NEIGHBOURS = 2.0
"""How far a word's neighbours move its Hindi score, in Zipf units. Towards Hindi this holds for
exceptions and for words that are rare in English; a common English word is a loan and stays Latin."""
_RARE = 3.6
"""Zipf frequency below which an English word does not come up in a Hindi text by itself."""
_SPREAD = 3.0
"""One word's largest say in what its neighbours are."""
_UNKNOWN = 2.2
"""Zipf frequency below which English does not know a word: misspellings reach 2."""
_SURELY_HINDI = 1.0
"""Mean lead of Hindi over English in a text from which unknown words are taken for Hindi too."""


@dataclass(frozen=True, slots=True)
class _Reading:
    hindi: str | None
    hindi_score: float
    english_score: float
    listed: bool = False

    @property
    def lead(self) -> float:
        return max(-_SPREAD, min(_SPREAD, self.hindi_score - self.english_score))


def transliterate(text: str) -> str:
    """``text`` with its romanized Hindi words in Devanagari (NFC); all else is unchanged.

    Judge one sentence or more at a time: a word's neighbours decide.
    """
    words = list(_words(text))
    if not words:
        return text
    readings = [_reading(word[0].lower()) for word in words]
    leads = [reading.lead for reading in readings]
    mean = sum(leads) / len(leads)
    pieces: list[str] = []
    start = 0
    for at, (word, reading) in enumerate(zip(words, readings, strict=True)):
        near = leads[max(0, at - 1) : at] + leads[at + 1 : at + 2]
        lean = (mean + sum(near) / len(near)) / 2 if near else mean
        pieces += [text[start : word.start()], _chosen(word[0], reading, lean)]
        start = word.end()
    return "".join([*pieces, text[start:]])


def prepare() -> None:
    """Read both lexicons now (about a second), so that no request waits for them."""
    build_index()
    wordfreq.zipf_frequency("ready", "en")


def word_in_hindi(word: str) -> str:
    """Devanagari for one Latin word that is known to be Hindi; the word itself when it has no sound
    in Devanagari."""
    lower = word.lower()
    found = match(lower)
    return found.word if found else spelled(lower) or word


def _words(text: str) -> list[re.Match[str]]:
    links = [link.span() for link in _LINK.finditer(text)]
    return [
        word
        for word in _WORD.finditer(text)
        if not any(start <= word.start() < end for start, end in links)
    ]


def _chosen(word: str, reading: _Reading, lean: float) -> str:
    if word.isupper() and len(word) > 1:
        return word
    if reading.hindi is not None:
        most = _NEIGHBOURS if reading.listed or reading.english_score < _RARE else 0.0
        if reading.hindi_score + max(-_NEIGHBOURS, min(most, lean)) > reading.english_score:
            return reading.hindi
        return word
    unknown = reading.english_score < _UNKNOWN and word.islower() and len(word) > 2
    if unknown and lean >= _SURELY_HINDI:
        return spelled(word) or word
    return word


@lru_cache(maxsize=20_000)
def _reading(word: str) -> _Reading:
    english = wordfreq.zipf_frequency(word, "en")
    found = match(word)
    if found is None:
        return _Reading(None, min(english, 1.0), english)
    score = min(found.score, OVERRIDE_SCORE)
    return _Reading(found.word, score, english, word in overrides())
