"""The words of expansion, per language: currencies, magnitudes, units, titles and signs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from speech.text.language import Language


@dataclass(frozen=True, slots=True)
class Noun:
    """A word for one and for several."""

    one: str
    many: str

    def name(self, amount: str) -> str:
        return self.one if amount == "1" else self.many


Unit = Mapping[Language, Noun]


@dataclass(frozen=True, slots=True)
class Currency:
    """``part`` is the hundredth; None where there is none in use."""

    whole: Unit
    part: Unit | None


def _unit(one: str, many: str, hindi: str, hindi_many: str | None = None) -> Unit:
    return {Language.ENGLISH: Noun(one, many), Language.HINDI: Noun(hindi, hindi_many or hindi)}


def _words(english: str, hindi: str) -> Mapping[Language, str]:
    return {Language.ENGLISH: english, Language.HINDI: hindi}


_CENT = _unit("cent", "cents", "सेंट")
_DOLLAR = Currency(_unit("dollar", "dollars", "डॉलर"), _CENT)
_EURO = Currency(_unit("euro", "euros", "यूरो"), _CENT)
_POUND = Currency(_unit("pound", "pounds", "पाउंड"), _unit("penny", "pence", "पेंस"))
_RUPEE = Currency(_unit("rupee", "rupees", "रुपया", "रुपये"), _unit("paisa", "paise", "पैसा", "पैसे"))
_YEN = Currency(_unit("yen", "yen", "येन"), None)

CURRENCIES: Mapping[str, Currency] = {
    "$": _DOLLAR, "US$": _DOLLAR, "USD": _DOLLAR, "€": _EURO, "EUR": _EURO, "£": _POUND,
    "GBP": _POUND, "₹": _RUPEE, "INR": _RUPEE, "Rs.": _RUPEE, "Rs": _RUPEE, "रु.": _RUPEE,
    "रू.": _RUPEE, "¥": _YEN,
}  # fmt: skip

_THOUSAND, _MILLION = _words("thousand", "हज़ार"), _words("million", "मिलियन")
_BILLION, _TRILLION = _words("billion", "बिलियन"), _words("trillion", "ट्रिलियन")
_LAKH, _CRORE = _words("lakh", "लाख"), _words("crore", "करोड़")
MAGNITUDES: Mapping[str, Mapping[Language, str]] = {
    "k": _THOUSAND, "K": _THOUSAND, "thousand": _THOUSAND, "million": _MILLION, "M": _MILLION,
    "m": _MILLION, "mn": _MILLION, "billion": _BILLION, "B": _BILLION, "bn": _BILLION,
    "trillion": _TRILLION, "tn": _TRILLION, "lakh": _LAKH, "lakhs": _LAKH, "crore": _CRORE,
    "crores": _CRORE, "cr": _CRORE, "लाख": _LAKH, "करोड़": _CRORE, "हज़ार": _THOUSAND,
}  # fmt: skip

_HOUR, _MINUTE = _unit("hour", "hours", "घंटा", "घंटे"), _unit("minute", "minutes", "मिनट")
_SECOND = _unit("second", "seconds", "सेकंड")
_PERCENT, _DEGREE = _unit("percent", "percent", "प्रतिशत"), _unit("degree", "degrees", "डिग्री")
_KM_PER_HOUR = _unit("kilometre per hour", "kilometres per hour", "किलोमीटर प्रति घंटा")
_LITRE = _unit("litre", "litres", "लीटर")
_POUND_WEIGHT = _unit("pound", "pounds", "पाउंड")
UNITS: Mapping[str, Unit] = {
    "%": _PERCENT,
    "°C": _unit("degree Celsius", "degrees Celsius", "डिग्री सेल्सियस"),
    "°F": _unit("degree Fahrenheit", "degrees Fahrenheit", "डिग्री फ़ारेनहाइट"),
    "°": _DEGREE,
    "km/h": _KM_PER_HOUR, "kmph": _KM_PER_HOUR, "kph": _KM_PER_HOUR,
    "mph": _unit("mile per hour", "miles per hour", "मील प्रति घंटा"),
    "m/s": _unit("metre per second", "metres per second", "मीटर प्रति सेकंड"),
    "km": _unit("kilometre", "kilometres", "किलोमीटर"),
    "cm": _unit("centimetre", "centimetres", "सेंटीमीटर"),
    "mm": _unit("millimetre", "millimetres", "मिलीमीटर"),
    "m": _unit("metre", "metres", "मीटर"),
    "ft": _unit("foot", "feet", "फ़ुट"),
    "kg": _unit("kilogram", "kilograms", "किलोग्राम"),
    "mg": _unit("milligram", "milligrams", "मिलीग्राम"),
    "g": _unit("gram", "grams", "ग्राम"),
    "lb": _POUND_WEIGHT, "lbs": _POUND_WEIGHT,
    "oz": _unit("ounce", "ounces", "औंस"),
    "l": _LITRE, "L": _LITRE,
    "ml": _unit("millilitre", "millilitres", "मिलीलीटर"),
    "KB": _unit("kilobyte", "kilobytes", "किलोबाइट"), "MB": _unit("megabyte", "megabytes", "मेगाबाइट"),
    "GB": _unit("gigabyte", "gigabytes", "गीगाबाइट"), "TB": _unit("terabyte", "terabytes", "टेराबाइट"),
    "Hz": _unit("hertz", "hertz", "हर्ट्ज़"), "kHz": _unit("kilohertz", "kilohertz", "किलोहर्ट्ज़"),
    "MHz": _unit("megahertz", "megahertz", "मेगाहर्ट्ज़"),
    "GHz": _unit("gigahertz", "gigahertz", "गीगाहर्ट्ज़"),
    "W": _unit("watt", "watts", "वाट"), "kW": _unit("kilowatt", "kilowatts", "किलोवाट"),
    "kWh": _unit("kilowatt hour", "kilowatt hours", "किलोवाट घंटा"),
    "V": _unit("volt", "volts", "वोल्ट"),
    "ms": _unit("millisecond", "milliseconds", "मिलीसेकंड"),
    "sec": _SECOND, "secs": _SECOND, "min": _MINUTE, "mins": _MINUTE, "hr": _HOUR, "hrs": _HOUR,
}  # fmt: skip

TITLES: list[tuple[str, Mapping[Language, str]]] = [
    (r"\bDr\.(?=\s?[A-Z\u0900-\u097F])", _words("Doctor", "डॉक्टर")),
    (r"\bProf\.", _words("Professor", "प्रोफ़ेसर")),
    (r"\bMr\.", _words("Mister", "मिस्टर")),
    (r"\bMrs\.", _words("Missus", "मिसेज़")),
    (r"\bMs\.", _words("Miz", "मिस")),
    (r"\bSmt\.", _words("Shrimati", "श्रीमती")),
    (r"\bJr\.", _words("Junior", "जूनियर")),
    (r"\bSr\.", _words("Senior", "सीनियर")),
    (r"\bSt\.(?=\s[A-Z])", _words("Saint", "सेंट")),
    (r"\bGen\.(?=\s[A-Z])", _words("General", "जनरल")),
    (r"\bCapt\.", _words("Captain", "कैप्टन")),
    (r"\bLt\.", _words("Lieutenant", "लेफ़्टिनेंट")),
    (r"\bCol\.", _words("Colonel", "कर्नल")),
    (r"\bNo\.(?=\s?\d)", _words("number", "नंबर")),
    (r"\bFig\.(?=\s?\d)", _words("figure", "चित्र")),
    (r"\be\.g\.", _words("for example", "जैसे")),
    (r"\bi\.e\.", _words("that is", "यानी")),
    (r"\bvs\.?(?!\w)", _words("versus", "बनाम")),
    (r"\betc\.(?=\s*$)", _words("et cetera.", "वगैरह.")),
    (r"\betc\.", _words("et cetera", "वगैरह")),
    (r"\bapprox\.", _words("approximately", "लगभग")),
    (r"(?<![\u0900-\u097F])डॉ\.", _words("डॉक्टर", "डॉक्टर")),
    (r"(?<![\u0900-\u097F])प्रो\.", _words("प्रोफ़ेसर", "प्रोफ़ेसर")),
    (r"(?<![\u0900-\u097F])पं\.", _words("पंडित", "पंडित")),
    (r"(?<![\u0900-\u097F])श्री\.", _words("श्री", "श्री")),
]

SIGNS: list[tuple[re.Pattern[str], Mapping[Language, str]]] = [
    (re.compile("&"), _words("and", "और")),
    (re.compile(r"(?<=\d)\s*×\s*(?=\d)"), _words("times", "गुणा")),  # noqa: RUF001 the sign is meant
    (re.compile(r"(?<=\d)\s*\+\s*(?=\d)"), _words("plus", "जोड़")),
    (re.compile(r"(?<=\w)\s*=\s*(?=\w)"), _words("equals", "बराबर")),
    (re.compile(r"(?<!\w)#(?=\d)"), _words("number", "नंबर")),
]
