"""Units of measurement and their names. Symbols mean the same in both languages."""

from __future__ import annotations

from collections.abc import Mapping

from speech.text.language import Language
from speech.text.normalise.quantities.nouns import Noun, Nouns

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
