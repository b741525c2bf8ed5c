"""The table of units: their symbols, and their names in the singular and the plural."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from speech.text.language import HINDI_LETTERS, WORD_END, Language
from speech.text.normalise.locale import Locale
from speech.text.normalise.numbers import is_one

# signs that look like others are the point


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
    ("मि.ली. मि.ली मिली.", "millilitre", "millilitres", "मिलीलीटर"),
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
    # -- medicine
    ("mEq", "milliequivalent", "milliequivalents", "मिलीइक्विवेलेंट"),
    ("µmol μmol", "micromole", "micromoles", "माइक्रोमोल"),
    ("mmHg", "millimetre of mercury", "millimetres of mercury", "मिलीमीटर पारा"),
    ("IU", "international unit", "international units", "अंतरराष्ट्रीय यूनिट"),
    ("atm", "atmosphere", "atmospheres", "ऐटमॉस्फ़ियर"),
    ("Å", "angstrom", "angstroms", "ऐंग्स्ट्रॉम"),
    ("kDa", "kilodalton", "kilodaltons", "किलोडाल्टन"),
    ("mM", "millimolar", "millimolar", "मिलीमोलर"),
    ("µM μM", "micromolar", "micromolar", "माइक्रोमोलर"),
    ("mSv", "millisievert", "millisieverts", "मिलीसीवर्ट"),
    ("kmol", "kilomole", "kilomoles", "किलोमोल"),
    ("GPa", "gigapascal", "gigapascals", "गीगापास्कल"),
    ("Torr", "torr", "torr", "टॉर"),
    ("Ltr Ltrs ltr ltrs", "litre", "litres", "लीटर"),
    ("amps amp", "amp", "amps", "ऐम्पियर"),
    ("ly", "light year", "light years", "प्रकाश वर्ष"),
    ("reb reb. rebs", "rebound", "rebounds", "रिबाउंड"),
    ("ast ast. asts", "assist", "assists", "असिस्ट"),
    ("stl stl.", "steal", "steals", "स्टील"),
    ("gls", "goal", "goals", "गोल"),
    ("units", "unit", "units", "यूनिट"),
    ("µL μL uL", "microlitre", "microlitres", "माइक्रोलीटर"),
    ("ng", "nanogram", "nanograms", "नैनोग्राम"),
    ("pg", "picogram", "picograms", "पिकोग्राम"),
    ("cc", "cubic centimetre", "cubic centimetres", "घन सेंटीमीटर"),
    ("tab. tabs.", "tablet", "tablets", "गोली/गोलियाँ"),
    # -- kitchens and shops
    ("c.", "cup", "cups", "कप"),
    ("pt pt.", "pint", "pints", "पिंट"),
    ("qt qt. qts qts.", "quart", "quarts", "क्वार्ट"),
    ("Tbsp Tbsp. tbsps TBSP", "tablespoon", "tablespoons", "बड़ा चम्मच/बड़े चम्मच"),
    ("Tsp Tsp. tsps TSP", "teaspoon", "teaspoons", "छोटा चम्मच/छोटे चम्मच"),
    ("doz doz. dz", "dozen", "dozen", "दर्जन"),
    ("pc pcs pc. pcs. Pcs", "piece", "pieces", "नग"),
    ("bps bp", "basis point", "basis points", "आधार अंक"),
    ("nos nos.", "number", "numbers", "नग"),
    ("ct ct.", "count", "count", "नग"),
    ("pkt pkts pkt. pkts.", "packet", "packets", "पैकेट"),
    ("pk pk.", "pack", "pack", "पैक"),
    ("pks pks.", "pack", "packs", "पैक"),
    ("cal cals", "calorie", "calories", "कैलोरी"),
    ("bbl bbl.", "barrel", "barrels", "बैरल"),
    # -- time
    ("yr yrs yr. yrs.", "year", "years", "साल"),
    ("mo mos mo. mos. mth mths", "month", "months", "महीना/महीने"),
    ("wk wks wk. wks.", "week", "weeks", "हफ़्ता/हफ़्ते"),
    ("मि.", "minute", "minutes", "मिनट"),
    ("घं.", "hour", "hours", "घंटा/घंटे"),
    # -- science and engineering
    ("env env. envs.", "envelope", "envelopes", "लिफ़ाफ़ा/लिफ़ाफ़े"),
    ("lb-ft lb·ft lbf·ft lb-fts lb.ft", "pound foot", "pound feet", "पाउंड फ़ुट"),
    ("ft-lb ft-lbs ft·lb ft.lb ft-lbf", "foot pound", "foot pounds", "फ़ुट पाउंड"),
    ("qtl qtls qtl. qtls. quintal", "quintal", "quintals", "क्विंटल"),
    ("mtr mtrs Mtr Mtrs mtr. mtrs.", "metre", "metres", "मीटर"),
    ("sqm", "square metre", "square metres", "वर्ग मीटर"),
    ("mnth mnths", "month", "months", "महीना/महीने"),
    ("sft Sft SFT", "square foot", "square feet", "वर्ग फ़ुट"),
    ("tbs tbs. Tbs Tbs. tblsp tblsp.", "tablespoon", "tablespoons", "बड़ा चम्मच/बड़े चम्मच"),
    ("gtt gtts gtt. gtts.", "drop", "drops", "बूँद/बूँदें"),
    ("caps caps. cap.", "capsule", "capsules", "कैप्सूल"),
    ("pct pct.", "percent", "percent", "प्रतिशत"),
    ("inn. inns.", "inning", "innings", "पारी"),
    ("dag", "decagram", "decagrams", "डेकाग्राम"),
    ("dm", "decimetre", "decimetres", "डेसीमीटर"),
    ("hl hL", "hectolitre", "hectolitres", "हेक्टोलीटर"),
    ("fl.oz. floz", "fluid ounce", "fluid ounces", "फ़्लूइड औंस"),
    ("EB", "exabyte", "exabytes", "एक्साबाइट"),
    ("Tbps Tbit/s", "terabit per second", "terabits per second", "टेराबिट प्रति सेकंड"),
    ("MB/s MBps", "megabyte per second", "megabytes per second", "मेगाबाइट प्रति सेकंड"),
    ("GB/s GBps", "gigabyte per second", "gigabytes per second", "गीगाबाइट प्रति सेकंड"),
    ("THz", "terahertz", "terahertz", "टेराहर्ट्ज़"),
    ("pF", "picofarad", "picofarads", "पिकोफ़ैरड"),
    ("mH", "millihenry", "millihenries", "मिलीहेनरी"),
    ("TWh", "terawatt hour", "terawatt hours", "टेरावाट घंटा"),
    ("mEq/L", "milliequivalent per litre", "milliequivalents per litre", "मिलीइक्विवेलेंट प्रति लीटर"),
    ("Nos Nos.", "number", "numbers", "नग"),
    ("sqft SqFt Sqft", "square foot", "square feet", "वर्ग फ़ुट"),
    ("tpi TPI", "thread per inch", "threads per inch", "धागे प्रति इंच"),
    ("wpm WPM", "word per minute", "words per minute", "शब्द प्रति मिनट"),
    ("cfm CFM", "cubic foot per minute", "cubic feet per minute", "घन फ़ुट प्रति मिनट"),
    ("gpm GPM", "gallon per minute", "gallons per minute", "गैलन प्रति मिनट"),
    ("lpm LPM", "litre per minute", "litres per minute", "लीटर प्रति मिनट"),
    ("pks pkgs", "pack", "packs", "पैक"),
    ("sq.ft. sq.ft", "square foot", "square feet", "वर्ग फ़ुट"),
    ("kN", "kilonewton", "kilonewtons", "किलोन्यूटन"),
    ("Nm", "newton metre", "newton metres", "न्यूटन मीटर"),
    ("mV", "millivolt", "millivolts", "मिलीवोल्ट"),
    ("µV μV", "microvolt", "microvolts", "माइक्रोवोल्ट"),
    ("µA μA", "microampere", "microamperes", "माइक्रोऐम्पियर"),
    ("Ah", "ampere hour", "ampere hours", "ऐम्पियर घंटा"),
    ("kVA", "kilovolt ampere", "kilovolt amperes", "किलोवोल्ट ऐम्पियर"),
    ("VDC", "volt D C", "volts D C", "वोल्ट D C"),
    ("VAC", "volt A C", "volts A C", "वोल्ट A C"),
    ("mW", "milliwatt", "milliwatts", "मिलीवाट"),
    ("GWh", "gigawatt hour", "gigawatt hours", "गीगावाट घंटा"),
    ("kΩ", "kilohm", "kilohms", "किलोओम"),
    ("MΩ", "megohm", "megohms", "मेगओम"),
    ("µF μF", "microfarad", "microfarads", "माइक्रोफ़ैरड"),
    ("nF", "nanofarad", "nanofarads", "नैनोफ़ैरड"),
    ("MJ", "megajoule", "megajoules", "मेगाजूल"),
    ("MPa", "megapascal", "megapascals", "मेगापास्कल"),
    ("mbar", "millibar", "millibars", "मिलीबार"),
    ("eV", "electronvolt", "electronvolts", "इलेक्ट्रॉन वोल्ट"),
    ("keV", "kiloelectronvolt", "kiloelectronvolts", "किलोइलेक्ट्रॉन वोल्ट"),
    ("MeV", "megaelectronvolt", "megaelectronvolts", "मेगाइलेक्ट्रॉन वोल्ट"),
    ("GeV", "gigaelectronvolt", "gigaelectronvolts", "गीगाइलेक्ट्रॉन वोल्ट"),
    ("ppb", "part per billion", "parts per billion", "भाग प्रति अरब"),
    ("lm", "lumen", "lumens", "लुमेन"),
    ("lx", "lux", "lux", "लक्स"),
    ("dBm", "decibel milliwatt", "decibel milliwatts", "डेसिबल मिलीवाट"),
    ("dpi DPI", "dot per inch", "dots per inch", "डॉट प्रति इंच"),
    ("ppi PPI", "pixel per inch", "pixels per inch", "पिक्सेल प्रति इंच"),
    ("gsm GSM", "gram per square metre", "grams per square metre", "ग्राम प्रति वर्ग मीटर"),
    ("Mb", "megabit", "megabits", "मेगाबिट"),
    ("Gb", "gigabit", "gigabits", "गीगाबिट"),
    ("BTU", "BTU", "BTUs", "BTU"),
    # -- vehicles, sport
    ("mpg MPG", "mile per gallon", "miles per gallon", "मील प्रति गैलन"),
    ("kmpl", "kilometre per litre", "kilometres per litre", "किलोमीटर प्रति लीटर"),
    ("hp HP", "horsepower", "horsepower", "हॉर्सपावर"),
    ("bhp BHP", "brake horsepower", "brake horsepower", "ब्रेक हॉर्सपावर"),
    ("nmi", "nautical mile", "nautical miles", "समुद्री मील"),
    ("pts pts.", "point", "points", "अंक"),
    ("wkt wkts", "wicket", "wickets", "विकेट"),
)
_SQUARE_AND_CUBIC: tuple[tuple[str, str, str, str], ...] = (
    # an expression of the symbol, one, many, Hindi
    (r"sq\.? ?ft\.?|वर्ग (?:फ़ुट|फुट)", "square foot", "square feet", "वर्ग फ़ुट"),
    (r"sq\.? ?m(?:tr)?\.?", "square metre", "square metres", "वर्ग मीटर"),
    (r"sq\.? ?km\.?", "square kilometre", "square kilometres", "वर्ग किलोमीटर"),
    (r"sq\.? ?mi\.?", "square mile", "square miles", "वर्ग मील"),
    (r"sq\.? ?yds?\.?", "square yard", "square yards", "वर्ग गज"),
    (r"sq\.? ?in\.?", "square inch", "square inches", "वर्ग इंच"),
    (r"cu\.? ?ft\.?", "cubic foot", "cubic feet", "घन फ़ुट"),
    (r"cu\.? ?m\.?", "cubic metre", "cubic metres", "घन मीटर"),
    (r"in\. ?Hg|inHg", "inch of mercury", "inches of mercury", "इंच पारा"),
    (r"fl\.? ?oz\.?", "fluid ounce", "fluid ounces", "फ़्लूइड औंस"),
)


def _nouns(one: str, many: str, hindi: str) -> Nouns:
    first, _, several = hindi.partition("/")
    return {Language.ENGLISH: Noun(one, many), Language.HINDI: Noun(first, several or first)}


UNITS: Mapping[str, Nouns] = {
    symbol: _nouns(one, many, hindi)
    for symbols, one, many, hindi in _ROWS
    for symbol in symbols.split()
}
_SPACED = [
    (re.compile(symbol), _nouns(one, many, hindi)) for symbol, one, many, hindi in _SQUARE_AND_CUBIC
]
INCH: Nouns = UNITS["inch"]
INCH_SIGNS = ('"', "”")
"""Signs of inches that may also close a quotation; ``in_quotation`` tells which."""
FOOT: Nouns = UNITS["ft"]
UNIT = "|".join(
    (
        *(symbol for symbol, *_ in _SQUARE_AND_CUBIC),
        *sorted(map(re.escape, UNITS), key=len, reverse=True),
    )
)
"""An expression of every symbol, to be put into a group."""
PER = (
    rf"(?:\s?/\s?(?P<each>\d{{1,4}})? ?(?P<per>{UNIT})(?:\^?(?P<per_power>[23]))?{WORD_END}"
    rf"(?:/(?P<then>{UNIT}){WORD_END})?|(?:/|\s/\s?(?![{HINDI_LETTERS}])|/\s)(?:(?P<many>\d{{1,4}}) (?=[a-z]{{2,13}}s\b))?(?P<noun>[a-z]{{3,14}}|[\u0900-\u097f]{{2,14}}){WORD_END})?+"
)
"""An expression of what follows a measure or an amount: ``/kg``, ``/5 mL``, ``/kg/h``, ``/night``."""

_HINDI_NOUNS = {
    "day": "दिन", "week": "हफ़्ता", "month": "माह", "year": "वर्ष", "hour": "घंटा", "minute": "मिनट",
    "night": "रात", "person": "व्यक्ति", "piece": "नग",
}  # fmt: skip

_DOSES = frozenset({
    "mg", "mcg", "µg", "μg", "g", "kcal", "kJ", "IU", "mmol", "mEq", "units", "ng",
})  # fmt: skip
"""What is counted by a measure of ``_DOSED``: ``5 mg/5 mL``."""
_DOSED = frozenset(["mL", "ml", "L", "l", "dL", "dl", "kg", "h", "hr", "min"])

_OPENS = re.compile(r"(?<![^\s(\[=:])\"|“")
_CLOSES = re.compile(r"(?<=[^\s(\[=:\d])\"|”")


def nouns_of(symbol: str) -> Nouns:
    """The names of a unit by a symbol that ``UNIT`` matches."""
    if symbol in UNITS:
        return UNITS[symbol]
    return next(nouns for pattern, nouns in _SPACED if pattern.fullmatch(symbol))


def powered(name: str, power: str | None, locale: Locale) -> str:
    """The name of a unit that is squared or cubed."""
    if power is None:
        return name
    if name in ("second", "seconds"):
        return f"{name} {'squared' if power == '2' else 'cubed'}"
    words = ("वर्ग", "घन") if locale.is_hindi else ("square", "cubic")
    return f"{words[power == '3']} {name}"


def per(match: re.Match[str], locale: Locale) -> str:
    """The words of a match of ``PER``, which begin with a space; empty when nothing follows."""
    word = "प्रति" if locale.is_hindi else "per"
    if noun := match["noun"]:
        many = f"{match['many']} " if match["many"] else ""
        return f" {word} {many}{_HINDI_NOUNS.get(noun, noun) if locale.is_hindi else noun}"
    if not match["per"]:
        return ""
    each = nouns_of(match["per"])[locale.language]
    if match["each"] and not _is_dose(match):
        # The same in other units: 225g/8oz.
        return f", {match['each']} {each.name(match['each'])}"
    figure = f"{match['each']} " if match["each"] else ""
    named = each.many if figure else each.one
    then = f" {word} {nouns_of(match['then'])[locale.language].one}" if match["then"] else ""
    return f" {word} {figure}{powered(named, match['per_power'], locale)}{then}"


def _is_dose(match: re.Match[str]) -> bool:
    """Whether a measure after a slash is what it is counted by: ``5 mg/5 mL``, ``12 g/100 g``."""
    if match.groupdict().get("sign"):
        return True
    unit = match.groupdict().get("unit") or ""
    return unit in _DOSES and (match["per"] in _DOSED or match["each"] == "100")


def in_quotation(before: str) -> bool:
    """Whether a quotation is open at the end of ``before``; signs of inches close none."""
    return len(_OPENS.findall(before)) > len(_CLOSES.findall(before))
