"""Writes out dates, months and days of the week."""

from __future__ import annotations

import re

from speech.text.language import WORD_END
from speech.text.normalise import numbers, years
from speech.text.normalise.locale import Locale

# ruff: noqa: RUF001  # signs that look like others are the point


_MONTHS = (
    ("January", "Jan", "जनवरी"), ("February", "Feb", "फ़रवरी"), ("March", "Mar", "मार्च"),
    ("April", "Apr", "अप्रैल"), ("May", "May", "मई"), ("June", "Jun", "जून"),
    ("July", "Jul", "जुलाई"), ("August", "Aug", "अगस्त"), ("September", "Sep", "सितंबर"),
    ("October", "Oct", "अक्टूबर"), ("November", "Nov", "नवंबर"), ("December", "Dec", "दिसंबर"),
)  # fmt: skip
_DAYS = (
    (("Monday", "Mon"), "सोमवार"), (("Tuesday", "Tues", "Tue"), "मंगलवार"),
    (("Wednesday", "Weds", "Wed"), "बुधवार"), (("Thursday", "Thurs", "Thur", "Thu"), "गुरुवार"),
    (("Friday", "Fri"), "शुक्रवार"), (("Saturday", "Sat"), "शनिवार"), (("Sunday", "Sun"), "रविवार"),
)  # fmt: skip
_NUMBER_OF = {
    **{name.lower(): at for at, names in enumerate(_MONTHS, 1) for name in names},
    "sept": 9, "फरवरी": 2, "सितम्बर": 9, "नवम्बर": 11, "दिसम्बर": 12, "अक्तूबर": 10,
}  # fmt: skip
_DAY_OF = {name: at for at, (names, _) in enumerate(_DAYS) for name in names}
_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec)\b\.?"
    r"|जनवरी|फ़रवरी|फरवरी|मार्च|अप्रैल|मई|जून|जुलाई|अगस्त|सितंबर|सितम्बर|अक्टूबर|अक्तूबर|नवंबर|नवम्बर|दिसंबर|दिसम्बर)"
)
_DAY = r"(?:3[01]|[12]\d|0?[1-9])"
_YEAR = r"(?:1[0-9]\d\d|20\d\d)"
_FREE, _END = r"(?<![\w.,:/$€£₹-])", r"(?![\w/]|[.,-]\d)"
_ISO = re.compile(
    rf"{_FREE}(?P<year>\d{{4}})([-/.])(?P<month>0?[1-9]|1[0-2])\2(?P<day>{_DAY})(?=[T ]\d\d:|{_END})"
)
_TIME_MARK = re.compile(r"(?<=\d\d)T(?=\d\d:\d\d)|(?<=:\d\d)(?:\.\d{1,9})?Z(?!\w)")
_SLASHED = re.compile(
    rf"{_FREE}(?P<first>{_DAY})(?P<sign>[-/.])(?P<second>{_DAY})(?P=sign)(?P<year>(?:1\d|20)\d\d|\d\d){_END}"
)
_DAY_MONTH = re.compile(
    rf"(?P<the>\bthe )?{_FREE}(?:(?P<from>{_DAY})(?:st|nd|rd|th)?\s?(?:[-–—]|to)\s?)?+(?P<day>{_DAY})(?:st|nd|rd|th)?(?: of)?[ -]?(?P<month>{_MONTH})(?!\w)"
    rf"(?:,?[ -](?P<year>{_YEAR})(?![\w:/]|[.,-]\d))?+",
    re.IGNORECASE,
)
_MONTH_DAY = re.compile(
    rf"(?<!\w)(?P<month>{_MONTH}) (?P<day>{_DAY})(?:st|nd|rd|th)?(?![\w:%/]|[.,]\d)"
    rf"(?P<to> ?[-–] ?(?P<last>{_DAY})(?:st|nd|rd|th)?(?![\w:%/]|[.,-]\d))?"
    rf"(?:(?P<comma>,?) (?P<year>{_YEAR})(?![\w:/]|[.,-]\d))?+"
)
_SURE = r"Mon|Tues|Tue|Weds|Wed|Thurs|Thur|Thu|Fri"
_ANY_DAY = rf"{_SURE}|Sat|Sun"
_BETWEEN_DATES = re.compile(
    rf"(?<=\d)(?:st|nd|rd|th)?\s?[-–—]\s?(?={_MONTH} {_DAY}(?!\d))|(?<=[a-z])\s?[–—]\s?(?={_DAY} {_MONTH})"
    rf"|(?<=\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec))\s?-\s?(?={_DAY} {_MONTH})"
)
_SLASHED_RANGE = re.compile(
    rf"{_FREE}(?P<first>{_DAY})/(?P<second>{_DAY})\s?[-–—]\s?(?P<third>{_DAY})/(?P<fourth>{_DAY})(?![\w/]|[.,]\d| (?:cups?|tsp|tbsp|inch|inches|lbs?|oz|miles?|hours?|of)\b)"
)
_DASHED = re.compile(
    rf"(?P<before>(?:दिनांक|तारीख|\b(?:on|dated|date:?|dt\.?|by|from|till|until)):? )(?P<one>{_DAY})-(?P<two>{_DAY})-(?P<year>\d\d)(?![\w-])",
    re.IGNORECASE,
)
_PAIR = re.compile(r"\d/\d")
_WEEK_OF = re.compile(
    rf"(?P<before>\b(?:[Ww](?:eek|k\.) of|(?:[Dd]ue|[Bb]egin|[Ss]tart|[Ee]nd|[Ee]xpire|[Oo]pen|[Cc]lose|[Aa]rrive|[Rr]eturn|[Dd]epart|[Ss]een|[Rr]eviewed|[Aa]dmitted|[Pp]osted|[Ss]ent|[Bb]ooked|[Ff]iled|[Ii]ssued|[Pp]aid|[Bb]orn|[Gg]iven)s?(?: on| by)?|[Dd]ated?|[Rr]esumes?|[Rr]eopens?|[Ee]ffective|RSVP(?: by)?"
    rf"|{_ANY_DAY}|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day),? )(?!24/7)(?P<first>{_DAY})/(?P<second>{_DAY})(?![\w/]|[.,-]\d| (?:an?|of|the|way)\b)"
)
"""A day and a month without a year, after a word that says so: other pairs are fractions."""
_ON_DAY = re.compile(
    rf"(?P<before>\b(?:[Oo]n|[Uu]ntil|[Tt]ill?|[Tt]hru|[Bb]efore|[Aa]fter|[Ss]ince|[Bb]y|[Cc][Oo][Bb]|EOD|DOB|[Ff]rom) )(?!24/7|9/11)(?P<first>{_DAY})/(?P<second>{_DAY})(?![\w/]|[.,-]\d| (?:an?|of|the|way|odds|majority|scale|cup|in|to|past)\b)"
)
_BY_AMOUNT = re.compile(
    r"\b(?:reduc|cut|increas|grew|grow|fell|fall|drop|multipl|divid|scal|shr|ris|rose|rais|down|up|off|less|more|out|rate|scor)\w*(?: [\w']+){0,3} (?:by|from|on) \Z"
)
_PART_OF = re.compile(
    r" (?!(?:at|and|or|for|so|because|if|we|i|you|he|she|they|please|pls|via|with|w|from|until|till|by|but|after|before|night|morning|evening)\b)[a-z]|-[a-z]"
)
"""A noun after a fraction; a date has none."""
_OF_WEEK = {
    "T/Th": "Tuesday, Thursday", "Tu/Th": "Tuesday, Thursday", "M/W/F": "Monday, Wednesday, Friday", "M/W": "Monday, Wednesday", "MWF": "Monday, Wednesday, Friday", "TTh": "Tuesday, Thursday", "TuTh": "Tuesday, Thursday", "Tu-F": "Tuesday to Friday", "T-F": "Tuesday to Friday",
    "Su-Th": "Sunday to Thursday", "M-Su": "Monday to Sunday", "Sa-Su": "Saturday to Sunday", "Th-Su": "Thursday to Sunday", "W-F": "Wednesday to Friday", "Tu-Sa": "Tuesday to Saturday",
    "M-F": "Monday to Friday", "M-Th": "Monday to Thursday", "M-Sa": "Monday to Saturday", "M-Sat": "Monday to Saturday",
}  # fmt: skip
_DAY_LETTERS = re.compile(
    rf"(?<![\w/-])(?:{'|'.join(sorted(_OF_WEEK, key=len, reverse=True)).replace('-', '[-–]')})(?![\w/-])"
)
"""Days of the week by their first letters."""
_BETWEEN_DAYS = re.compile(
    r"(?<=\d/\d)\s[-–—]\s(?=(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day \d)|(?<=\d/\d\d)\s[-–—]\s(?=(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day \d)"
)
_MONTH_SHORT_YEAR = re.compile(rf"(?<!\w)(?P<month>{_MONTH}) ?['’](?P<short>\d\d)(?![\w'’])")
_DASHED_NAME = re.compile(
    r"(?<![\w.,/-])(?P<day>\d{1,2})(?P<dash>-?)(?P<month>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)(?P=dash)(?:20)?(?P<short>[0-4]\d)(?![\w-])",
    re.IGNORECASE,
)
"""A day as banks write it: 12-Nov-26, 29NOV26."""
_EXPIRES = re.compile(
    r"(?P<before>\b(?:[Ee]xp(?:ires?|iry|iration)?(?: date)?|expires|EXP|[Vv]alid (?:thru|till|until|to))[.:]? )(?P<month>0[1-9])/(?P<short>\d\d)(?![\w/]|[.,-]\d)"
)
"""The month and the year of a card."""
_MONTH_YEAR = re.compile(rf"(?<!\w)(?P<month>{_MONTH}),? (?P<year>{_YEAR})(?![\w:/]|[.,-]\d)")
_ABBREVIATED = re.compile(
    r"(?<!\w)(?P<month>Jan|Feb|Apr|Jun|Jul|Aug|Sept|Oct|Nov|Dec)(?:\.(?= [a-z\d]|[,;:)]| [A-Z]{2}|(?<!Jan\.)\s*$)|(?=\s*[-–—/]\s*(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)|,? \d|[ ,]|$|[?!]))"
)
_AFTER_WHEN = re.compile(
    r"(?P<when>\b(?:[Ii]n|[Ss]ince|[Ll]ast|[Nn]ext|[Ee]arly|[Ll]ate|[Mm]id|[Uu]ntil|[Tt]ill?|[Bb]y|[Tt]his|[Tt]hrough|[Tt]hru|[Ff]rom|[Uu]p to|[Bb]efore|[Aa]fter)[ -])"
    r"(?P<month>Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec)\b(?P<point>\.?)(?! [A-Z][a-z])(?!['’])"
)
_DAY_RANGE = re.compile(rf"(?<!\w)(?P<first>{_ANY_DAY})\.?\s?[-–—]\s?(?P<last>{_ANY_DAY})(?!\w)\.?")
_DAY_NAME = re.compile(
    rf"(?<!\w)(?P<day>{_SURE})(?:\.(?=,| )|\.(?=$)|(?![\w'’]))"
    r"|(?P<mid>Sat(?<=[a-z,;&/(] Sat)(?![\w'’]))"
    r"|(?P<last>(?:Sat|Sun)(?![\w'’])(?:(?<=Mon to S..)|(?<=Tue to S..)|(?<=Wed to S..)|(?<=Thu to S..)|(?<=Fri to S..)|(?<=Sat to S..)|(?<=day to S..)|(?<=day thru S..)|(?<=Mon thru S..)|(?<=Fri thru S..)|(?<=Sat thru S..)|(?<=Thu thru S..)|(?<=day through S..)|(?<=closed S..)|(?<=Closed S..)|(?<=ex S..)|(?<=except S..)))"
    r"|(?P<after>Sat|Sun)(?![\w'’])(?:(?<=\b[Oo]n S..)|(?<=\b[Bb]y S..)|(?<=day and S..)|(?<=day or S..)|(?<=day, S..)"
    r"|(?<=Sat and S..)|(?<=Fri and S..)|(?<=Thu and S..)|(?<=day & S..)|(?<=\bthis S..)|(?<=\bnext S..)|(?<=\blast S..)|(?<=\bevery S..))"
    r"|(?P<until>Sat)(?![\w'’])(?:(?<=\bfor Sat)|(?<=\buntil Sat)|(?<=\btill Sat)|(?<=\bafter Sat)|(?<=\bsince Sat))"
    rf"|(?<!\w)(?<!\b[Tt]he )(?P<weekend>Sat|Sun)(?:\.|(?=,? \d|\s?@| (?:at|from|by|night|morning|evening|afternoon)\b|, (?:Jan|Feb|Mar|Apr|May|Ju|Aug|Sep|Oct|Nov|Dec)|:| (?:ko|se|tak|ki|ka|subah|shaam|sham|raat|को|से|तक|की|का|सुबह|शाम|रात){WORD_END}| ?[&/] ?(?:{_ANY_DAY}|[Bb]ank)| (?:and|or|&) (?:{_ANY_DAY}|[Bb]ank|[Pp]ublic)| (?:only|closed)\b))"
)


_SHORT_DAYS = "सोम|मंगल|बुध|गुरु|शुक्र|शनि|रवि"
_HINDI_RANGE = re.compile(
    rf"(?<![\u0900-\u097f])(?P<first>{_SHORT_DAYS})\s?[-–—]\s?(?={_SHORT_DAYS})"
)


_OF_DATE = re.compile(r"\b(?:on|dated?|DOB|born|from|until|till|by|of)[:.]? \Z", re.IGNORECASE)
_OF_VERSION = re.compile(
    r"(?:\bv|version|release|build|firmware|\bOS|Ubuntu|update) ?\Z", re.IGNORECASE
)
_FULL_NAME = (
    r"(?:(?:January|February|March|April|May|June|July|August|September|October|November|December)|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
    r"|जनवरी|फ़रवरी|फरवरी|मार्च|अप्रैल|मई|जून|जुलाई|अगस्त|सितंबर|अक्टूबर|नवंबर|दिसंबर)"
)
_SHORT_MONTH = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec"
_MONTHS_RANGE = re.compile(
    rf"(?<![\w-])(?P<first>{_SHORT_MONTH})\.?\s?[-–—]\s?(?P<month>{_SHORT_MONTH})(?![\w-])\.?(?! \d{{1,2}}(?!\d))"
)
_NAMES_RANGE = re.compile(
    rf"(?:(?<=[a-z])|(?<=[\u0900-\u097f]))\s?[-–—]\s?(?={_FULL_NAME}(?!\w))"
    r"|(?<=\d)\s?[-–—]\s?(?=(?:सुबह|दोपहर|शाम|रात) \d)"
)


def written_out(text: str, locale: Locale) -> str:
    """Write the dates of ``text`` in words. The locale decides the order, except in ISO dates."""
    if not locale.is_hindi and ("M" in text or "T" in text) and _DAY_LETTERS.search(text):
        text = _DAY_LETTERS.sub(lambda match: _OF_WEEK[match[0].replace("–", "-")], text)
    text = _DAY_RANGE.sub(lambda match: _day_range(match, locale), text)
    text = _HINDI_RANGE.sub(r"\g<first> से ", text)
    if "-" in text or "–" in text or "—" in text:
        text = _MONTHS_RANGE.sub(lambda match: _months_range(match, locale), text)
    text = _NAMES_RANGE.sub(f" {'से' if locale.is_hindi else 'to'} ", text)
    text = _DAY_NAME.sub(lambda match: _day_name(match, locale), text)
    if any(map(str.isdecimal, text)):
        text = _TIME_MARK.sub(" ", text)
        text = _ISO.sub(lambda match: _iso(match, locale), text)
        text = _DASHED.sub(r"\g<before>\g<one>/\g<two>/\g<year>", text)
        text = years.seasons_written_out(text, locale)
        text = _EXPIRES.sub(
            lambda match: match["before"] + _short_year(int(match["month"]), match, locale), text
        )
        text = _SLASHED.sub(lambda match: _slashed(match, locale), text)
        text = _BETWEEN_DATES.sub(f" {'से' if locale.is_hindi else 'to'} ", text)
        text = _SLASHED_RANGE.sub(lambda match: _slashed_range(match, locale), text)
        text = _BETWEEN_DAYS.sub(f" {'से' if locale.is_hindi else 'to'} ", text)
        if _PAIR.search(text):
            text = _WEEK_OF.sub(lambda match: _month_and_day(match, locale), text)
            text = _ON_DAY.sub(lambda match: _on_day(match, locale), text)
        text = _DASHED_NAME.sub(
            lambda match: f"{match['day']} {match['month'].title()} 20{match['short']}", text
        )
        text = _MONTH_SHORT_YEAR.sub(lambda match: _short_year(_month(match), match, locale), text)
        text = _DAY_MONTH.sub(lambda match: _day_month(match, locale), text)
        text = _MONTH_DAY.sub(lambda match: _month_day(match, locale), text)
        text = _MONTH_YEAR.sub(lambda match: _month_year(match, locale), text)
    text = _AFTER_WHEN.sub(lambda match: _after_when(match, locale), text)
    return _ABBREVIATED.sub(lambda match: _name(_month(match), locale) + _end(match), text)


def _month(match: re.Match[str]) -> int:
    return _NUMBER_OF[match["month"].lower().rstrip(".")]


def _name(month: int, locale: Locale) -> str:
    return _MONTHS[month - 1][2 if locale.is_hindi else 0]


def _end(match: re.Match[str]) -> str:
    """The point that ends the sentence, too."""
    return "." if match[0].endswith(".") and not match.string[match.end() :].strip() else ""


def _after_when(match: re.Match[str], locale: Locale) -> str:
    return f"{match['when']}{_name(_month(match), locale)}{_end(match)}"


def _day_of_week(name: str, locale: Locale) -> str:
    names, hindi = _DAYS[_DAY_OF[name]]
    return hindi if locale.is_hindi else names[0]


def _day_range(match: re.Match[str], locale: Locale) -> str:
    first, last = (_day_of_week(match[name], locale) for name in ("first", "last"))
    return f"{first} {'से' if locale.is_hindi else 'to'} {last}"


def _months_range(match: re.Match[str], locale: Locale) -> str:
    first = _name(_NUMBER_OF[match["first"].lower()], locale)
    return f"{first} {'से' if locale.is_hindi else 'to'} {_name(_month(match), locale)}"


def _day_name(match: re.Match[str], locale: Locale) -> str:
    return _day_of_week(
        next(each for each in match.groups() if each),
        locale,
    )


def said(day: int, month: int, year: int | None, locale: Locale) -> str:
    """A date in words, in the order of the locale."""
    if locale.is_hindi:
        said = f"{numbers.cardinal(day, locale)} {_name(month, locale)}"
    elif locale.day_first:
        said = f"the {numbers.ordinal(day, locale)} of {_name(month, locale)}"
    else:
        said = f"{_name(month, locale)} {numbers.ordinal(day, locale)}"
    if year is None:
        return said
    comma = "" if locale.day_first else ","
    return f"{said}{comma} {numbers.year(year, locale)}"


def _iso(match: re.Match[str], locale: Locale) -> str:
    return said(int(match["day"]), int(match["month"]), int(match["year"]), locale)


def _slashed(match: re.Match[str], locale: Locale) -> str:
    first, second = int(match["first"]), int(match["second"])
    # Dates with points are European in every locale.
    day, month = (first, second) if locale.day_first or match["sign"] == "." else (second, first)
    if month > 12:
        day, month = month, day
    if month > 12:
        return match[0]
    if match["sign"] != "/" and len(match["year"]) == 2 and not _is_dotted_day(match, locale):
        return match[0]
    year = int(match["year"])
    if len(match["year"]) == 2:
        year += 2000 if year < 50 else 1900
    return said(day, month, year, locale)


def _is_dotted_day(match: re.Match[str], locale: Locale) -> bool:
    """Whether 09.08.76 is a day: its month begins with a zero, or a word before it says so."""
    before = match.string[max(0, match.start() - 14) : match.start()]
    is_padded = len(match["first"]) == 2 and match["second"][0] == "0"
    is_version = _OF_VERSION.search(before) is not None
    is_told = _OF_DATE.search(before) is not None
    return match["sign"] == "." and locale.day_first and not is_version and (is_padded or is_told)


def _short_year(month: int, match: re.Match[str], locale: Locale) -> str:
    low = "oh " if match["short"][0] == "0" and not locale.is_hindi else ""
    return f"{_name(month, locale)} {low}{numbers.cardinal(int(match['short']), locale)}"


def _month_and_day(match: re.Match[str], locale: Locale) -> str:
    first, second = int(match["first"]), int(match["second"])
    day, month = (first, second) if locale.day_first else (second, first)
    return match["before"] + said(day, month, None, locale) if month <= 12 else match[0]


def _on_day(match: re.Match[str], locale: Locale) -> str:
    is_part = int(match["first"]) < int(match["second"])
    if is_part and _PART_OF.match(match.string, match.end()):
        return match[0]
    if _BY_AMOUNT.search(match.string, max(0, match.start() - 40), match.start("first")):
        return match[0]
    return _month_and_day(match, locale)


def _slashed_range(match: re.Match[str], locale: Locale) -> str:
    first, second, third, fourth = (
        int(match[name]) for name in ("first", "second", "third", "fourth")
    )
    if not locale.day_first:
        first, second, third, fourth = second, first, fourth, third
    if second > 12 or fourth > 12:
        return match[0]
    to = "से" if locale.is_hindi else "to"
    return f"{said(first, second, None, locale)} {to} {said(third, fourth, None, locale)}"


def _day_month(match: re.Match[str], locale: Locale) -> str:
    month = match["month"]
    if month.islower() and month.isascii():
        return match[0]
    day, year = int(match["day"]), match["year"]
    if locale.is_hindi:
        since = f"{numbers.cardinal(int(match['from']), locale)} से " if match["from"] else ""
        return since + said(day, _month(match), int(year) if year else None, locale)
    since = f"the {numbers.ordinal(int(match['from']), locale)} to " if match["from"] else ""
    words = f"{since}the {numbers.ordinal(day, locale)} of {_name(_month(match), locale)}"
    return f"{words} {numbers.year(int(year), locale)}" if year else words


def _month_day(match: re.Match[str], locale: Locale) -> str:
    if locale.is_hindi:
        said = numbers.cardinal(int(match["day"]), locale)
        if match["last"]:
            said += f" से {numbers.cardinal(int(match['last']), locale)}"
        said = f"{said} {_name(_month(match), locale)}"
    else:
        said = f"{_name(_month(match), locale)} {numbers.ordinal(int(match['day']), locale)}"
        if match["last"]:
            said += f" to {numbers.ordinal(int(match['last']), locale)}"
    if not match["year"]:
        return said
    return f"{said}{match['comma']} {numbers.year(int(match['year']), locale)}"


def _month_year(match: re.Match[str], locale: Locale) -> str:
    return f"{_name(_month(match), locale)} {numbers.year(int(match['year']), locale)}"
