"""Writes out quantities of kitchens, laboratories and data sheets: ``2 T.``, ``350 K``, ``10W-40``.

They are spelled with units, which are written out afterwards.
"""

from __future__ import annotations

import re

from speech.text.normalise import numbers
from speech.text.normalise.locale import Locale, Region
from speech.text.normalise.numbers import FIGURE, START

# ruff: noqa: RUF001  # signs that look like others are the point

_ARC = re.compile(
    r"(?P<degrees>\d°)\s?(?P<minutes>[0-5]?\d(?:\.\d+)?)\s?['’′](?:\s?(?P<seconds>[0-5]?\d(?:\.\d+)?)\s?[\"”″])?(?!\d)"
)
"""Parts of a degree on a map: 30° 15'."""
_PORTIONS = re.compile(
    rf"(?<![\w.,x×/])(?P<count>\d{{1,2}}) ?[x×] ?(?={FIGURE} ?(?:g|kg|mg|ml|mL|l|L|cl|oz|lb|pt|mcg)\b|(?<=\b1 x )\d{{1,3}} ?(?:cm|mm)\b)"
)
"""So many of a measure, which are no sides: ``1 x 400g tin``."""
_PRIMES = re.compile(r"(?<![\w.])(?P<end>[35])(?:′(?=[-→])|'(?=[-→])|(?<=[A-Za-z]-[35])′)")
"""The ends of a strand of DNA."""
_GOLD = re.compile(r"\b[Gg]old|\b[Jj]ewel|₹[\d,]+/g\b")
_CARATS = re.compile(r"(?<![\w.])(?P<figure>9|10|14|18|22|24) ?K[Tt]?(?!\w)")
_CT = re.compile(
    r"(?P<figure>\d{1,2}(?:\.\d{1,2})?)[ -]?ct\b(?=\.? (?:gold|diamonds?|ring|white|yellow|rose|ruby|emerald|sapphire|stone|solitaire)\b)"
)
"""The purity of gold or the weight of a stone."""
_NEWTONS = re.compile(
    r"(?:(?<== )|(?<=\bof )|(?<=m, )|(?<=bar, ))(?P<figure>\d++(?:\.\d++)?) N(?=[.,;)]|$| (?:of|at|on|and|is|acts|force)\b)"
)
_MILLIBARS = re.compile(r"(?<![\w.,])(?P<figure>9[4-9]\d|10[0-5]\d) ?mb\b")
_PER_CENT = re.compile(r"(?<=\d\.\d) ?pc\b|(?<=\d\.\d\d) ?pc\b")
_MAINS = re.compile(r"(?<=[VA]) ?~ ?(?=\d)")
_FUSED = re.compile(rf"(?P<lead>\dHz,? )(?P<figure>{FIGURE}) ?A\b")
_KELVINS = re.compile(
    r"(?P<figure>(?<![\w.])\d{3,5}(?:\.\d+)?|(?:(?<== )|(?<=\bat )|(?<=\bto )|(?<=\bof )|(?<=\bby )|(?<=\bfrom )|(?<=\bbelow )|(?<=\babove ))\d{1,2}(?:\.\d+)?) K(?![\w'’-])(?! (?:run|race|for|video|[a-z]{3,}s)\b)"
)
_MOLAR = re.compile(r"(?P<figure>\d) M (?=[A-Z][A-Za-z]?[A-Z\d])")
_SIDES = re.compile(
    rf"(?<![\w.])(?:[HWDL] ?{FIGURE}(?: ?(?:cm|mm|in|m))?\s?[x×]\s?){{1,2}}[HWDL] ?{FIGURE}"
    rf"|{START}{FIGURE} ?\(?[HWDL]\)?(?:\s?[x×]\s?{FIGURE} ?\(?[HWDL]\)?){{1,2}}"
)
"""The sides of a thing with their letters: ``H85 x W60 x D58 cm``."""
_SIDE_SIGN = re.compile(r"\s?[x×]\s?")
_SIDE = re.compile(r"(?<=[HWDL])(?=\d)|(?<=\d)(?=[HWDL])")
_OILS = re.compile(r"(?<![\w-])(?P<cold>\d{1,2})W-(?P<warm>\d\d)(?!\w)")
"""The thickness of engine oil: ``10W-40``."""
_KITCHEN = re.compile(
    r"(?P<count>(?<![\w.,/])(?:[1-4]|[1-4] [1-3]/[2-8]|[1-3]/[2-8]|[1-4][-–][1-4])) ?(?P<spoon>[tT])(?:\.? (?=(?!of\b|cells?\b|shirts?\b|helper\b|waves?\b|bones?\b)[a-z])|\. ?(?=[a-z(]))"
)
"""American spoons: a capital letter is the larger one."""
_CUPS = re.compile(r"(?P<count>(?<![\w.,/-])\d{1,2}(?: [1-3]/[2-8])?) c (?=(?!of\b)[a-z]{3})")
_DEGREES = re.compile(r"(?<![\w.,-])(?P<first>\d{1,3})\s?[-–]\s?(?P<last>\d{1,3})(?=\s?°?[FC]\b)")


def written_out(text: str, locale: Locale) -> str:
    """Spell quantities with units that all texts have. Pass ``canonical`` figures."""
    if not any(map(str.isdecimal, text)):
        return text
    if "°" in text:
        text = _ARC.sub(lambda match: _arc(match, locale), text)
    if "x" in text or "×" in text:
        text = _PORTIONS.sub(rf"\g<count> {'गुणा' if locale.is_hindi else 'times'} ", text)
    if locale.is_hindi:
        return text
    text = _in_english(text, locale)
    if locale.region is Region.US:
        text = _CUPS.sub(r"\g<count> cups ", _KITCHEN.sub(_spoon, text))
    return text


def _in_english(text: str, locale: Locale) -> str:
    if "ct" in text or " N" in text:
        text = _NEWTONS.sub(r"\g<figure> newtons", _CT.sub(r"\g<figure> carat", text))
    if "mb" in text or "pc" in text:
        text = _PER_CENT.sub("%", _MILLIBARS.sub(r"\g<figure> mbar", text))
    if "~" in text or "Hz" in text:
        text = _FUSED.sub(r"\g<lead>\g<figure> amps", _MAINS.sub(" ", text))
    if "′" in text or "'" in text:
        text = _PRIMES.sub(r"\g<end> prime", text)
    if "x" in text or "×" in text:
        text = _SIDES.sub(_sides, text)
    if "K" in text:
        if _GOLD.search(text):
            text = _CARATS.sub(r"\g<figure> carat", text)
        if " K" in text:
            text = _KELVINS.sub(r"\g<figure> kelvin", text)
    if " M " in text:
        text = _MOLAR.sub(r"\g<figure> molar ", text)
    if "W-" in text:
        text = _OILS.sub(lambda match: _oil(match, locale), text)
    return _DEGREES.sub(r"\g<first> to \g<last>", text)


def _arc(match: re.Match[str], locale: Locale) -> str:
    named = {"minutes": ("minutes", "मिनट"), "seconds": ("seconds", "सेकंड")}
    parts = [
        f" {numbers.spoken(match[name], locale)} {words[locale.is_hindi]}"
        for name, words in named.items()
        if match[name]
    ]
    return f"{match['degrees']}{''.join(parts)}"


def _sides(match: re.Match[str]) -> str:
    return _SIDE.sub(" ", _SIDE_SIGN.sub(" by ", match[0]))


def _spoon(match: re.Match[str]) -> str:
    return f"{match['count']} {'tbsp' if match['spoon'] == 'T' else 'tsp'} "


def _oil(match: re.Match[str], locale: Locale) -> str:
    return f"{numbers.cardinal(int(match['cold']), locale)} W {match['warm']}"
