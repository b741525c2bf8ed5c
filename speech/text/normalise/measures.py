"""Figures with a unit, and the short forms of thousand, million and billion."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from speech.text.language import Language
from speech.text.normalise import numbers
from speech.text.normalise.locale import Locale
from speech.text.normalise.numbers import FIGURE, START, is_one

# ruff: noqa: RUF001  # signs that look like others are the point


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun in the singular and in the plural."""

    one: str
    many: str

    def name(self, figure: str) -> str:
        """The form that goes with a canonical figure."""
        return self.one if is_one(figure) else self.many


Nouns = Mapping[Language, Noun]


_ROWS: tuple[tuple[str, str, str, str], ...] = (
    # symbols, one, many, Hindi (one/many where they differ)
    ("%", "percent", "percent", "प्रतिशत"),
    ("‰", "per mille", "per mille", "प्रति हज़ार"),
    ("°C ºC", "degree Celsius", "degrees Celsius", "डिग्री सेल्सियस"),
    ("°F ºF", "degree Fahrenheit", "degrees Fahrenheit", "डिग्री फ़ारेनहाइट"),
    ("°", "degree", "degrees", "डिग्री"),
    ("km kms Km KM किमी कि.मी. कि.मी", "kilometre", "kilometres", "किलोमीटर"),
    ("m मी. मी", "metre", "metres", "मीटर"),
    ("cm cms सेमी से.मी.", "centimetre", "centimetres", "सेंटीमीटर"),
    ("mm मिमी मि.मी.", "millimetre", "millimetres", "मिलीमीटर"),
    ("µm μm", "micrometre", "micrometres", "माइक्रोमीटर"),
    ("nm", "nanometre", "nanometres", "नैनोमीटर"),
    ("ft ft.", "foot", "feet", "फ़ुट"),
    ("yd yd. yds", "yard", "yards", "गज"),
    ("mi mi.", "mile", "miles", "मील"),
    ("inch", "inch", "inches", "इंच"),
    ("ha", "hectare", "hectares", "हेक्टेयर"),
    ("ac", "acre", "acres", "एकड़"),
    ("kg kgs Kg KG kg. किग्रा कि.ग्रा. कि.ग्रा", "kilogram", "kilograms", "किलोग्राम"),
    ("g gm gms ग्रा.", "gram", "grams", "ग्राम"),
    ("mg मिग्रा मि.ग्रा.", "milligram", "milligrams", "मिलीग्राम"),
    ("mcg µg μg", "microgram", "micrograms", "माइक्रोग्राम"),
    ("lb lbs lb. lbs.", "pound", "pounds", "पाउंड"),
    ("oz oz.", "ounce", "ounces", "औंस"),
    ("t", "tonne", "tonnes", "टन"),
    ("l L ltr ली.", "litre", "litres", "लीटर"),
    ("ml mL मिली", "millilitre", "millilitres", "मिलीलीटर"),
    ("cl", "centilitre", "centilitres", "सेंटीलीटर"),
    ("gal gal.", "gallon", "gallons", "गैलन"),
    ("tsp tsp.", "teaspoon", "teaspoons", "छोटा चम्मच/छोटे चम्मच"),
    ("tbsp tbsp.", "tablespoon", "tablespoons", "बड़ा चम्मच/बड़े चम्मच"),
    ("h hr hrs hr. hrs.", "hour", "hours", "घंटा/घंटे"),
    ("min mins min. mins.", "minute", "minutes", "मिनट"),
    ("s sec secs sec. secs.", "second", "seconds", "सेकंड"),
    ("ms", "millisecond", "milliseconds", "मिलीसेकंड"),
    ("µs μs", "microsecond", "microseconds", "माइक्रोसेकंड"),
    ("ns", "nanosecond", "nanoseconds", "नैनोसेकंड"),
    ("mph MPH", "mile per hour", "miles per hour", "मील प्रति घंटा"),
    ("kmph kph", "kilometre per hour", "kilometres per hour", "किलोमीटर प्रति घंटा"),
    ("KB kB kb", "kilobyte", "kilobytes", "किलोबाइट"),
    ("MB", "megabyte", "megabytes", "मेगाबाइट"),
    ("GB", "gigabyte", "gigabytes", "गीगाबाइट"),
    ("TB", "terabyte", "terabytes", "टेराबाइट"),
    ("PB", "petabyte", "petabytes", "पेटाबाइट"),
    ("KiB", "kibibyte", "kibibytes", "किबिबाइट"),
    ("MiB", "mebibyte", "mebibytes", "मेबिबाइट"),
    ("GiB", "gibibyte", "gibibytes", "गिबिबाइट"),
    ("TiB", "tebibyte", "tebibytes", "टेबिबाइट"),
    ("Kbps kbps", "kilobit per second", "kilobits per second", "किलोबिट प्रति सेकंड"),
    ("Mbps mbps Mbit/s", "megabit per second", "megabits per second", "मेगाबिट प्रति सेकंड"),
    ("Gbps gbps Gbit/s", "gigabit per second", "gigabits per second", "गीगाबिट प्रति सेकंड"),
    ("Hz", "hertz", "hertz", "हर्ट्ज़"),
    ("kHz KHz", "kilohertz", "kilohertz", "किलोहर्ट्ज़"),
    ("MHz", "megahertz", "megahertz", "मेगाहर्ट्ज़"),
    ("GHz", "gigahertz", "gigahertz", "गीगाहर्ट्ज़"),
    ("W", "watt", "watts", "वाट"),
    ("kW KW", "kilowatt", "kilowatts", "किलोवाट"),
    ("MW", "megawatt", "megawatts", "मेगावाट"),
    ("GW", "gigawatt", "gigawatts", "गीगावाट"),
    ("Wh", "watt hour", "watt hours", "वाट घंटा"),
    ("kWh", "kilowatt hour", "kilowatt hours", "किलोवाट घंटा"),
    ("MWh", "megawatt hour", "megawatt hours", "मेगावाट घंटा"),
    ("V", "volt", "volts", "वोल्ट"),
    ("kV", "kilovolt", "kilovolts", "किलोवोल्ट"),
    ("mA", "milliampere", "milliamperes", "मिलीऐम्पियर"),
    ("mAh", "milliampere hour", "milliampere hours", "मिलीऐम्पियर घंटा"),
    ("Ω", "ohm", "ohms", "ओम"),
    ("J", "joule", "joules", "जूल"),
    ("kJ", "kilojoule", "kilojoules", "किलोजूल"),
    ("kcal", "kilocalorie", "kilocalories", "किलोकैलोरी"),
    ("Pa", "pascal", "pascals", "पास्कल"),
    ("kPa", "kilopascal", "kilopascals", "किलोपास्कल"),
    ("hPa", "hectopascal", "hectopascals", "हेक्टोपास्कल"),
    ("psi", "pound per square inch", "pounds per square inch", "पाउंड प्रति वर्ग इंच"),
    ("dB", "decibel", "decibels", "डेसिबल"),
    ("rpm", "revolution per minute", "revolutions per minute", "चक्कर प्रति मिनट"),
    ("bpm", "beat per minute", "beats per minute", "धड़कन प्रति मिनट"),
    ("fps", "frame per second", "frames per second", "फ़्रेम प्रति सेकंड"),
    ("ppm", "part per million", "parts per million", "भाग प्रति दस लाख"),
    ("dL dl", "decilitre", "decilitres", "डेसीलीटर"),
    ("mol", "mole", "moles", "मोल"),
    ("mmol", "millimole", "millimoles", "मिलीमोल"),
    ("kts kn", "knot", "knots", "नॉट"),
    ("px", "pixel", "pixels", "पिक्सेल"),
    ("MP", "megapixel", "megapixels", "मेगापिक्सेल"),
)
_SPACED: tuple[tuple[tuple[str, ...], str, str, str], ...] = (
    (
        ("sq ft", "sq. ft.", "sq. ft", "sqft", "वर्ग फ़ुट", "वर्ग फुट"),
        "square foot",
        "square feet",
        "वर्ग फ़ुट",
    ),
    (("sq m", "sq. m.", "sq. m", "sqm"), "square metre", "square metres", "वर्ग मीटर"),
    (("sq km", "sq. km", "sq. km."), "square kilometre", "square kilometres", "वर्ग किलोमीटर"),
    (("sq mi", "sq. mi."), "square mile", "square miles", "वर्ग मील"),
    (("sq yd", "sq. yd."), "square yard", "square yards", "वर्ग गज"),
    (("sq in", "sq. in."), "square inch", "square inches", "वर्ग इंच"),
    (("cu ft", "cu. ft."), "cubic foot", "cubic feet", "घन फ़ुट"),
    (("fl oz", "fl. oz."), "fluid ounce", "fluid ounces", "फ़्लूइड औंस"),
)


def _nouns(one: str, many: str, hindi: str) -> Nouns:
    first, _, several = hindi.partition("/")
    return {Language.ENGLISH: Noun(one, many), Language.HINDI: Noun(first, several or first)}


UNITS: Mapping[str, Nouns] = {
    **{
        symbol: _nouns(one, many, hindi)
        for symbols, one, many, hindi in _ROWS
        for symbol in symbols.split()
    },
    **{
        symbol: _nouns(one, many, hindi)
        for symbols, one, many, hindi in _SPACED
        for symbol in symbols
    },
}
INCH: Nouns = UNITS["inch"]
FOOT: Nouns = UNITS["ft"]


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
_INCH_RANGE = re.compile(
    rf"{START}(?P<first>{FIGURE})\s?[-–—]\s?(?P<last>{FIGURE})\s?(?P<mark>[\"”″])"
)
_LAKHS = re.compile(
    rf"(?<![\w.$€£₹-])(?<!\d,)(?P<figure>{FIGURE})L(?= (?!of\b)(?:[a-z]+ )?(?!(?:bottle|can|pack|jar|tank|container|carton|"
    r"engine|pouche|bucket|cooker|kettle|jug|pot|bag)s\b)(?:[a-z]+s|people|women|men|children)\b)"
)
_AMPERES = re.compile(
    rf"{START}(?P<figure>{FIGURE}) A(?= (?:fuse|breaker|charger|circuit|supply|adapter|adaptor|socket|outlet|current|load)s?\b)"
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
    if locale.is_indian:
        text = _LAKHS.sub(rf"\g<figure> {'लाख' if locale.is_hindi else 'lakh'}", text)
    text = _AMPERES.sub(rf"\g<figure> {'ऐम्पियर' if locale.is_hindi else 'amp'}", text)
    text = _SHORT.sub(lambda match: _short(match, locale), text)
    text = _HEIGHT.sub(lambda match: _height(match, locale), text)
    text = _FEET.sub(lambda match: _counted(match["first"], FOOT, locale), text)
    text = _INCH_RANGE.sub(lambda match: _inch_range(match, locale), text)
    text = _INCHES.sub(lambda match: _inches(match, locale), text)
    return _MEASURE.sub(lambda match: _measure(match, locale), text)


def _counted(figure: str, nouns: Nouns, locale: Locale) -> str:
    return f"{numbers.spoken(figure, locale)} {nouns[locale.language].name(figure)}"


def _height(match: re.Match[str], locale: Locale) -> str:
    return f"{_counted(match['feet'], FOOT, locale)} {_counted(match['inches'], INCH, locale)}"


def _inch_range(match: re.Match[str], locale: Locale) -> str:
    """A range with the sign of inches, unless the sign closes a quotation."""
    before = match.string[: match.start()]
    if before.count('"') % 2 or before.count("“") > before.count("”"):
        return match[0]
    return f"{_amount(match, locale)} {INCH[locale.language].many}"


def _inches(match: re.Match[str], locale: Locale) -> str:
    return _counted(match["first"], INCH, locale) + ("." if match["stop"] else "")


def _amount(match: re.Match[str], locale: Locale) -> str:
    said = numbers.spoken(match["first"], locale)
    if match["last"]:
        said += f" {'से' if locale.is_hindi else 'to'} {numbers.spoken(match['last'], locale)}"
    return said


def _measure(match: re.Match[str], locale: Locale) -> str:
    below = f"{numbers.minus(locale)} " if match["minus"] else ""
    noun = UNITS[match["unit"]][locale.language]
    scale = match["scale"] or ""
    name = noun.many if match["last"] or scale else noun.name(match["first"])
    if numbers.is_compound(match):
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
