"""Writes numbers in words: cardinals, ordinals, years, decimals and digits one by one.

The words come from CLDR's spelling rules (``unicode_rbnf``), which hold the irregular Hindi numbers
to 99. Above them Hindi and Indian English count in lakh and crore.

``canonical`` rewrites every spelling of a figure (groups of thousands or lakhs by comma, space or
point) to one: commas between groups and a point before decimals. The other rules match only that,
with ``FIGURE``; ``spoken`` writes it in words.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

from unicode_rbnf import RbnfEngine

from speech.text.language import Language
from speech.text.normalise.locale import Locale, Region

GREATEST = 10**15
"""A figure above it is read digit by digit."""

_CRORE, _LAKH, _THOUSAND = 10**7, 10**5, 10**3
_SCALES = {
    Language.ENGLISH: ((_CRORE, "crore"), (_LAKH, "lakh"), (_THOUSAND, "thousand")),
    Language.HINDI: (
        (10**11, "खरब"),
        (10**9, "अरब"),
        (_CRORE, "करोड़"),
        (_LAKH, "लाख"),
        (_THOUSAND, "हज़ार"),
    ),
}
_HINDI_ORDINALS = {1: "पहल", 2: "दूसर", 3: "तीसर", 4: "चौथ", 6: "छठ"}
_REGNAL = {
    1: "प्रथम", 2: "द्वितीय", 3: "तृतीय", 4: "चतुर्थ", 5: "पंचम", 6: "षष्ठ", 7: "सप्तम",
    8: "अष्टम", 9: "नवम", 10: "दशम",
}  # fmt: skip
_ROMAN = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}


@cache
def _rules(language: str) -> RbnfEngine:
    """The spelling rules of a language; reading them takes a tenth of a second."""
    return RbnfEngine.for_language(language)


def prepare() -> None:
    """Read the rules of both languages ahead of the first request."""
    for language in Language:
        _rules(language)


@lru_cache(maxsize=4096)
def cardinal(number: int, locale: Locale, *, lakhs: bool | None = None) -> str:
    """``number`` in words, up to ``GREATEST``; ``lakhs`` chooses the system where both are used."""
    if number < 0:
        return f"{minus(locale)} {cardinal(-number, locale, lakhs=lakhs)}"
    counts_in_lakhs = locale.is_indian if lakhs is None else lakhs
    if locale.is_hindi or (counts_in_lakhs and number >= _LAKH):
        return _indian(number, locale)
    return _english(number, locale)


def _indian(number: int, locale: Locale) -> str:
    words: list[str] = []
    rest = number
    for scale, name in _SCALES[locale.language]:
        if rest >= scale:
            words += [_indian(rest // scale, locale), name]
            rest %= scale
    if rest or not words:
        joined = bool(words) and rest < 100 and _says_and(locale)
        words += ["and"] if joined else []
        words.append(
            _spelled(_rules(Language.HINDI), rest) if locale.is_hindi else _english(rest, locale)
        )
    return " ".join(words)


def _english(number: int, locale: Locale) -> str:
    ruleset = "spellout-cardinal-verbose" if _says_and(locale) else "spellout-cardinal"
    return _spelled(_rules(Language.ENGLISH), number, ruleset)


def _says_and(locale: Locale) -> bool:
    return not locale.is_hindi and locale.region is not Region.US


def _spelled(engine: RbnfEngine, number: int, ruleset: str = "spellout-cardinal") -> str:
    text = engine.format_number(number, ruleset_names=[ruleset]).text
    return text.replace("-", " ").replace(",", "")


def minus(locale: Locale) -> str:
    """The word before a number below zero."""
    return "माइनस" if locale.is_hindi else "minus"


def point(locale: Locale) -> str:
    """The word between the whole and the decimals."""
    return "दशमलव" if locale.is_hindi else "point"


@lru_cache(maxsize=4096)
def ordinal(number: int, locale: Locale, ending: str = "ा") -> str:
    """First, second; in Hindi with the vowel of the gender and case: ``ा``, ``ी`` or ``े``."""
    if not locale.is_hindi:
        ruleset = "spellout-ordinal-verbose" if _says_and(locale) else "spellout-ordinal"
        return _spelled(_rules(Language.ENGLISH), number, ruleset)
    if number in _HINDI_ORDINALS:
        return _HINDI_ORDINALS[number] + ending
    return cardinal(number, locale) + {"ा": "वाँ", "ी": "वीं", "े": "वें"}[ending]


def regnal(number: int, locale: Locale) -> str:
    """The number of a ruler: "the eighth"."""
    if not locale.is_hindi:
        return f"the {ordinal(number, locale)}"
    return _REGNAL.get(number) or ordinal(number, locale, "े")


@lru_cache(maxsize=1024)
def year(number: int, locale: Locale) -> str:
    """A year of four digits as it is said: nineteen oh five, two thousand five, twenty ten."""
    century, rest = divmod(number, 100)
    if locale.is_hindi:
        if century == 20 or not 10 < century < 20:
            return cardinal(number, locale)
        hundreds = f"{cardinal(century, locale)} सौ"
        return f"{hundreds} {cardinal(rest, locale)}" if rest else hundreds
    if century % 10 == 0 and rest < 10:
        return cardinal(number, locale, lakhs=False)
    if not rest:
        return f"{cardinal(century, locale)} hundred"
    tens = cardinal(rest, locale)
    return f"{cardinal(century, locale)} {'oh ' if rest < 10 else ''}{tens}"


def plural(words: str) -> str:
    """The plural of an English number: sixes, twenties, sixteens."""
    if words.endswith("y"):
        return f"{words[:-1]}ies"
    return f"{words}{'es' if words.endswith('x') else 's'}"


def named(number: int, locale: Locale) -> str:
    """A number of three digits that is a name: four oh four, one hundred thirty seven."""
    hundreds, rest = divmod(number, 100)
    if locale.is_hindi or not 0 < rest < 10:
        return cardinal(number, locale)
    return f"{cardinal(hundreds, locale)} oh {cardinal(rest, locale)}"


def port(figure: str, locale: Locale) -> str:
    """The number of a network port: four digits in two halves, as a year."""
    if figure[0] == "0" or len(figure) > 4:
        return digits(figure, locale)
    return year(int(figure), locale) if len(figure) == 4 else cardinal(int(figure), locale)


@lru_cache(maxsize=64)
def digit(figure: str, locale: Locale) -> str:
    """The name of one digit."""
    return cardinal(int(figure), locale)


def digits(figure: str, locale: Locale) -> str:
    """The digits of ``figure`` one by one; other characters are left out."""
    return " ".join(digit(one, locale) for one in figure if one.isdecimal())


def groups(figures: list[str], locale: Locale) -> str:
    """Groups of digits one by one, with a comma between groups for a short pause."""
    return ", ".join(digits(figure, locale) for figure in figures)


def chunked(figure: str) -> list[str]:
    """A long row of digits in groups of four; ten digits as telephone numbers are grouped."""
    if len(figure) == 10:
        return [figure[:3], figure[3:6], figure[6:]]
    if len(figure) <= 6:
        return [figure]
    return [figure[at : at + 4] for at in range(0, len(figure), 4)]


FIGURE = r"(?:\d++(?:,\d{2,3}(?!\d))*+(?:\.\d++)?+|(?<!\.)\.\d++)"
"""A figure without its sign."""
START = r"(?<![\w.])(?<!\d,)"
"""A lookbehind for the characters that may not precede a figure."""

_WESTERN = re.compile(r"\d{1,3}(?:,\d{3})+\Z")
_LAKHS = re.compile(r"\d{1,2}(?:,\d{2})+,\d{3}\Z")
_SPACES = "\u00a0\u2009\u202f\u2007"
_SPACED = re.compile(
    r"(?:(?<=EUR )|(?<=USD )|(?<=GBP )|(?<=CHF )|(?<=INR )|(?<=€))\d{1,3}+ \d{3}(?!\d| \d)|"
    rf"(?<![\w.,+])\d{{1,3}}+(?:[{_SPACES}]\d{{3}}(?!\d))++"
    r"|(?<![\w.,+-])(?<!\d )(?<!ABN )(?<!ACN )(?<!TFN )(?<!NHS )(?<!VAT )\d{1,3}+(?:(?: \d{3}(?!\d)){2,}+| 000(?!\d))(?! \d)"
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
    if (len(plain) > 1 and plain[0] == "0") or len(plain) > 16 or int(plain or "0") > GREATEST:
        words = groups(chunked(plain), locale)
    else:
        lakhs = True if is_indian(figure) else False if "," in whole else None
        words = cardinal(int(plain or "0"), locale, lakhs=lakhs)
    if not decimals:
        return words
    return f"{words} {point(locale)} {digits(decimals, locale)}"


def value(figure: str) -> float:
    """The value of a canonical figure."""
    return float(figure.replace(",", ""))


_ARTICLE = re.compile(r"(?<!\w)[Aa]n? (?:\d[\d.,]{0,6} by ){0,2}\Z")
_NOUN = re.compile(r"-? ?[a-z]{2}")


def is_compound(match: re.Match[str]) -> bool:
    """Whether a measure stands between an article and a noun and so is singular: a 5 km run."""
    before = _ARTICLE.search(match.string, max(0, match.start() - 26), match.start())
    return bool(before and _NOUN.match(match.string, match.end()))


def is_one(figure: str) -> bool:
    """Whether a noun after the figure is singular."""
    return figure.replace(",", "") == "1"


def of_roman(numeral: str) -> int:
    """The number of a Roman numeral in capitals."""
    total = 0
    for at, letter in enumerate(numeral):
        value = _ROMAN[letter]
        later = max((_ROMAN[other] for other in numeral[at + 1 :]), default=0)
        total += -value if value < later else value
    return total
