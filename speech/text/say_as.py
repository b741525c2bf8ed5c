"""Writes the text of a ``say-as`` element so that later steps read it as it asks to be read."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Final

_SIGNS: Final = {
    "-": "dash", ".": "dot", ",": "comma", "/": "slash", "\\": "backslash", "@": "at", "_": "underscore",
    "+": "plus", "#": "hash", "*": "star", "&": "and", "%": "percent", "=": "equals", ":": "colon",
    ";": "semicolon", "!": "exclamation mark", "?": "question mark", "'": "apostrophe", '"': "quote",
    "(": "open bracket", ")": "close bracket", "<": "less than", ">": "greater than", "$": "dollar",
    "|": "bar", "~": "tilde",
}  # fmt: skip
_FIGURE = re.compile(r"\d+")
_DIALLED = re.compile(r"\d+|(?:[^\W\d_][\u0300-\u036f\u0900-\u0963]*)+|[*#]")
_KEYS: Final = {"*": "star", "#": "hash"}
_EXTENSION: Final = ("x", "ext", "extn", "extension")
_FIGURES = re.compile(r"\d{1,8}")
_ENDINGS: Final = {1: "st", 2: "nd", 3: "rd"}
_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_DATE_PARTS = re.compile(r"[ymd]{1,3}")
_LENGTHS: Final = {"y": 4, "m": 2, "d": 2}
_PIVOT: Final = 50
"""Years of two digits below it are of this century."""


def words(text: str, kind: str, form: str) -> str:
    """``text`` as ``interpret-as`` (``kind``) and ``format`` (``form``) ask; unchanged for others."""
    read = _KINDS.get(kind.strip().lower())
    return text if read is None else read(" ".join(text.split()), form.strip().lower())


def _characters(text: str, _form: str) -> str:
    """Each letter, digit and sign by itself; a vowel sign stays with its letter."""
    spelled: list[str] = []
    for character in text:
        if spelled and unicodedata.category(character).startswith("M"):
            spelled[-1] += character
        elif character.isalnum():
            spelled.append(character.upper())
        elif character in _SIGNS:
            spelled.append(_SIGNS[character])
    return " ".join(spelled)


def _digits(text: str, _form: str) -> str:
    return _FIGURE.sub(lambda figure: f" {' '.join(figure[0])} ", text)


def _ordinal(text: str, _form: str) -> str:
    """``3`` as ``3rd``, which later rules read in every language."""
    if not _FIGURES.fullmatch(text):
        return text
    number = int(text)
    ending = "th" if number % 100 in (11, 12, 13) else _ENDINGS.get(number % 10, "th")
    return f"{number}{ending}"


def _telephone(text: str, _form: str) -> str:
    """Groups of digits and words, with a comma between them for a short pause; keys by name."""
    if not _FIGURE.search(text):
        return text
    groups: list[str] = []
    before = "plus " if text.startswith("+") else ""
    for part in _DIALLED.findall(text):
        if part in _KEYS:
            before += f"{_KEYS[part]} "
        elif part.casefold() in _EXTENSION:
            before += "extension "
        else:
            groups.append(before + (" ".join(part) if part.isdecimal() else part))
            before = ""
    return ", ".join(filter(None, [*groups, before.strip()]))


def _date(text: str, form: str) -> str:
    """A date in an order that every locale reads alike; unchanged when it is none."""
    if not _DATE_PARTS.fullmatch(form) or len(set(form)) < len(form):
        return text
    figures = _FIGURES.findall(text)
    if len(figures) == 1 and len(figures[0]) == sum(_LENGTHS[part] for part in form):
        figures = _cut(figures[0], form)
    if len(figures) != len(form):
        return text
    part = dict(zip(form, map(int, figures), strict=True))
    if not (1 <= part.get("m", 1) <= 12 and 1 <= part.get("d", 1) <= 31):
        return text
    if "y" in part and part["y"] < 100:
        part["y"] += 2000 if part["y"] < _PIVOT else 1900
    if len(form) == 3:
        return f"{part['y']:04}-{part['m']:02}-{part['d']:02}"
    named = {**{name: str(value) for name, value in part.items()}}
    if "m" in part:
        named["m"] = _MONTHS[part["m"] - 1]
    return " ".join(named[name] for name in (form if "y" not in form else sorted(form)))


def _cut(figure: str, form: str) -> list[str]:
    found: list[str] = []
    for part in form:
        found.append(figure[: _LENGTHS[part]])
        figure = figure[_LENGTHS[part] :]
    return found


def _time(text: str, _form: str) -> str:
    """``1430`` as ``14:30``; other forms are read anyway."""
    figure = re.match(r"(\d{2})(\d{2})(\d{2})?(?!\d)", text)
    if figure is None:
        return text
    return ":".join(filter(None, figure.groups())) + text[figure.end() :]


_KINDS: Final[dict[str, Callable[[str, str], str]]] = {
    "characters": _characters,
    "spell-out": _characters,
    "verbatim": _characters,
    "digits": _digits,
    "ordinal": _ordinal,
    "telephone": _telephone,
    "date": _date,
    "time": _time,
}
