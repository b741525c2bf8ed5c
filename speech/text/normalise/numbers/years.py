# ruff: noqa: RUF001  # signs that look like others are the point
"""Writes out years and decades, whose four digits are spoken in two halves."""

from __future__ import annotations

import re

from speech.text.normalise.locale import Locale
from speech.text.normalise.numbers import numbers

_DECADE = re.compile(r"(?<![\w.,$€£₹])(?P<century>1[1-9]|20)(?P<tens>\d)0['’]?s(?!\w)")
_SHORT_DECADE = re.compile(
    r"(?<!\w)(?:['’](?P<marked>[2-9])0['’]?s"
    r"|(?P<before>(?:in|the|his|her|their|my|your|our|mid|early|late)[ -])(?P<plain>[2-9])0['’]?s)(?!\w)"
)
_TENS = {
    1: "tens", 2: "twenties", 3: "thirties", 4: "forties", 5: "fifties", 6: "sixties",
    7: "seventies", 8: "eighties", 9: "nineties",
}  # fmt: skip
_ENGLISH = re.compile(
    r"(?P<lead>\b[A-Za-z]+['’]?s? )?(?<![\w.,:/$€£₹^+-])(?P<year>1\d\d\d|20\d\d)(?![\w:/%°^]|[.,]\d|-\w)"
    r"(?= (?P<next>[a-z]{3,}))?"
)
_COUNTED = re.compile(
    r"(?:about|over|nearly|almost|than|exactly|only|another|all|these|those|has|have|had|were|are|"
    r"with|cost|costs|least|most|page|pages|room|number|some|contains|got|sold|bought|counted) \Z",
    re.IGNORECASE,
)
_NOT_PLURAL = frozenset(
    [
        "was",
        "is",
        "has",
        "this",
        "its",
        "as",
        "does",
        "us",
        "always",
        "plus",
        "versus",
        "series",
        "perhaps",
        "besides",
        "towards",
        "across",
        "thus",
        "unless",
        "afterwards",
        "yes",
        "less",
    ]
)
_PLURAL = frozenset(["people", "men", "women", "children"])
_OF_THE_YEAR = re.compile(
    r"(?:in|since|the|of|by|until|till|from|year|this|that|our|its|['’]s) \Z", re.IGNORECASE
)
_HINDI = re.compile(
    r"(?P<lead>(?:से|सन्|सन|साल|वर्ष|वर्ष:|ईस्वी|san|saal|year) )?(?<![\w.,:/$€£₹^+-])(?P<year>1[1-9]\d\d)"
    r"(?![\w:/%°^]|[.,]\d|-\w)(?P<next>(?= ?(?:में|से|तक|के|का|की|ई\.|ईस्वी|mein|me|se|tak|ke|ka|ki)(?![\w\u0900-\u097f])))?"
)
_HINDI_DECADE = re.compile(r"(?<![\w.,])(?P<year>(?:1[1-9]|20)\d0)['’]?s(?!\w)")


def decades_written_out(text: str, locale: Locale) -> str:
    """Write the decades of ``text`` in words, before an ``s`` is read as seconds."""
    if locale.is_hindi:
        return _HINDI_DECADE.sub(lambda match: f"{_year(match, locale)} का दशक", text)
    text = _DECADE.sub(lambda match: _decade(match, locale), text)
    return _SHORT_DECADE.sub(
        lambda match: (match["before"] or "") + _TENS[int(match["marked"] or match["plain"])], text
    )


def written_out(text: str, locale: Locale) -> str:
    """Write the years of ``text`` in words, after dates, times, money and measures."""
    if not any(map(str.isdecimal, text)):
        return text
    if locale.is_hindi:
        return _HINDI.sub(lambda match: _hindi(match, locale), text)
    return _ENGLISH.sub(lambda match: _english(match, locale), text)


def _year(match: re.Match[str], locale: Locale) -> str:
    return numbers.year(int(match["year"]), locale)


def _hindi(match: re.Match[str], locale: Locale) -> str:
    if match["lead"] is None and match["next"] is None:
        return match[0]
    return (match["lead"] or "") + _year(match, locale)


def _decade(match: re.Match[str], locale: Locale) -> str:
    century, tens = int(match["century"]), int(match["tens"])
    if tens:
        return f"{numbers.cardinal(century, locale)} {_TENS[tens]}"
    if century == 20:
        return "two thousands"
    return f"{numbers.cardinal(century, locale)} hundreds"


def _english(match: re.Match[str], locale: Locale) -> str:
    lead, after = match["lead"] or "", match["next"] or ""
    counts = (
        after.endswith("s") and not after.endswith(("ss", "us", "is")) and after not in _NOT_PLURAL
    ) or after in _PLURAL
    if (counts and not _OF_THE_YEAR.search(lead)) or (after and _COUNTED.search(lead)):
        return match[0]
    if match["year"] < "1100" and (counts or not _OF_THE_YEAR.search(lead)):
        return match[0]
    return lead + _year(match, locale)
