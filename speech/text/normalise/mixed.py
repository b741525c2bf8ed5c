"""Writes out tokens of letters and digits (CO2, COVID-19, 5G), and all remaining figures."""

from __future__ import annotations

import re

from speech.text.normalise.locale import Locale
from speech.text.normalise.numbers import figures, numbers
from speech.text.normalise.numbers.figures import FIGURE

_TOKEN = re.compile(
    r"(?<![\w.,])(?=[A-Za-z]{0,40}[-]?\d)(?!\d+(?![A-Za-z\d-]))[A-Za-z\d]++(?:-[A-Za-z\d]++)*+"
)
_JOINED = re.compile(r"(?<=[A-Za-z])-(?=\d+\.\d)")
_PART = re.compile(r"\d++|[A-Z]{1,2}(?![A-Za-z])|[A-Za-z]++")
_ELEMENTS = (
    "H|He|Li|Be|B|C|N|O|F|Ne|Na|Mg|Al|Si|P|S|Cl|K|Ca|Cr|Mn|Fe|Co|Ni|Cu|Zn|Br|Ag|Sn|I|Ba|Au|Hg|Pb|U"
)
_FORMULA = re.compile(rf"(?:(?:{_ELEMENTS})\d{{0,2}}){{1,12}}\Z")
_ATOM = re.compile(
    rf"(?P<element>{'|'.join(sorted(_ELEMENTS.split('|'), key=len, reverse=True))})(?P<count>\d{{0,2}})"
)
_FIGURE = re.compile(FIGURE)


def written_out(text: str, locale: Locale) -> str:
    """Write every remaining digit of ``text`` in words. Apply it last."""
    if not any(map(str.isdecimal, text)):
        return text
    text = _JOINED.sub(" ", text)
    text = _TOKEN.sub(lambda match: _token(match[0], locale), text)
    return _FIGURE.sub(lambda match: _figure(match, locale), text)


def _token(token: str, locale: Locale) -> str:
    if not re.search("[A-Za-z]", token) or not re.search(r"\d", token):
        return token
    if len(token) <= 12 and re.search("[A-Z]", token) and _FORMULA.match(token):
        return _formula(token, locale)
    words: list[str] = []
    for part in _PART.findall(token):
        if part.isdecimal():
            words.append(_number(part, locale))
        elif part.isupper() and len(part) <= 2:
            words.append(" ".join(part))
        else:
            words.append(part)
    return " ".join(words)


def _formula(token: str, locale: Locale) -> str:
    """A chemical formula, letter by letter."""
    words: list[str] = []
    for atom in _ATOM.finditer(token):
        words += list(atom["element"].upper())
        if atom["count"]:
            words.append(_number(atom["count"], locale))
    return " ".join(words)


def _number(figure: str, locale: Locale) -> str:
    if len(figure) > 4 or (figure[0] == "0" and len(figure) > 1):
        return numbers.digits(figure, locale)
    return numbers.cardinal(int(figure), locale)


def _figure(match: re.Match[str], locale: Locale) -> str:
    """Write out a figure, with spaces between its words and adjacent letters."""
    text = match.string
    before = " " if match.start() and text[match.start() - 1].isalnum() else ""
    after = " " if text[match.end() : match.end() + 1].isalnum() else ""
    return f"{before}{figures.spoken(match[0], locale)}{after}"
