# ruff: noqa: RUF001  # signs that look like others are the point
"""Figures with a unit, and the short forms of thousand, million and billion."""

from __future__ import annotations

import re

from speech.text.normalise.locale import Locale
from speech.text.normalise.numbers import figures, numbers
from speech.text.normalise.numbers.figures import FIGURE, START
from speech.text.normalise.quantities.nouns import Nouns
from speech.text.normalise.quantities.units import FOOT, INCH, UNITS

_UNIT = "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True))
_SIGN = r"(?P<minus>(?<![\w)])[-−]\s?)?"
_AMOUNT = rf"(?P<first>{FIGURE})(?:\s?(?:[-–—]|to|से)\s?(?P<last>{FIGURE}))?+"
_SCALE = (
    r"(?P<scale> (?:thousand|million|billion|trillion|lakh|crore|हज़ार|हजार|लाख|करोड़|अरब)(?= ))?+"
)
_END = r"(?![\w\u0900-\u097f])"
_MEASURE = re.compile(
    rf"(?<![\w.$€£₹-])(?<!\d,){_SIGN}{_AMOUNT}{_SCALE}(?:\s?|-)(?P<unit>{_UNIT})(?:\^?(?P<power>[23]))?{_END}"
    rf"(?:\s?/\s?(?P<per>{_UNIT})(?:\^?(?P<per_power>[23]))?{_END})?(?!['’]\w)"
)
_HEIGHT = re.compile(
    r"(?<![\w.,])(?P<feet>\d{1,2})\s?(?:['’′]|ft\.?)\s?(?P<inches>\d{1,2})(?:\"|”|″|''|’’|\s?in(?:ches|\.)?(?!\w))"
)
_FEET = re.compile(rf"{START}(?P<first>{FIGURE})\s?′")
_INCHES = re.compile(
    rf"{START}(?P<first>{FIGURE})(?:\s?″|[\"”](?= ?(?:x|by|wide|tall|long|high|deep|thick|screen|TV|monitor|display|laptop|pipe|pizza)\b)"
    rf"|\s?in\.(?=\s[a-z,]|[,;:)])|(?P<stop>\s?in\.)(?=\s*$|\s+[A-Z])|in{_END}|\s?in(?=\s(?:x|by|wide|tall|long|high|deep|thick)\b))"
)
_NOT_NOUNS = "long|wide|high|tall|deep|away|from|to|and|or|of|in|by|below|above|under|is|was|has|this|race|run|across|as|us|sprint|freestyle|dash"
_SHORT = re.compile(
    rf"(?<![\w.$€£₹-])(?<!\d,)(?P<first>{FIGURE})(?:\s?[-–—]\s?(?P<last>{FIGURE}))?+(?P<magnitude>[kKmMbB]|bn|mn|tn)(?P<more>\+?)"
    rf"(?![\w'’^/]|[-.]\w)(?=(?P<next> (?:[a-z]+ )?(?!(?:{_NOT_NOUNS})\b)(?:[a-z]+s|people|children|women|men|model|parameter)\b)?)(?P<run>(?= (?:run|race|video|TV|resolution|monitor|display|screen|runs|races|streaming)\b))?"
)
_SHORT_NAMES = {
    "k": ("thousand", "हज़ार"), "m": ("million", "मिलियन"), "b": ("billion", "बिलियन"),
    "bn": ("billion", "बिलियन"), "mn": ("million", "मिलियन"), "tn": ("trillion", "ट्रिलियन"),
}  # fmt: skip


def written_out(text: str, locale: Locale) -> str:
    """Write the measures of ``text`` in words. Pass ``canonical`` figures, after money."""
    if not any(map(str.isdecimal, text)):
        return text
    text = _SHORT.sub(lambda match: _short(match, locale), text)
    text = _HEIGHT.sub(lambda match: _height(match, locale), text)
    text = _FEET.sub(lambda match: _counted(match["first"], FOOT, locale), text)
    text = _INCHES.sub(lambda match: _inches(match, locale), text)
    return _MEASURE.sub(lambda match: _measure(match, locale), text)


def _counted(figure: str, nouns: Nouns, locale: Locale) -> str:
    return f"{figures.spoken(figure, locale)} {nouns[locale.language].name(figure)}"


def _height(match: re.Match[str], locale: Locale) -> str:
    return f"{_counted(match['feet'], FOOT, locale)} {_counted(match['inches'], INCH, locale)}"


def _inches(match: re.Match[str], locale: Locale) -> str:
    return _counted(match["first"], INCH, locale) + ("." if match["stop"] else "")


def _amount(match: re.Match[str], locale: Locale) -> str:
    said = figures.spoken(match["first"], locale)
    if match["last"]:
        said += f" {'से' if locale.is_hindi else 'to'} {figures.spoken(match['last'], locale)}"
    return said


def _measure(match: re.Match[str], locale: Locale) -> str:
    below = f"{numbers.minus(locale)} " if match["minus"] else ""
    noun = UNITS[match["unit"]][locale.language]
    scale = match["scale"] or ""
    name = noun.many if match["last"] or scale else noun.name(match["first"])
    if figures.is_compound(match):
        name = noun.one
    said = f"{below}{_amount(match, locale)}{scale} {_powered(name, match['power'], locale)}"
    if match["per"]:
        each = UNITS[match["per"]][locale.language].one
        after = _powered(each, match["per_power"], locale)
        said += f" {'प्रति' if locale.is_hindi else 'per'} {after}"
    # The point of a unit at the end of a sentence belongs to the sentence.
    ends = (
        match["unit"].endswith(".") and not match["per"] and not match.string[match.end() :].strip()
    )
    return said + ("." if ends else "")


def _powered(name: str, power: str | None, locale: Locale) -> str:
    if power is None:
        return name
    if name in ("second", "seconds"):
        return f"{name} {'squared' if power == '2' else 'cubed'}"
    words = ("वर्ग", "घन") if locale.is_hindi else ("square", "cubic")
    return f"{words[power == '3']} {name}"


def _short(match: re.Match[str], locale: Locale) -> str:
    magnitude = match["magnitude"]
    if magnitude in "mbB" and not match["next"] and not match["more"]:
        return match[0]
    if magnitude == "K" and (match["run"] is not None or match["first"] in ("4", "8")):
        return match[0]
    plus = f" {'प्लस' if locale.is_hindi else 'plus'}" if match["more"] else ""
    return f"{_amount(match, locale)} {_SHORT_NAMES[magnitude.lower()][locale.is_hindi]}{plus}"
