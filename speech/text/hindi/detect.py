"""Detects the Hindi words of a Latin text and transliterates them to Devanagari.

Hindi that is mixed with English keeps its own function words: when the words around a place are
Hindi, an ambiguous function word (``par``, ``to``, ``do``) is Hindi too, or as its rule in
``context`` decides. Any other word is Hindi when its Hindi score, raised or lowered by its
neighbours, beats its frequency in English. English words, names and all uncertain words are not
changed: the engine's Hindi voices read Latin words by English rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from speech.text.hindi.context import RULES, places
from speech.text.hindi.evidence import RARE, Reading, evidence_for_hindi, reading
from speech.text.hindi.frequencies import english_zipf
from speech.text.hindi.lexicon import build_index, spelled

_RUN = re.compile(r"\S+")
_LINK = re.compile(r"://|@|www\.")
_WORD = re.compile(r"(?<![A-Za-z0-9])(?<![A-Za-z]['’])[A-Za-z]{1,40}(?![A-Za-z0-9'’])")  # noqa: RUF001
_CLAUSE_END = re.compile(r"[.,;:!?।\n]")
_NEIGHBOURS = 2.0
"""How far a word's neighbours move its Hindi score, in Zipf units. Only exceptions and words that
are rare in English move towards Hindi; a common English word is a loan and stays Latin."""
_UNKNOWN = 2.2
"""Zipf frequency below which a word is not English: misspellings reach 2."""
_SURELY_HINDI = 1.0
"""Mean lead of Hindi over English in a text above which unknown words count as Hindi too."""
_HINDI_AROUND = 1.0
"""Evidence around a word above which it is read as a form of a Hindi word."""


def transliterate(text: str) -> str:
    """Transliterate the romanized Hindi words of ``text`` to Devanagari (NFC), and nothing else.

    Pass at least a whole sentence, because a word's neighbours decide.
    """
    words = list(_words(text))
    if not words:
        return text
    readings = [reading(word[0].lower()) for word in words]
    evidence = evidence_for_hindi([word[0] for word in words], readings)
    decided = _by_context(text, words, readings, evidence)
    leads = [each.lead for each in readings]
    mean = sum(leads) / len(leads)
    pieces: list[str] = []
    start = 0
    for at, (word, read) in enumerate(zip(words, readings, strict=True)):
        near = leads[max(0, at - 1) : at] + leads[at + 1 : at + 2]
        lean = (mean + sum(near) / len(near)) / 2 if near else mean
        chosen = decided.get(at) or _chosen(word[0], read, lean, evidence[at])
        pieces += [text[start : word.start()], chosen]
        start = word.end()
    return "".join([*pieces, text[start:]])


def prepare() -> None:
    """Load both lexicons now (about a second), so that no request waits for them."""
    build_index()
    english_zipf("ready")


def _words(text: str) -> Iterator[re.Match[str]]:
    for run in _RUN.finditer(text):
        if not _LINK.search(run[0]):
            yield from _WORD.finditer(text, *run.span())


def _by_context(
    text: str, words: list[re.Match[str]], readings: list[Reading], evidence: list[float]
) -> dict[int, str]:
    """The exceptions among Hindi words, by their place: Devanagari or the word itself."""
    decided: dict[int, str] = {}
    for first, end in _clauses(text, words):
        clause = [_candidate(words[at][0], readings[at]) for at in range(first, end)]
        for place in places(clause):
            at = first + place.at
            typed, read = words[at][0], readings[at]
            if evidence[at] <= 0 or read.group is None or typed.isupper():
                continue
            rule = RULES.get(typed.lower())
            decided[at] = (rule(place) if rule else read.hindi) or typed
    return decided


def _clauses(text: str, words: list[re.Match[str]]) -> Iterator[tuple[int, int]]:
    """Ranges of words with no punctuation between them."""
    first = 0
    for at in range(1, len(words)):
        if _CLAUSE_END.search(text, words[at - 1].end(), words[at].start()):
            yield first, at
            first = at
    yield first, len(words)


def _candidate(typed: str, read: Reading) -> str:
    if read.hindi is None:
        return read.guess or typed.lower()
    return read.hindi if read.group or read.lead > 0 else typed.lower()


def _chosen(typed: str, read: Reading, lean: float, evidence: float) -> str:
    if typed.isupper():
        return typed
    if read.hindi is not None:
        most = _NEIGHBOURS if read.group or read.english_score < RARE else 0.0
        if read.hindi_score + max(-_NEIGHBOURS, min(most, lean)) > read.english_score:
            return read.hindi
        return typed
    if not typed.islower():
        return typed
    surely = lean >= _SURELY_HINDI and read.english_score < _UNKNOWN and len(typed) > 2
    if read.guess and (surely or evidence >= _HINDI_AROUND):
        return read.guess
    return (surely and spelled(typed)) or typed
