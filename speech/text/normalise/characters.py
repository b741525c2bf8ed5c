"""Replaces characters by plain ones of the same meaning, before any other rule.

HTML entities, styled and full-width letters, digits of every script, fractions and raised or
lowered digits become plain text of the same value; emoji and invisible characters are removed.
"""

from __future__ import annotations

import html
import re
import unicodedata

_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")
_PICTURE = (
    "\U0001f000-\U0001faff\U000e0000-\U000e007f\ufe00-\ufe0f\u20e3"
    "\u2300-\u23ff\u2460-\u2bff\u2190\u2191\u2193-\u21d1\u21d3-\u21ff"
)
_RATED = re.compile(r"(?<=\d) ?[★⭐](?![★☆⭐])")
_PICTURES = re.compile(rf"\s?(?:[{_PICTURE}]\u200d?)++")
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u2060-\u206f\ufeff\x00-\x08\x0e-\x1f\x7f]")
_STYLED = re.compile(
    "[\uff01-\uff5e\uffe0-\uffe6\u2100-\u2121\u2123-\u214f\u2160-\u2188\u3300-\u33ff\ufb00-\ufb06"
    "\U0001d400-\U0001d7ff\u2460-\u24ff\U0001f130-\U0001f189]"
)
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿⁱ", "0123456789+-ni")
_LOWERED = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_POWER = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿⁱ]+")
_BASE = re.compile(
    r"(?:\d|(?<![A-Za-zµ])[A-Za-zµ]{1,3}|[\u0391-\u03c9]|(?<![\u0900-\u097f])[\u0900-\u097f]{1,4}|[)\]])\Z"
)
_FRACTIONS = {
    character: f"{numerator}/{denominator}"
    for character, numerator, denominator in (
        ("½", 1, 2), ("⅓", 1, 3), ("⅔", 2, 3), ("¼", 1, 4), ("¾", 3, 4), ("⅕", 1, 5), ("⅖", 2, 5),
        ("⅗", 3, 5), ("⅘", 4, 5), ("⅙", 1, 6), ("⅚", 5, 6), ("⅐", 1, 7), ("⅛", 1, 8), ("⅜", 3, 8),
        ("⅝", 5, 8), ("⅞", 7, 8), ("⅑", 1, 9), ("⅒", 1, 10), ("↉", 0, 3),
    )
}  # fmt: skip
_FRACTION = re.compile(
    rf"(?:(?P<whole>\d)\s?)?(?P<sign>[{''.join(_FRACTIONS)}])(?P<after>[\dA-Za-z]?)"
)
_SPACES = re.compile(" {2,}")
_STARS = re.compile(r"(?<![★⭐])[★⭐\ufe0f]{2,10}+☆{0,5}(?!\w)")


def cleaned(text: str) -> str:
    """Remove entities, emoji and invisible characters from ``text``: for every engine."""
    text = _ENTITY.sub(lambda match: html.unescape(match[0]), text)
    text = _INVISIBLE.sub("", text)
    if not text.isascii():
        text = _STARS.sub(_stars, text)
    text = _PICTURES.sub(" ", _circled(_RATED.sub(" star", text)))
    return _tight(_SPACES.sub(" ", text))


def _stars(match: re.Match[str]) -> str:
    return f" {sum(sign in '★⭐' for sign in match[0])} stars "


def _circled(text: str) -> str:
    """Replace circled numbers and letters by plain ones; other enclosed signs are symbols."""
    return re.sub(
        "[\u2460-\u24ff]", lambda match: f" {unicodedata.normalize('NFKC', match[0])} ", text
    )


def _tight(text: str) -> str:
    """Remove the space before a mark that followed an emoji."""
    return re.sub(r" (?=[.!?,।](?:\s|$))", "", text)


def plain(text: str) -> str:
    """Convert ``cleaned`` text to ASCII digits and plain letters of the same value.

    A fraction sign becomes ``1/2``, with a space after a whole number; raised digits become ``^2``.
    """
    if text.isascii():
        return text
    text = unicodedata.normalize("NFC", text)
    text = _STYLED.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)
    text = _POWER.sub(_raised, text).translate(_LOWERED)
    text = _FRACTION.sub(_fraction, text)
    text = text.replace("\u2044", "/").replace("\u2215", "/").replace("\u2206", "Δ")
    return "".join(_ascii_digit(character) for character in text)


def _raised(match: re.Match[str]) -> str:
    """Keep a power after a figure, a variable or a unit; drop a footnote mark after a word."""
    power = match[0].translate(_RAISED)
    start = match.start()
    if _BASE.search(match.string, max(0, start - 5), start):
        return f"^{power}"
    return "" if match.string[start - 1 : start].isalpha() else f" {power} "


def _fraction(match: re.Match[str]) -> str:
    blank = " " if match["whole"] else ""
    after = " " + match["after"] if match["after"] else ""
    return (match["whole"] or "") + blank + _FRACTIONS[match["sign"]] + after


def _ascii_digit(character: str) -> str:
    if character.isascii():
        return character
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    number = unicodedata.numeric(character, None) if character.isdigit() else None
    return character if number is None else f" {number:g} "
