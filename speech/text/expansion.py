"""Writes out what the engine reads badly: currency, units, percentages, titles, signs and emoji.

Figures stay figures, since the engine reads those well; only the order and the words around them
change ("$3.50" becomes "3 dollars 50 cents"). Rules: docs/explain/speech-text.md, Expansion.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from speech.text.language import Language
from speech.text.words import (
    CURRENCIES,
    MAGNITUDES,
    SIGNS,
    TITLES,
    UNITS,
    Currency,
    Unit,
)

_NUMBER = r"\d+(?:,\d{2,3})*(?:\.\d+)?"
_UNIT_NAMES = "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True))
_CURRENCY_NAMES = "|".join(sorted(map(re.escape, CURRENCIES), key=len, reverse=True))
_MAGNITUDE_NAMES = "|".join(sorted(map(re.escape, MAGNITUDES), key=len, reverse=True))
_BEFORE = re.compile(
    rf"(?<!\w)(?P<sign>{_CURRENCY_NAMES})\s?(?P<amount>{_NUMBER})"
    rf"(?:\s?(?P<magnitude>{_MAGNITUDE_NAMES})(?!\w))?(?:/-)?",
)
_AFTER = re.compile(
    rf"(?<![\w.,])(?P<amount>{_NUMBER})(?:\s?(?P<magnitude>{_MAGNITUDE_NAMES}))?\s?(?P<sign>[€£₹])"
)
_UNIT = re.compile(rf"(?<![\w.,])(?P<amount>{_NUMBER})\s?(?P<unit>{_UNIT_NAMES})(?![\w/])")
_GROUPED = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{2,3})*,\d{3}(?![\w,])")


def expand(text: str, language: Language) -> str:
    """``text`` with words in place of what the engine would misread, in the voice's language.

    Apply it to one sentence, before romanized Hindi is transliterated.
    """
    text = _EXPANDED_TITLES[language](text)
    text = _BEFORE.sub(lambda match: _money(match, language), text)
    text = _AFTER.sub(lambda match: _money(match, language), text)
    text = _UNIT.sub(lambda match: _measure(match, language), text)
    text = _GROUPED.sub(lambda match: match[0].replace(",", ""), text)
    for pattern, words in SIGNS:
        text = pattern.sub(f" {words[language]} ", text)
    return _without_emoji(text)


def _money(match: re.Match[str], language: Language) -> str:
    currency: Currency = CURRENCIES[match["sign"]]
    amount = match["amount"].replace(",", "")
    if match["magnitude"]:
        magnitude = MAGNITUDES[match["magnitude"]][language]
        return f"{amount} {magnitude} {currency.whole[language].many}"
    whole, _, cents = amount.partition(".")
    if len(cents) != 2 or currency.part is None:
        return f"{amount} {currency.whole[language].name(amount)}"
    spoken = f"{whole} {currency.whole[language].name(whole)}"
    part = str(int(cents))
    if part == "0":
        return spoken
    spoken_part = f"{part} {currency.part[language].name(part)}"
    return spoken_part if whole == "0" else f"{spoken} {spoken_part}"


def _measure(match: re.Match[str], language: Language) -> str:
    unit: Unit = UNITS[match["unit"]]
    amount = match["amount"].replace(",", "")
    return f"{amount} {unit[language].name(amount)}"


def _titles(language: Language) -> Callable[[str], str]:
    rules = [(re.compile(pattern), words[language]) for pattern, words in TITLES]

    def replace(text: str) -> str:
        for pattern, words in rules:
            text = pattern.sub(words, text)
        return text

    return replace


_EXPANDED_TITLES = {language: _titles(language) for language in Language}


def _without_emoji(text: str) -> str:
    """Emoji and other pictures are not read out; one blank keeps the words beside them apart."""
    kept = "".join(" " if _is_picture(character) else character for character in text)
    return re.sub(" {2,}", " ", kept)


def _is_picture(character: str) -> bool:
    point = ord(character)
    return (
        0x1F000 <= point <= 0x1FAFF
        or 0xFE00 <= point <= 0xFE0F
        or 0xE0000 <= point <= 0xE007F
        or point == 0x20E3
        or (0x2190 <= point <= 0x2BFF and unicodedata.category(character) == "So")
    )
