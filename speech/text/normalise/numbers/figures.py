"""The spelling of figures: groups of thousands or lakhs by comma, space or point; decimals.

``canonical`` rewrites every spelling to one: commas between groups and a point before decimals.
The other rules match only that, with ``FIGURE``; ``spoken`` writes it in words.
"""

from __future__ import annotations

import re

from speech.text.normalise.locale import Locale
from speech.text.normalise.numbers import numbers

FIGURE = r"(?:\d++(?:,\d{2,3}(?!\d))*+(?:\.\d++)?+|(?<!\.)\.\d++)"
"""A figure without its sign."""
START = r"(?<![\w.])(?<!\d,)"
"""A lookbehind for the characters that may not precede a figure."""

_WESTERN = re.compile(r"\d{1,3}(?:,\d{3})+\Z")
_LAKHS = re.compile(r"\d{1,2}(?:,\d{2})+,\d{3}\Z")
_SPACES = "\u00a0\u2009\u202f\u2007"
_SPACED = re.compile(
    rf"(?<![\w.,+])\d{{1,3}}+(?:[{_SPACES}]\d{{3}}(?!\d))++"
    r"|(?<![\w.,+-])(?<!\d )\d{1,3}+(?:(?: \d{3}(?!\d)){2,}+| 000(?!\d))(?! \d)"
)
_POINTED = re.compile(r"(?<![\w.,])\d{1,3}+(?:\.\d{3}(?!\d))++(?:,\d{1,2}(?!\d))(?![.,]\d)")
_EURO_BEFORE = re.compile(r"(?<=€)\s?\d{1,3}+(?:\.\d{3}(?!\d))*+(?:,\d{1,2}(?!\d))?+(?![.,]?\d)")
_EURO_AFTER = re.compile(
    r"(?<![\w.,€])\d{1,3}+(?:\.\d{3}(?!\d))*+(?:,\d{1,2}(?!\d))?+(?=\s?(?:€|EUR|euros?\b))"
)
_COMMAS = re.compile(r"(?<![\w.])\d++(?:,\d++)++")


def canonical(text: str) -> str:
    """Rewrite the figures of ``text``: ``1,000,000.5``, ``1,00,000``, ``1000000``."""
    text = _SPACED.sub(lambda match: re.sub(r"\s", ",", match[0]), text)
    for pattern in (_POINTED, _EURO_BEFORE, _EURO_AFTER):
        text = pattern.sub(_swapped, text)
    return _COMMAS.sub(_grouped_or_listed, text)


def _swapped(match: re.Match[str]) -> str:
    """Swap the points between groups and the comma before decimals."""
    return match[0].replace(".", "\0").replace(",", ".").replace("\0", ",")


def _grouped_or_listed(match: re.Match[str]) -> str:
    if _WESTERN.match(match[0]) or _LAKHS.match(match[0]):
        return match[0]
    if re.fullmatch(r"0,\d+", match[0]):
        return match[0].replace(",", ".")
    return match[0].replace(",", ", ")


def is_indian(figure: str) -> bool:
    """Whether a canonical figure has Indian groups of digits."""
    return bool(_LAKHS.match(figure.partition(".")[0]))


def spoken(figure: str, locale: Locale) -> str:
    """A canonical figure in words. Digits one by one: leading zeros, and above 10^15."""
    whole, _, decimals = figure.partition(".")
    plain = whole.replace(",", "")
    if (
        (len(plain) > 1 and plain[0] == "0")
        or len(plain) > 16
        or int(plain or "0") > numbers.GREATEST
    ):
        words = numbers.groups(numbers.chunked(plain), locale)
    else:
        lakhs = True if is_indian(figure) else False if "," in whole else None
        words = numbers.cardinal(int(plain or "0"), locale, lakhs=lakhs)
    if not decimals:
        return words
    return f"{words} {numbers.point(locale)} {numbers.digits(decimals, locale)}"


def value(figure: str) -> float:
    """The value of a canonical figure."""
    return float(figure.replace(",", ""))


_ARTICLE = re.compile(r"(?<!\w)[Aa]n? \Z")
_NOUN = re.compile(r"-? ?[a-z]{2}")


def is_compound(match: re.Match[str]) -> bool:
    """Whether a measure stands between an article and a noun and so is singular: a 5 km run."""
    before = _ARTICLE.search(match.string, max(0, match.start() - 4), match.start())
    return bool(before and _NOUN.match(match.string, match.end()))


def is_one(figure: str) -> bool:
    """Whether a noun after the figure is singular."""
    return figure.replace(",", "") == "1"
