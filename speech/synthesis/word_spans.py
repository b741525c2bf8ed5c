"""Which written words the spoken words of a sentence stand for.

An engine speaks other words than were written: "$3.50" becomes five, Markdown none, romanized Hindi
Devanagari. Both lists are in one order, so equal words are paired, and what lies between two pairs
belongs together. A written word with a figure or a sign is paired by how it is read alone, so that
the "and" of "$3.50" is not taken for one that was written.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from speech.engines import SpokenWord
from speech.engines.word_times import words_of
from speech.synthesis.script import Sentence
from speech.synthesis.sentence import Speaker, prepared
from speech.text.pronunciations import Alphabet, Match

_LOOK_AHEAD: Final = (8, 40)
"""The most written and spoken words between two pairs; a number can have many spoken ones."""

_FURTHER: Final = 10
"""How many words further a pair is sought that is followed by another one."""

_MARK: Final = "\u0900-\u0963\u200c\u200d"
_ENTITY: Final = re.compile(r"&#?\w{1,8}\Z")
_LINK: Final = re.compile(r"\]\([^()\s]*\)?")
_CHUNK: Final = re.compile(r"\S+")
_PLAIN: Final = re.compile(rf"(?:[^\W\d_]|[{_MARK}]|['\u2019](?=[^\W\d_]))+")
_JOINTS: Final = "-\u2010\u2011\u2012\u2013\u2014/\u2026.,;:!?\u0964\u0965()[]{}<>\"*_~`|\u201c\u201d\u2018\u2019'#\\"
_EDGES: Final = "*_~`\"'()[]{}<>\u201c\u201d\u2018\u2019.,;:!?\u2026\u0964\u0965|\\"
_NO_LETTER: Final = re.compile(rf"[^\w{_MARK}]|_")
_APART: Final = "Qzxqq"
"""A word that no rule reads in another way, between words that are read alone."""


@dataclass(frozen=True, slots=True)
class Written:
    """A written word, from its first code point to behind its last; ``is_plain``: letters alone.

    ``reading``: the keys of the words as which it is spoken where it stands alone; empty: not known.
    """

    text: str
    start: int
    end: int
    is_plain: bool
    reading: tuple[str, ...] = ()


class TimedWord(msgspec.Struct, frozen=True):
    """A spoken word as clients get it: its seconds in the sound, and which code points of the text as
    received it stands for."""

    text: str
    start: float
    end: float
    since: int = msgspec.field(name="from")
    until: int = msgspec.field(name="to")


class TimedSentence(msgspec.Struct, frozen=True):
    """The words of a sentence, whose ``number`` counts the spoken sentences from 0."""

    number: int
    words: list[TimedWord]

    def message(self, kind: str) -> dict[str, Any]:
        """What clients are sent, as a message or event of type ``kind``."""
        return {"type": kind, "sentence": self.number, "words": self.words}


async def timed_words(
    sentence: Sentence, spoken: Sequence[SpokenWord], later: float, speaker: Speaker
) -> list[TimedWord]:
    """The words of ``sentence`` that ``speaker`` has ``spoken``; its sound begins ``later`` seconds in
    a whole. Raises as ``speech.synthesis.sentence.prepared`` does."""
    written = written_words(sentence.text)
    if speaker.lexicon:
        written = _respelt(written, speaker.lexicon.matches(sentence.text, speaker.growth.again()))
    if text := set_apart(written):
        written = with_readings(written, await prepared(text, speaker))
    found = spans(written, [word.text for word in spoken])
    received = sentence.received(found)
    return [
        TimedWord(
            word.text,
            _milliseconds(later + word.start),
            _milliseconds(later + word.end),
            start,
            end,
        )
        for word, (start, end) in zip(spoken, received, strict=False)
    ]


def set_apart(written: Sequence[Written]) -> str:
    """A text of the words that are not plain, in which none changes how another one is read."""
    return f" {_APART} ".join(word.text for word in written if not word.is_plain)


def with_readings(written: Sequence[Written], read: str) -> list[Written]:
    """``written`` with the readings in ``read``, which is ``set_apart(written)`` as an engine gets it."""
    parts = read.split(_APART)
    if len(parts) != sum(not word.is_plain for word in written):
        return list(written)
    readings = iter(parts)
    return [
        word
        if word.is_plain
        else replace(word, reading=tuple(_key(each[0]) for each in words_of(next(readings))))
        for word in written
    ]


def _respelt(written: list[Written], matches: Sequence[Match]) -> list[Written]:
    """``written`` with the words that were spoken for each of ``matches``, which share its span."""
    ends = [match.end for match in matches]

    def is_kept(word: Written) -> bool:
        after = bisect_right(ends, word.start)
        return after == len(matches) or word.end <= matches[after].start

    kept = [word for word in written if is_kept(word)]
    for match in matches:
        is_ipa = match.entry.alphabet is Alphabet.IPA
        words = [match.entry.word] if is_ipa else match.entry.spoken.split()
        kept += [Written(word, match.start, match.end, True) for word in words]
    return sorted(kept, key=lambda word: word.start)


def _milliseconds(seconds: float) -> float:
    """Whole milliseconds, rounded down: no word ends after the sound."""
    return int(seconds * 1000) / 1000


def written_words(text: str) -> list[Written]:
    """The words of a text as received. Whatever has a figure or a sign in it is one, to the space."""
    return [word for chunk in _CHUNK.finditer(_unlinked(text)) for word in _words(chunk)]


def _unlinked(text: str) -> str:
    """``text`` with spaces for the targets of Markdown links."""
    return _LINK.sub(lambda match: " " * len(match[0]), text)


def _words(chunk: re.Match[str]) -> Iterator[Written]:
    found = list(_PLAIN.finditer(chunk[0]))
    between = _PLAIN.sub("", chunk[0])
    if found and not between.strip(_JOINTS) and not _is_shortened(chunk[0]):
        for word in found:
            yield Written(word[0], chunk.start() + word.start(), chunk.start() + word.end(), True)
        return
    kept = chunk[0].strip(_EDGES)
    if any(map(_has_a_name, kept)):
        start = chunk.start() + chunk[0].index(kept)
        if _ENTITY.search(kept) and chunk.string.startswith(";", start + len(kept)):
            kept += ";"
        yield Written(kept, start, start + len(kept), False)


def _has_a_name(character: str) -> bool:
    """Whether it is spoken, if it stands alone: a letter, a figure, or such a sign as "+" or "€"."""
    return (
        character.isalnum()
        or character in "&%@#\u00a7\u00b0"
        or unicodedata.category(character) in ("Sm", "Sc")
    )


def _is_shortened(chunk: str) -> bool:
    """Whether there is a sign within it as in "e.g.", an address or a name of code."""
    return any(sign in chunk.strip(_EDGES) for sign in "./@:_")


def spans(written: Sequence[Written], spoken: Sequence[str]) -> list[tuple[int, int]]:
    """The span in the written text of each spoken word.

    Words that are spoken for a written one share its span; of several written ones that cannot be
    told apart, each spoken word has the span of all. Empty if nothing is written.
    """
    if not written:
        return []
    words = _Words(
        [(_key(word.text), word.reading) for word in written], [_key(word) for word in spoken]
    )
    found: list[tuple[int, int]] = []
    i = j = 0
    while j < len(spoken):
        more_written, more_spoken = _unlike(words, i, j)
        found += (
            _block(written[i : i + more_written], more_spoken)
            or [_beside(written, i, found)] * more_spoken
        )
        i, j = i + more_written, j + more_spoken
        if paired := words.paired(i, j):
            found += [(written[i].start, written[i].end)] * paired
            i, j = i + 1, j + paired
    return found


@dataclass(frozen=True, slots=True)
class _Words:
    """The key and the reading of each written word, and the keys of the spoken ones."""

    written: list[tuple[str, tuple[str, ...]]]
    spoken: list[str]

    def paired(self, i: int, j: int) -> int:
        """How many of the spoken words from ``j`` on the written word ``i`` surely stands for."""
        if i >= len(self.written) or j >= len(self.spoken):
            return 0
        key, reading = self.written[i]
        if reading and self.spoken[j] == reading[0]:
            count = len(reading)
            if tuple(self.spoken[j : j + count]) == reading:
                return count
        return int(key == self.spoken[j])


def _unlike(words: _Words, i: int, j: int) -> tuple[int, int]:
    """How many written and spoken words lie before the next pair; all of them if there is none.

    The nearest pair counts that is followed by another one, else the nearest: a single word such
    as "and" is also spoken within amounts.
    """
    left = len(words.written) - i, len(words.spoken) - j
    alone: tuple[int, int] | None = None
    for distance in range(min(left[0], _LOOK_AHEAD[0]) + min(left[1], _LOOK_AHEAD[1]) + 1):
        if alone is not None and distance > sum(alone) + _FURTHER:
            break
        for a in range(min(distance, _LOOK_AHEAD[0], left[0] - 1) + 1):
            b = distance - a
            if b > _LOOK_AHEAD[1] or not (count := words.paired(i + a, j + b)):
                continue
            if distance == 0 or words.paired(i + a + 1, j + b + count):
                return a, b
            alone = alone or (a, b)
    return alone or left


def _block(written: Sequence[Written], count: int) -> list[tuple[int, int]]:
    """The spans of ``count`` spoken words that stand for ``written``, none of which equals one.

    From both ends, a word of letters alone is one spoken word: a shortened or a romanized one.
    """
    if not written:
        return []
    first, last = 0, len(written)
    before: list[tuple[int, int]] = []
    after: list[tuple[int, int]] = []
    while last - first > 1 and count - len(before) - len(after) > 1:
        if written[first].is_plain:
            before.append((written[first].start, written[first].end))
            first += 1
        elif written[last - 1].is_plain:
            last -= 1
            after.insert(0, (written[last].start, written[last].end))
        else:
            break
    middle = (written[first].start, written[last - 1].end)
    return [*before, *[middle] * (count - len(before) - len(after)), *after]


def _beside(
    written: Sequence[Written], at: int, found: Sequence[tuple[int, int]]
) -> tuple[int, int]:
    """The span of the written word before a spoken one that nothing was written for."""
    if found:
        return found[-1]
    word = written[min(at, len(written) - 1)]
    return word.start, word.end


def _key(word: str) -> str:
    """What two spellings of a word have in common."""
    return _NO_LETTER.sub("", unicodedata.normalize("NFC", word)).casefold()
