"""Writes out the short forms of notes: ``w/c``, ``c/o SOB``, ``x 5 days``, ``5/7``, ``32w4d``, ``B-``."""

from __future__ import annotations

import re

from speech.text.language import WORD_END
from speech.text.normalise import numbers
from speech.text.normalise.locale import Locale, Region

# ruff: noqa: RUF001  # signs that look like others are the point

_SLASHED = {
    "w/c": ("week commencing", "सप्ताह"),
    "w/b": ("week beginning", "सप्ताह"),
    "w/e": ("week ending", "सप्ताहांत"),
    "b/w": ("between", "के बीच"),
    "b/t": ("between", "के बीच"),
    "b/f": ("brought forward", "पिछला शेष"),
    "c/f": ("carried forward", "आगे ले जाया गया"),
    "a/c": ("account", "खाता"),
    "f/u": ("follow up", "फ़ॉलो अप"),
    "r/o": ("rule out", "rule out"),
    "r/v": ("review", "review"),
    "r/w": ("read with", "सपठित"),
    "i/c": ("in charge", "प्रभारी"),
    "o/s": ("outstanding", "बकाया"),
    "M/s": ("Messrs", "मेसर्स"),
    "w/d": ("washer dryer", "washer dryer"),
    "o/e": ("on examination", "on examination"),
    "n/v": ("nausea and vomiting", "nausea and vomiting"),
    "a/w": ("associated with", "associated with"),
    "w/w": ("weight by weight", "weight by weight"),
    "w/v": ("weight by volume", "weight by volume"),
    "v/v": ("volume by volume", "volume by volume"),
}
_SHORT = re.compile(
    rf"(?<![\w/])(?:{'|'.join(_SLASHED)}|M/s\.?|O/E|N/V|A/c|A/C(?= (?:[Nn]o|[Nn]umber|\d{{3}}|X)))(?![\w/])"
)
_FAMILY = {
    "s": ("son of", "पुत्र"),
    "d": ("daughter of", "पुत्री"),
    "w": ("wife of", "पत्नी"),
    "r": ("resident of", "निवासी"),
}
_OF_FAMILY = re.compile(r"(?<![\w/])(?P<who>[SDWR]|[sdr])/[oO](?=:? [A-Z\u0900-\u097f])")
"""Indian forms: ``S/o Ram Lal``."""
_WEEK = re.compile(r" (?:\d|the\b|[A-Z])")
_COMPLAINS = re.compile(
    r"(?<![\w/])c/o(?= (?:CP|SOB|HA|LBP|N/V)\b| (?!the\b|my\b|his\b|her\b|our\b|your\b)[a-z])"
)
_PATIENT = re.compile(r"\b[Pp]t\.?(?= complaining of\b)")
_FOR_SO_LONG = re.compile(
    r"(?:(?<=[A-Za-z)\].,])|(?<=\d-\d-\d)|(?<=\d)(?= [x×] \d{1,2} (?:days|weeks|wks|months|mos)\b)) ?[x×] ?(?P<count>\d{1,3}(?:[-–]\d{1,3})?)"
    r"(?:/(?P<seventh>7|52|12)| ?(?P<unit>d|days?|wks?|weeks?|mos?|mths?|months?|yrs?|years?|hrs?|hours?|nights?))(?!\w)"
)
_COURSE = re.compile(
    r"(?P<before>\b(?:TDS|BD|OD|QDS|TID|BID|QID|nocte|mane|daily|once a day|times a day|review(?: in)?|hx|for|in|after|course)\)? )"
    r"(?P<count>\d{1,2})/(?P<seventh>7|52|12)(?![\w/]|[.,]\d| (?:of|the)\b)"
)
"""Days, weeks and months of a British prescription; ``for`` may stand before a plain fraction."""
_PARTS = {"7": ("day", "दिन"), "52": ("week", "हफ़्ते"), "12": ("month", "महीने")}
_HINDI_COURSE = re.compile(r"(?<=\S) ?[x×] ?(?=\d{1,3} (?:दिन|हफ़्ते|महीने|din)\b)")
_WEEKS = re.compile(
    r"(?<!\breview )(?<!\breview in )(?<![\w./-])(?<!TDS )(?<!BD )(?<!OD )(?<![x×] )(?<![x×])(?P<count>\d{1,2})/52(?![\w/]|[.,]\d| (?:of|week|game)\b)"
)
_HINDI_NUMBER = re.compile(r"(?<=\w )no\.(?= [a-z\d\u0900-\u097f])")
_HISTORY = re.compile(
    r"(?<![\w./])(?P<count>\d{1,2})/(?P<seventh>7|52|12)(?= (?:hx|history|h/o)\b)"
)
_MINUTE = re.compile(
    r"(?:(?<=[a-zé] )|(?<=, )|(?<=& )|(?<=\())(?P<minute>1[01]\d|120|[1-9]\d?)(?P<added>\+\d{1,2})?['’′](?=[,;).\s]|$)(?! (?:wide|tall|long|high|deep|by|x)\b)"
)
"""A minute of a football match: ``Saka 23', 45+2'``."""
_PRIME = re.compile(r"\d['’′]")
_MATCH = re.compile(
    r"[a-z] \d{1,2}[-–]\d{1,2} [A-Z]|\bgoals?\b|\bpen\b|\b[FH]T\b|\bscore[ds]\b|\bred card\b|\d\+\d{1,2}['’]|\([A-Z][a-z]+ \d{1,2}['’]"
)
_UNITS = {
    "d": "days",
    "w": "weeks",
    "wk": "weeks",
    "mo": "months",
    "mth": "months",
    "yr": "years",
    "hr": "hours",
}
_SPAN = re.compile(
    r"(?<![\w.,:-])(?:(?P<weeks>\d{1,2})w ?(?P<days>[0-6])d|(?P<day>\d{1,4})d ?(?P<hours>[01]?\d|2[0-3])h(?: ?(?P<minutes>[0-5]?\d)m)?)(?!\w)"
)
_DOSE = re.compile(
    r"(?<=\d) ?U(?= (?:before|after|SC|SQ|IV|IM|at (?:bed|night)|daily|nightly|of|with|qhs|sub ?cut)\b|/(?:mL|ml|kg|L|h|hr|day)\b)"
)
_GRADE = re.compile(
    r"(?<![\w'’/-])(?P<grade>[A-F]|AB|O)[-−](?=$|[\s,.;!?)])(?! ?(?:and|or|to|&|,) [A-Z]-)(?! [A-Z\d])(?P<blood> (?=(?:blood|type|group|donors?)\b))?"
)
_POSITIVE = re.compile(r"(?<!\d)(?P<sign>[+-])ve\b")
_BLOOD = re.compile(r"(?<![\w+])(?P<group>A|B|AB|O)\+(?= (?:blood|type|group|donors?)\b)")

_SIDE = {"C": ("credit", "क्रेडिट"), "D": ("debit", "डेबिट")}
_SIDES = re.compile(
    rf"(?<=\d\.\d\d) ?(?P<side>[CD])[rR]\b\.?(?=\s*$|\s*[,;:|)]| ?\d| [A-Z]{{3}}| (?:as|on|at|है){WORD_END})"
)
"""The side of an account after an amount with its hundredths: ``4,56,789.12 Cr``."""
_STATEMENT = re.compile(
    r"(?i:\b(?:bal(?:ance)?s?(?! of\b| sheets?\b)|a/c|acct|passbook)\b)|\b(?:NEFT|IMPS|UPI|RTGS)(?:[/-]| [A-Z]{2})|\d\.\d\d ?D[rR]\b|शेष|बैलेंस"
)
_COMPANY = re.compile(
    r"\b(?:revenues?|turnover|profits?|loss(?:es)?|sales|income|market|mcap|deficit|surplus|budget|company|companies|ltd|limited|quarter|fy|q[1-4]|"
    r"projects?|orders?|govt|government|rbi|assets|debt|trade|exports?|imports?|crores?|lakh|fund|aum|ipo|राजस्व|मुनाफ़ा|बजट|सरकार)\b",
    re.IGNORECASE,
)
"""What an amount in crores is about, where ``Cr`` is no credit."""


def written_out(text: str, locale: Locale) -> str:
    """Write the short forms of notes in words."""
    hindi = locale.is_hindi
    if "Cr" in text or "CR" in text or "Dr" in text or "DR" in text:
        text = _with_sides(text, locale)
    if "/" in text:
        if locale.region is Region.IN:
            text = _OF_FAMILY.sub(lambda match: _FAMILY[match["who"].lower()][hindi], text)
        text = _COMPLAINS.sub("complaining of", text)
        text = _SHORT.sub(lambda match: _short(match, locale), text)
        text = _PATIENT.sub("patient", text)
        text = _HISTORY.sub(lambda match: f"{match['count']} {_PARTS[match['seventh']][0]}", text)
        if "/52" in text:
            text = _WEEKS.sub(_weeks, text)
        text = _COURSE.sub(lambda match: _course(match, locale), text)
    if "-" in text or "−" in text or "+" in text:
        text = _POSITIVE.sub(
            lambda match: " positive" if match["sign"] == "+" else " negative", text
        )
        if not hindi:
            text = _BLOOD.sub(r"\g<group> positive", text)
            text = _GRADE.sub(
                lambda match: (
                    f"{match['grade']} {'negative' if match['blood'] else 'minus'}{match['blood'] or ''}"
                ),
                text,
            )
    if not any(map(str.isdecimal, text)):
        return text
    if not hindi:
        text = _FOR_SO_LONG.sub(lambda match: _for_so_long(match, locale), text)
        if "U" in text:
            text = _DOSE.sub(" units", text)
        if _PRIME.search(text) and _MATCH.search(text):
            text = _MINUTE.sub(lambda match: _minute(match, locale), text)
    if hindi:
        text = _HINDI_COURSE.sub(", ", text)
        text = _HINDI_NUMBER.sub("नंबर", text)
    return _SPAN.sub(_span, text)


def _with_sides(text: str, locale: Locale) -> str:
    """Write the side of an account after its amounts, in a line of a bank's statement."""
    if not (_SIDES.search(text) and _STATEMENT.search(text)) or _COMPANY.search(text):
        return text
    return _SIDES.sub(lambda match: f" {_SIDE[match['side']][locale.is_hindi]}", text)


def _minute(match: re.Match[str], locale: Locale) -> str:
    minute = int(match["minute"])
    if match["added"]:
        return f"{numbers.cardinal(minute, locale)} plus {match['added'][1:]}"
    return f"{numbers.cardinal(minute, locale)} minutes"


def _short(match: re.Match[str], locale: Locale) -> str:
    short = match[0].lower().rstrip(".")
    if short == "m/s":
        return _SLASHED["M/s"][locale.is_hindi]
    if short == "w/e" and not _WEEK.match(match.string, match.end()):
        return "whatever"
    return _SLASHED[short][locale.is_hindi]


def _weeks(match: re.Match[str]) -> str:
    return f"{match['count']} week{'' if match['count'] == '1' else 's'}"


def _course(match: re.Match[str], locale: Locale) -> str:
    """So many sevenths of a week: 5/7 is five days."""
    count = int(match["count"])
    before = match["before"]
    is_told = before.strip() in ("for", "in", "after")
    is_part = match["seventh"] != "52" and count < int(match["seventh"])
    if is_told and is_part and not locale.day_first:
        return match[0]
    part, hindi = _PARTS[match["seventh"]]
    if before.strip() == "review":
        before = f"{before}in "
    if locale.is_hindi:
        return f"{before}{numbers.cardinal(count, locale)} {hindi}"
    joined = "" if is_told or "review" in before else "for "
    return f"{before}{joined}{numbers.cardinal(count, locale)} {part}{'s' if count != 1 else ''}"


def _for_so_long(match: re.Match[str], locale: Locale) -> str:
    count = match["count"]
    unit = f"{_PARTS[match['seventh']][0]}s" if match["seventh"] else match["unit"]
    unit = _UNITS.get(
        unit.removesuffix("s") if unit.endswith("s") and unit not in ("days", "hours") else unit,
        unit,
    )
    if count == "1":
        unit = unit.removesuffix("s")
    return f" for {count} {unit}"


def _span(match: re.Match[str]) -> str:
    """Spell a length of time with units, which are written out later."""
    if match["weeks"]:
        return f"{match['weeks']} wks {match['days']} days"
    minutes = f" {match['minutes']} min" if match["minutes"] else ""
    return f"{match['day']} {'day' if match['day'] == '1' else 'days'} {match['hours']} hr{minutes}"
