"""Amounts of money, with the currency's sign or code before or after the figure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from speech.text.language import WORD_END, Language
from speech.text.normalise import numbers
from speech.text.normalise.locale import Locale
from speech.text.normalise.numbers import FIGURE
from speech.text.normalise.units import PER, Noun, Nouns, per

# ruff: noqa: RUF001  # signs that look like others are the point


@dataclass(frozen=True, slots=True)
class Currency:
    """A currency; ``part`` is its hundredth, or None when none is in use."""

    whole: Nouns
    part: Nouns | None


def _nouns(one: str, many: str, hindi: str, hindi_many: str | None = None) -> Nouns:
    return {Language.ENGLISH: Noun(one, many), Language.HINDI: Noun(hindi, hindi_many or hindi)}


_CENT = _nouns("cent", "cents", "सेंट")


def _dollar(english: str = "", hindi: str = "") -> Currency:
    return Currency(_nouns(f"{english}dollar", f"{english}dollars", f"{hindi}डॉलर"), _CENT)


_PENNY = _nouns("penny", "pence", "पेंस")
_POUND = Currency(_nouns("pound", "pounds", "पाउंड"), _PENNY)
_EURO = Currency(_nouns("euro", "euros", "यूरो"), _CENT)
_RUPEE = Currency(_nouns("rupee", "rupees", "रुपया", "रुपये"), _nouns("paisa", "paise", "पैसा", "पैसे"))
_YEN, _YUAN = (
    Currency(_nouns("yen", "yen", "येन"), None),
    Currency(_nouns("yuan", "yuan", "युआन"), None),
)
_US, _CANADIAN = _dollar("US ", "अमेरिकी "), _dollar("Canadian ", "कनाडाई ")
_AUSTRALIAN = _dollar("Australian ", "ऑस्ट्रेलियाई ")
_FRANC = Currency(_nouns("Swiss franc", "Swiss francs", "स्विस फ़्रैंक"), None)
_CURRENCIES: Mapping[str, Currency] = {
    "$": _dollar(), "US$": _US, "USD$": _US, "CAD$": _CANADIAN, "CDN$": _CANADIAN, "AUD$": _AUSTRALIAN, "MX$": Currency(_nouns("Mexican peso", "Mexican pesos", "मैक्सिकन पेसो"), None), "R$": Currency(_nouns("Brazilian real", "Brazilian reais", "ब्राज़ीली रियाल"), None), "USD": _US, "C$": _CANADIAN, "CA$": _CANADIAN, "CAD": _CANADIAN,
    "A$": _AUSTRALIAN, "AU$": _AUSTRALIAN, "AUD": _AUSTRALIAN,
    "NZ$": _dollar("New Zealand ", "न्यूज़ीलैंड "), "HK$": _dollar("Hong Kong ", "हांगकांग "),
    "S$": _dollar("Singapore ", "सिंगापुर "), "SGD": _dollar("Singapore ", "सिंगापुर "),
    "€": _EURO, "EUR": _EURO, "£": _POUND, "GBP": _POUND,
    "₹": _RUPEE, "INR": _RUPEE, "Rs.": _RUPEE, "Rs": _RUPEE, "RS.": _RUPEE, "rs.": _RUPEE, "rs": _RUPEE, "रु.": _RUPEE,
    "रू.": _RUPEE, "रु": _RUPEE, "रू": _RUPEE, "रुपए": _RUPEE,
    "¥": _YEN, "JPY": _YEN, "CNY": _YUAN, "RMB": _YUAN, "CHF": _FRANC,
    "₩": Currency(_nouns("won", "won", "वॉन"), None), "₽": Currency(_nouns("rouble", "roubles", "रूबल"), None),
    "₿": Currency(_nouns("bitcoin", "bitcoins", "बिटकॉइन"), None),
    "AED": Currency(_nouns("dirham", "dirhams", "दिरहम"), None),
}  # fmt: skip
_MAGNITUDES: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("k", "K", "thousand"), ("thousand", "हज़ार")),
    **dict.fromkeys(("m", "M", "mn", "Mn", "mil", "million"), ("million", "मिलियन")),
    **dict.fromkeys(("b", "B", "bn", "Bn", "billion"), ("billion", "बिलियन")),
    **dict.fromkeys(("t", "T", "tn", "trillion"), ("trillion", "ट्रिलियन")),
    **dict.fromkeys(("lakh", "lakhs", "lac", "lacs", "Lakh", "L"), ("lakh", "लाख")),
    **dict.fromkeys(("crore", "crores", "cr", "Cr", "Crore"), ("crore", "करोड़")),
    "हज़ार": ("thousand", "हज़ार"), "हजार": ("thousand", "हज़ार"), "लाख": ("lakh", "लाख"),
    "करोड़": ("crore", "करोड़"), "अरब": ("billion", "अरब"), "मिलियन": ("million", "मिलियन"),
    "बिलियन": ("billion", "बिलियन"),
}  # fmt: skip


def _any(names: Mapping[str, object]) -> str:
    return "|".join(sorted(map(re.escape, names), key=len, reverse=True))


_MAGNITUDE = (
    rf"(?:[ -]?(?P<magnitude>{_any(_MAGNITUDES)}){WORD_END}"
    rf"(?: (?P<more>crores?|cr|Cr|करोड़){WORD_END})?)?+"
)
_TO = r"\s?(?:[-–—]|to|से)\s?"
_TO_SIGN = rf"(?:\s?(?:to|से)\s?|\s?[-–—]\s?(?:{_any(_CURRENCIES)})?\s?)"
_BLOOD = r"(?!INR [0-5]\.\d(?!\d| ?(?:cr|lakh|lac|L|mn|bn|Mn|Bn|Cr|Lakh|Lac|million|billion|k)\b))"
"""The international normalized ratio of a patient's blood, which is no amount of rupees."""
_BEFORE = re.compile(
    rf"(?P<minus>(?<![\w)])(?:[-−]|(?<!\S )[-−]\s))?(?<![^\W\d_])(?<![A-Z]/){_BLOOD}(?P<sign>{_any(_CURRENCIES)})\s?(?P<inner>[-−])?"
    rf"(?P<first>{FIGURE})(?:(?P<early>[kKmMbBL]|bn|Cr)?{_TO_SIGN}(?P<last>{FIGURE})(?![\w.-]?\d))?+"
    rf"{_MAGNITUDE}(?P<dash>\s?/-|(?<=\.\d\d)p(?!\w))?{PER}(?! ?/ ?\d)"
    r"(?P<follows> (?=(?:bills?|notes?|coins?|gift|fine|price|budget|loan|project|deal|fee|tickets?|limit|question)\b))?"
)
_AFTER = re.compile(
    rf"{numbers.START}(?<![-/])(?P<minus>(?<![\w)])[-−])?(?P<first>{FIGURE})(?:(?P<early>[kKmMbBL]|bn|Cr)?{_TO}(?P<last>{FIGURE}))?+{_MAGNITUDE}"
    rf"(?:\s?/-)?\s?(?P<sign>[€£₹¥$](?!\s?\d)|USD|EUR|GBP|INR|JPY|CNY|RMB|CAD|AUD|SGD|CHF|AED|[Rr]s\b\.?(?!\s?\d)|रु\.?|रू\.?){WORD_END}{PER}(?P<dash>)(?P<inner>)(?P<follows>)"
)
_PER_ANNUM = re.compile(rf"{numbers.START}(?P<amount>{FIGURE}) ?LPA(?!\w)")
"""Lakhs of rupees a year, as Indian salaries are written."""
_EACH_WORDS = {
    "pcm": "per calendar month", "pw": "per week", "pp": "per person", "pppn": "per person per night",
    "ph": "per hour", "pa": "per annum", "ea": "each",
}  # fmt: skip
_EACH = re.compile(
    r"(?<=\d) ?(?P<each>pcm|pw|pppn|(?<=\d)pp)\b|(?P<amount>[$€£₹] ?\d[\d,.]{0,12}[kKm]?(?:-\d[\d,.]{0,12})?)(?: ?(?P<then>pp|ph|pa|ea)\b|/(?P<slashed>ea)\b\.?)"
)
"""Rents and fares, as British ones are written."""
_SO_MANY = re.compile(r"(?P<amount>[$£€₹]\s?\d[\d,]{0,12}(?:\.\d{1,2})?) ?[x×] ?(?=\d)")
_SEVERAL = re.compile(r"(?<=\d)\s?[x×]\s?(?=[$£€₹]\s?\d)")
"""So many at an amount: ``3 x $1.25``."""
_ALONE = re.compile(
    r"(?P<before>\b(?:[Pp]er|[Aa]|[Tt]he|[Ii]n|[Uu]S|to|vs|versus)|प्रति|एक) (?P<sign>[$£€₹¥])(?=[\s,.;:!?)/]|$)"
)
"""The sign of a currency without an amount: ``per $``."""
_FOR_MONEY = re.compile(r"(?<![\w$€£₹.,/])(?P<count>\d{1,2})/(?=[$£€₹]\s?\d)")
"""Several for an amount: ``3/$7``."""
_CENTS = re.compile(
    rf"{numbers.START}(?:(?P<from>\d{{1,3}}(?:\.\d)?)\s?[-–]\s?)?+(?P<figure>\d++(?:\.\d++)?+)\s?(?P<sign>¢|p(?=\b))(?!\w){PER}"
)


def written_out(text: str, locale: Locale) -> str:
    """Write the amounts of money in ``text`` in words. Pass ``canonical`` figures."""
    if not any(map(str.isdecimal, text)):
        return text
    text = _ALONE.sub(lambda match: _alone(match, locale), text)
    text = _EACH.sub(_each, text)
    text = _SO_MANY.sub(rf"\g<amount> {'गुणा' if locale.is_hindi else 'times'} ", text)
    text = _SEVERAL.sub(" गुणा " if locale.is_hindi else " times ", text)
    text = _FOR_MONEY.sub(r"\g<count> में " if locale.is_hindi else r"\g<count> for ", text)
    lakhs = "लाख प्रति वर्ष" if locale.is_hindi else "lakh per annum"
    text = _PER_ANNUM.sub(rf"\g<amount> {lakhs}", text)
    for pattern in (_BEFORE, _AFTER):
        text = pattern.sub(lambda match: _amount(match, locale), text)
    return _CENTS.sub(lambda match: _cents(match, locale), text)


def _amount(match: re.Match[str], locale: Locale) -> str:
    currency = _CURRENCIES[match["sign"]]
    below = f"{numbers.minus(locale)} " if match["minus"] or match["inner"] else ""
    first, last, noun = match["first"], match["last"], match["follows"] or ""
    compound = bool(noun) or numbers.is_compound(match)
    if match["magnitude"] or (last and "." not in first + last):
        name = currency.whole[locale.language]
        said = f"{_scaled(match, locale)} {name.one if compound else name.many}"
    else:
        said = _plain(first, currency, locale, compound=compound)
        if last:
            said += f" {_to(locale)} {_plain(last, currency, locale, compound=compound)}"
    return below + said + per(match, locale) + noun


def _plain(figure: str, currency: Currency, locale: Locale, *, compound: bool) -> str:
    """Write out an amount, its hundredths in the smaller unit."""
    whole, _, cents = figure.partition(".")
    name = currency.whole[locale.language]
    if len(cents) != 2 or currency.part is None:
        return f"{numbers.spoken(figure, locale)} {name.one if compound else name.name(figure)}"
    whole = whole or "0"
    said = f"{numbers.spoken(whole, locale)} {name.one if compound else name.name(whole)}"
    if cents == "00":
        return said
    part = str(int(cents))
    parts = f"{numbers.spoken(part, locale)} {currency.part[locale.language].name(part)}"
    joined = " " if locale.is_hindi else " and "
    return parts if whole.strip("0,") == "" else f"{said}{joined}{parts}"


def _to(locale: Locale) -> str:
    return "से" if locale.is_hindi else "to"


def _scaled(match: re.Match[str], locale: Locale) -> str:
    """Write out a range, or an amount in millions or lakhs."""
    said = numbers.spoken(match["first"], locale)
    if match["early"]:
        said += f" {_MAGNITUDES[match['early']][locale.is_hindi]}"
    if match["last"]:
        said += f" {_to(locale)} {numbers.spoken(match['last'], locale)}"
    if match["magnitude"]:
        said += f" {_MAGNITUDES[match['magnitude']][locale.is_hindi]}"
    if match["more"]:
        said += f" {_MAGNITUDES[match['more']][locale.is_hindi]}"
    return said


def _cents(match: re.Match[str], locale: Locale) -> str:
    if match["sign"] == "p" and (locale.is_hindi or locale.region != "GB"):
        return match[0]
    nouns = _PENNY if match["sign"] == "p" else _CENT
    name = nouns[locale.language].name(match["figure"])
    since = f"{numbers.spoken(match['from'], locale)} {_to(locale)} " if match["from"] else ""
    return f"{since}{numbers.spoken(match['figure'], locale)} {name}{per(match, locale)}"


def _alone(match: re.Match[str], locale: Locale) -> str:
    name = _CURRENCIES[match["sign"]].whole[locale.language]
    return f"{match['before']} {name.many if match['before'].lower() == 'in' else name.one}"


def _each(match: re.Match[str]) -> str:
    """The short words after an amount; ``pp`` after another figure is pages."""
    short = match["each"] or match["then"] or match["slashed"]
    return f"{match['amount'] or ''} {_EACH_WORDS[short]}"
