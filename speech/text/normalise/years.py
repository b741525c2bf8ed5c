"""Writes out years, decades and seasons. The four digits of a year are spoken in two halves."""

from __future__ import annotations

import re

from speech.text.language import WORD_END
from speech.text.normalise import numbers
from speech.text.normalise.locale import Locale

# ruff: noqa: RUF001  # signs that look like others are the point


_DECADE = re.compile(r"(?<![\w.,$€£₹])(?P<century>1[1-9]|20)(?P<tens>\d)0['’]?s(?!\w)")
_SHORT_DECADE = re.compile(
    r"(?<!\w)(?:['’](?P<marked>[2-9])0['’]?s"
    r"|(?P<before>(?:in(?= \d0['’]?s [A-Z])|the|his|her|their|my|your|our|mid|early|late)[ -])(?P<plain>[2-9])0['’]?s"
    r"|(?P<alone>[2-9])0s(?= (?:music|era|style|hits|fashion|disco|rock|pop|films?|movies?|songs?|shows?|sitcom|kids?|vibes?|party|night)\b))(?!\w)"
)
_TENS = {
    1: "tens", 2: "twenties", 3: "thirties", 4: "forties", 5: "fifties", 6: "sixties",
    7: "seventies", 8: "eighties", 9: "nineties",
}  # fmt: skip
_ENGLISH = re.compile(
    r"(?P<lead>\b[A-Za-z]+['’]?s? )?(?<![\w.,:/$€£₹^+-])(?P<year>1\d\d\d|20\d\d)(?![\w/%°^]|:\S|[.,]\d|-\w)"
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
    r"(?:in|since|circa|the|of|by|until|till|from|year|this|that|our|its|['’]s) \Z", re.IGNORECASE
)
_HINDI = re.compile(
    r"(?P<lead>(?:से|सन्|सन|साल|वर्ष|वर्ष:|ईस्वी|san|saal|year) )?(?<![\w.,:/$€£₹^+-])(?P<year>1[1-9]\d\d)"
    rf"(?![\w:/%°^]|[.,]\d|-\w)(?P<next>(?= ?(?:में|से|तक|के|का|की|ई\.|ईस्वी|mein|me|se|tak|ke|ka|ki){WORD_END}))?"
)
_FISCAL = re.compile(
    r"\bFY ?['’](?P<short>\d\d)(?!\w)|\bFY ?(?P<year>(?:19|20)\d\d)(?:[-–](?P<next>\d\d))?(?![\w-])|\bQ(?P<quarter>[1-4]) ?['’](?P<of>\d\d)(?!\w)"
)
_SEASON = re.compile(
    r"(?<![\w.,:/$€£₹^+-])(?P<year>(?:19|20)\d\d)(?P<sign>[-–/])(?P<next>\d\d)(?![\w/]|[.,-]\d)"
)
_HINDI_DECADE = re.compile(r"(?<![\w.,])(?P<year>(?:1[1-9]|20)\d0)['’]?s(?!\w)")


_SHORT_YEAR = re.compile(
    r"(?P<lead>\b(?:of|in|since|[Ss]pring|[Ss]ummer|[Ff]all|[Aa]utumn|[Ww]inter) )['’](?P<year>\d\d)(?![\w'’])"
)


def seasons_written_out(text: str, locale: Locale) -> str:
    """Write ``2020-21`` and ``class of '09`` in words, before dates with other signs."""
    text = _SHORT_YEAR.sub(lambda match: _short_year(match, locale), text)
    return _SEASON.sub(lambda match: _season(match, locale), text)


def decades_written_out(text: str, locale: Locale) -> str:
    """Write the decades of ``text`` in words, before an ``s`` is read as seconds."""
    if locale.is_hindi:
        return _HINDI_DECADE.sub(lambda match: f"{_year(match, locale)} का दशक", text)
    text = _DECADE.sub(lambda match: _decade(match, locale), text)
    return _SHORT_DECADE.sub(
        lambda match: (
            (match["before"] or "")
            + _TENS[int(match["marked"] or match["plain"] or match["alone"])]
        ),
        text,
    )


def years_written_out(text: str, locale: Locale) -> str:
    """Write the years of ``text`` in words, after dates, times, money and measures."""
    if not any(map(str.isdecimal, text)):
        return text
    text = _FISCAL.sub(lambda match: _fiscal(match, locale), text)
    if locale.is_hindi:
        return _HINDI.sub(lambda match: _hindi(match, locale), text)
    return _ENGLISH.sub(lambda match: _english(match, locale), text)


def _year(match: re.Match[str], locale: Locale) -> str:
    return numbers.year(int(match["year"]), locale)


def _season(match: re.Match[str], locale: Locale) -> str:
    """Two years that follow each other: the 2020-21 season."""
    year, following = int(match["year"]), int(match["next"])
    if (year + 1) % 100 != following:
        return match[0]
    words = numbers.cardinal(following or 2000, locale)
    if 0 < following < 10 and not locale.is_hindi:
        words = f"oh {words}"
    to = "" if match["sign"] == "/" else "से " if locale.is_hindi else "to "
    return f"{numbers.year(year, locale)} {to}{words}"


def _fiscal(match: re.Match[str], locale: Locale) -> str:
    if match["short"]:
        return f"F Y {numbers.cardinal(int(match['short']), locale)}"
    if match["quarter"]:
        quarter = numbers.cardinal(int(match["quarter"]), locale)
        return f"Q {quarter} {numbers.year(2000 + int(match['of']), locale)}"
    following = f" {numbers.cardinal(int(match['next']), locale)}" if match["next"] else ""
    return f"F Y {_year(match, locale)}{following}"


def _hindi(match: re.Match[str], locale: Locale) -> str:
    if match["lead"] is None and match["next"] is None:
        return match[0]
    return (match["lead"] or "") + _year(match, locale)


def _short_year(match: re.Match[str], locale: Locale) -> str:
    low = "oh " if match["year"][0] == "0" else ""
    return f"{match['lead']}{low}{numbers.cardinal(int(match['year']), locale)}"


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
