"""Writes out names of letters and digits (``CO2``, ``COVID-19``, ``5G``), and every figure that is left."""

from __future__ import annotations

import re

from speech.text.normalise import codes, numbers
from speech.text.normalise.locale import Locale
from speech.text.normalise.numbers import FIGURE

_TOKEN = re.compile(
    r"(?<![\w.,])(?=[A-Za-z]{0,40}[-]?\d)(?!\d+(?![A-Za-z\d-]))[A-Za-z\d]++(?:-[A-Za-z\d]++)*+"
)
_JOINED = re.compile(r"(?<=[A-Za-z])-(?=\d+\.\d)")
_WITH_VERSION = re.compile(
    r"(?<![\w.])(?P<name>[A-Za-z]{2,12})(?P<figure>\d{1,3}(?:\.\d{1,3}){1,3})(?!\w|\.\d)"
)
"""A name and a version in one: ``python3.11``, ``PM2.5``."""
_ANY_VERSION = re.compile(r"(?<=\d)\.x(?!\w)")
_AFTER_WORD = re.compile(r"(?<=[a-z]{2})\.(?=\d{1,3}(?!\d))")
_POINT_IN_NAME = re.compile(r"(?<=\b[A-Z])\.(?=\d)")
_PART = re.compile(r"\d++|[A-Z]{1,2}(?![A-Za-z])|[A-Za-z]++")
_SEVERAL = re.compile(r"(?P<one>[A-Z]{1,3}-?\d{1,2})s")
"""Several of one model: ``F-16s``."""
_LONG_TOKEN = 9
"""Characters from which a name of letters and digits is a code, read digit by digit."""
_ELEMENTS = (
    "H|He|Li|Be|B|C|N|O|F|Ne|Na|Mg|Al|Si|P|S|Cl|K|Ca|Cr|Mn|Fe|Co|Ni|Cu|Zn|Br|Ag|Sn|I|Ba|Au|Hg|Pb|U"
)
_FORMULA = re.compile(rf"(?:(?:{_ELEMENTS})\d{{0,2}}){{1,12}}\Z")
_ATOM = re.compile(
    rf"(?P<element>{'|'.join(sorted(_ELEMENTS.split('|'), key=len, reverse=True))})(?P<count>\d{{0,2}})"
)
_FIGURE = re.compile(FIGURE)


def remaining_written_out(text: str, locale: Locale) -> str:
    """Write every remaining digit of ``text`` in words. Apply it last."""
    if not any(map(str.isdecimal, text)):
        return text
    if "." in text:
        text = _ANY_VERSION.sub(f" {numbers.point(locale)} x", text)
        text = _WITH_VERSION.sub(lambda match: _with_version(match, locale), text)
        text = _AFTER_WORD.sub(f" {numbers.point(locale)} ", text)
    text = _JOINED.sub(" ", text)
    text = _POINT_IN_NAME.sub(" डॉट " if locale.is_hindi else " dot ", text)
    text = _TOKEN.sub(lambda match: _token(match[0], locale), text)
    return _FIGURE.sub(lambda match: _figure(match, locale), text)


def _token(token: str, locale: Locale) -> str:
    if not re.search("[A-Za-z]", token) or not re.search(r"\d", token):
        return token
    if len(token) <= 12 and re.search("[A-Z]", token) and _FORMULA.match(token):
        return _formula(token, locale)
    words: list[str] = []
    is_long = len(token) >= _LONG_TOKEN and "-" not in token
    if not locale.is_hindi and (several := _SEVERAL.fullmatch(token)):
        return numbers.plural(_token(several["one"], locale))
    for part in _PART.findall(token):
        if part.isdecimal():
            words.append(_in_token(part, locale, digits=is_long))
        elif part.isupper() and len(part) <= 2:
            words.append(" ".join(part))
        else:
            words.append(part)
    return " ".join(words)


def _with_version(match: re.Match[str], locale: Locale) -> str:
    name = match["name"]
    said = " ".join(name) if len(name) == 2 and name.isupper() else name
    return f"{said} {codes.pointed(match['figure'], locale)}"


def _formula(token: str, locale: Locale) -> str:
    """A chemical formula, letter by letter."""
    words: list[str] = []
    for atom in _ATOM.finditer(token):
        words += list(atom["element"].upper())
        if atom["count"]:
            words.append(_number(atom["count"], locale))
    return " ".join(words)


def _in_token(figure: str, locale: Locale, *, digits: bool) -> str:
    """The figure of a name: digits in a long one, else four digits in two halves, as a year."""
    if digits:
        return numbers.digits(figure, locale)
    return (
        numbers.year(int(figure), locale)
        if re.match(r"[1-9]\d{3}\Z", figure)
        else _number(figure, locale)
    )


def _number(figure: str, locale: Locale) -> str:
    if len(figure) > 4 or (figure[0] == "0" and len(figure) > 1):
        return numbers.digits(figure, locale)
    return numbers.cardinal(int(figure), locale)


def _figure(match: re.Match[str], locale: Locale) -> str:
    """Write out a figure, with spaces between its words and adjacent letters."""
    text = match.string
    before = " " if match.start() and text[match.start() - 1].isalnum() else ""
    after = " " if text[match.end() : match.end() + 1].isalnum() else ""
    return f"{before}{numbers.spoken(match[0], locale)}{after}"
