"""An account's own pronunciations: which words of a text are spoken in another way.

A word is found whole, whatever its case unless its entry says otherwise, and in a longer match before
a shorter one. Words are replaced after Markdown and before figures and signs are written out, so
neither sentences nor metered characters change (docs/explain/speech-text.md, Pronunciations).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import accumulate
from operator import itemgetter
from typing import Final

MOST_GROWTH: Final = (2, 100)
"""Code points that pronunciations may add to a whole text: twice its own and these (``Growth``)."""

_MARK: Final = "\u0300-\u036f\u0900-\u0963\u200c\u200d"
_TOKEN: Final = re.compile(rf"[\w{_MARK}]+|\s+|.", re.DOTALL)
_IS_WORD: Final = re.compile(r"\w")
_APOSTROPHES: Final = frozenset("'\u2019")
_IN_NUMBERS: Final = frozenset(".,:")
_STAND_IN: Final = "Qzx"
STAND_IN: Final = re.compile(rf"\b({_STAND_IN}[a-z]{{2}})\b")
"""A stand-in in a text."""
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
MOST_STAND_INS: Final = len(_LETTERS) ** 2
"""Of one sentence; further words are read as they are written."""


def stand_in(number: int) -> str:
    """The stand-in of a text's word of that number, below ``MOST_STAND_INS``."""
    figures = divmod(number, len(_LETTERS))
    return _STAND_IN + "".join(_LETTERS[figure] for figure in figures)


class Alphabet(StrEnum):
    """How a pronunciation is written."""

    RESPELLING = "respelling"
    IPA = "ipa"


@dataclass(frozen=True, slots=True)
class Pronunciation:
    """``word``, which may be several, is spoken as ``spoken``; ``language`` "": in every language."""

    word: str
    spoken: str
    alphabet: Alphabet = Alphabet.RESPELLING
    language: str = ""
    case_sensitive: bool = False


@dataclass(frozen=True, slots=True)
class Match:
    """Where a word of ``entry`` stands in a text."""

    start: int
    end: int
    entry: Pronunciation


@dataclass(frozen=True, slots=True)
class StandIn:
    """A word that stands for another one, spoken as ``ipa``, in the text that an engine gets."""

    stand_in: str
    word: str
    ipa: str


@dataclass(frozen=True, slots=True)
class _Tokens:
    """The words, blanks and single signs of a text: as ``exact`` and ``folded`` keys, and where they are.

    ``starts`` has the end of the text as its last.
    """

    exact: list[str]
    folded: list[str]
    starts: list[int]

    @classmethod
    def of(cls, text: str) -> _Tokens:
        found = _TOKEN.findall(text)
        starts = [*accumulate(map(len, found), initial=0)]
        exact = [" " if token.isspace() else token for token in found]
        if not unicodedata.is_normalized("NFC", text):
            exact = [unicodedata.normalize("NFC", token) for token in exact]
        return cls(exact, [token.casefold() for token in exact], starts)

    def is_joined(self, apostrophe: int) -> bool:
        """Whether the token is an apostrophe within a word."""
        return (
            0 < apostrophe < len(self.exact) - 1
            and self.exact[apostrophe] in _APOSTROPHES
            and _IS_WORD.match(self.exact[apostrophe - 1]) is not None
            and _IS_WORD.match(self.exact[apostrophe + 1]) is not None
        )

    def is_in_number(self, sign: int) -> bool:
        """Whether the token is a point, comma or colon between the figures of one number."""
        return (
            0 < sign < len(self.exact) - 1
            and self.exact[sign] in _IN_NUMBERS
            and self.exact[sign - 1][-1].isdecimal()
            and self.exact[sign + 1][0].isdecimal()
        )


def word_key(word: str, *, case_sensitive: bool) -> str:
    """The key by which two entries are about the same word."""
    tokens = _Tokens.of(word)
    return "".join(tokens.exact if case_sensitive else tokens.folded)


@dataclass(slots=True)
class _Node:
    """What may follow the tokens on the way to it, and the entries of the word that they are.

    The number of an entry is its rank.
    """

    after: dict[str, _Node] = field(default_factory=dict)
    folded: tuple[int, Pronunciation] | None = None
    exact: dict[str, tuple[int, Pronunciation]] = field(default_factory=dict)

    def add(self, rank: int, entry: Pronunciation) -> None:
        if entry.case_sensitive:
            self.exact.setdefault(word_key(entry.word, case_sensitive=True), (rank, entry))
        elif self.folded is None:
            self.folded = rank, entry

    def entry(self, tokens: list[str]) -> Pronunciation | None:
        """The first entry of the word that is written as ``tokens``."""
        found = [self.folded] if self.folded is not None else []
        if self.exact and (exact := self.exact.get("".join(tokens))) is not None:
            found.append(exact)
        return min(found, key=itemgetter(0))[1] if found else None


class Growth:
    """What pronunciations may still add to what a request or session speaks, in code points.

    Only the text itself is metered. So the whole text earns what is added: were it each sentence, many
    short ones would be spoken for hours at the price of minutes.
    """

    def __init__(self, left: int = MOST_GROWTH[1]) -> None:
        self._left = self._began_with = left

    def begin(self, characters: int) -> None:
        """Begin a sentence in which so many ``characters`` are metered."""
        self._left += MOST_GROWTH[0] * characters
        self._began_with = self._left

    def take(self, characters: int) -> bool:
        """Add so many to the sentence; False where that is too much, and then none are."""
        if characters > self._left:
            return False
        self._left -= max(0, characters)
        return True

    def again(self) -> Growth:
        """What there was at the beginning of the sentence, to find the same words in it once more."""
        return Growth(self._began_with)

    def forget(self) -> None:
        """Take back what was earned: a text that earned some is not charged."""
        self._left = min(self._left, MOST_GROWTH[1])


class Lexicon:
    """The pronunciations that hold for one voice.

    A tree of tokens, so that the time of a search does not grow with the number of entries.
    """

    def __init__(self, entries: Iterable[Pronunciation] = ()) -> None:
        """Of entries for the same word, an earlier one counts before a later one."""
        self._root = _Node()
        for rank, entry in enumerate(entries):
            node = self._root
            for token in _Tokens.of(entry.word).folded:
                node = node.after.setdefault(token, _Node())
            node.add(rank, entry)

    def __bool__(self) -> bool:
        return bool(self._root.after)

    def matches(self, text: str, growth: Growth) -> list[Match]:
        """The words of the lexicon in ``text``, in order, those left out that ``growth`` refuses."""
        tokens = _Tokens.of(text)
        if self._root.after.keys().isdisjoint(tokens.folded):
            return []
        found: list[Match] = []
        at = 0
        while at < len(tokens.folded):
            end, entry = self._longest(tokens, at)
            if entry is not None:
                match = Match(tokens.starts[at], tokens.starts[end], entry)
                if growth.take(len(entry.spoken) - (match.end - match.start)):
                    found.append(match)
            at = end
        return found

    def _longest(self, tokens: _Tokens, at: int) -> tuple[int, Pronunciation | None]:
        """The end of the longest word that begins at the token, and its entry; else the next token."""
        found: tuple[int, Pronunciation | None] = (at + 1, None)
        # As the "t" of "don't", and the "50" of "3.50".
        if tokens.is_joined(at - 1) or tokens.is_in_number(at - 1):
            return found
        node, end = self._root, at
        while end < len(tokens.folded) and (after := node.after.get(tokens.folded[end])):
            node, end = after, end + 1
            if tokens.is_joined(end) and tokens.folded[end + 1] != "s":
                continue  # as the "can" of "can't", but for the "Anna" of "Anna's"
            if tokens.is_in_number(end):
                continue
            if (entry := node.entry(tokens.exact[at:end])) is not None:
                found = end, entry
        return found

    def replaced(self, text: str, stand_ins: list[StandIn], growth: Growth) -> str:
        """``text`` with respellings; a word that is spoken as IPA gets one more of ``stand_ins``."""
        pieces: list[str] = []
        after = 0
        for match in self.matches(text, growth):
            spoken = match.entry.spoken
            if match.entry.alphabet is Alphabet.IPA:
                if len(stand_ins) >= MOST_STAND_INS:
                    continue
                word, ipa = text[match.start : match.end], spoken
                spoken = stand_in(len(stand_ins))
                stand_ins.append(StandIn(spoken, word, ipa))
            pieces += [text[after : match.start], spoken]
            after = match.end
        return "".join([*pieces, text[after:]])


NO_PRONUNCIATIONS: Final = Lexicon()
