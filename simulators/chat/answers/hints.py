"""Finds values in the text of the user, for arguments and structured answers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

_QUOTED = re.compile(r"[\"“']([^\"“”']+)[\"”'](?!\w)")
_NUMBER = re.compile(r"(?<![\w.-])-?\d+(?:\.\d+)?(?![\w-]|\.\d)")
_CAPITALISED = re.compile(r"(?<!\w)[A-Z][\w'-]*(?: [A-Z][\w'-]*)*")
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class Hints:
    """The quoted strings, proper names and numbers of a text, each in order."""

    text: str = ""
    quoted: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    numbers: tuple[float, ...] = ()

    def mention(self, phrase: str) -> bool:
        """Whether the text contains ``phrase`` as whole words, in any case."""
        return bool(re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", self.text, re.IGNORECASE))

    def turned(self, by: int) -> Hints:
        """Rotate the hints ``by`` places, so that several calls take different values."""
        return Hints(
            self.text,
            _turn(self.quoted, by),
            _turn(self.names, by),
            _turn(self.numbers, by),
        )


def hints_in(text: str) -> Hints:
    """Find the hints in ``text``. A capitalised word at the start of a sentence alone is no name."""
    names = []
    for match in _CAPITALISED.finditer(text):
        name = match[0]
        if _begins_a_sentence(text, match.start()):
            name = name.partition(" ")[2]
        if name and name != "I":
            names.append(name)
    return Hints(
        text=text,
        quoted=tuple(match[1] for match in _QUOTED.finditer(text)),
        names=tuple(names),
        numbers=tuple(float(match[0]) for match in _NUMBER.finditer(text)),
    )


def words(text: str) -> list[str]:
    """Return the words of ``text`` in lower case; ``getWeather`` and ``get_weather`` are two each."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    return [word.lower() for word in _WORD.findall(spaced)]


def _turn(values: tuple[T, ...], by: int) -> tuple[T, ...]:
    if not values:
        return values
    by %= len(values)
    return values[by:] + values[:by]


def _begins_a_sentence(text: str, at: int) -> bool:
    """Whether ``at`` is the beginning of the text, or follows a stop or a new line."""
    before = at
    while before and text[before - 1].isspace() and text[before - 1] != "\n":
        before -= 1
    return at == 0 or (before > 0 and text[before - 1] in ".!?:\n")
