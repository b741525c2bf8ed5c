"""Fractions, mixed numbers and the slash between two figures."""

from __future__ import annotations

import re

from speech.text.kinds import cricket
from speech.text.normalise import dates, numbers
from speech.text.normalise.locale import Locale, Region
from speech.text.normalise.measures import DEVICE
from speech.text.normalise.units import INCH, INCH_SIGNS, UNITS, in_quotation

_FREE = r"(?<![\w.,/:$€£₹^])"
_END = r"(?![\w/]|[.,]\d)"
_SLASH = re.compile(r"/\s?\d|24x7")
_ALWAYS = re.compile(rf"{_FREE}24[/x]7(?P<days>/365)?{_END}")
_OUT_OF = re.compile(
    rf"{_FREE}(?P<one>\d{{1,3}}) ?/ ?(?P<two>5|10|20|50|100){_END}(?= (?:stars?|points|marks|rating|on|अंक))"
    rf"|(?:(?<=\ba )|(?<=\ban )|(?<=\bsolid ))(?P<good>[4-9]|10)/(?P<ten>10){_END}(?= [a-z])"
    rf"|(?P<before>\b(?:[Rr]ated|[Ss]cored?|[Gg]ot|[Rr]ating(?: of|:)?|[Gg]ave it|GCS|MMSE|MoCA|A(?:pgar|PGAR)) (?:it |of )?(?:an? )?){_FREE}(?P<some>\d{{1,3}})/(?P<of>5|10|15|20|25|30|40|50|60|75|80|100){_END}"
)
_RANGE = re.compile(
    r"(?<=\d)\s?[-–]\s?(?=\d{1,3} \d{1,2}/\d{1,2}(?!\d))|(?:(?<=\d/\d)|(?<=\d/\d\d))\s?[-–]\s?(?=\d{1,2}/\d)"  # noqa: RUF001
)
"""The dash before a mixed number, or between two fractions; ``1-1/2`` is a mixed number."""
_AFTER_UNIT = re.compile(
    r"(?<=\d)/(?=\d{2,3} ?°)|(?<=\d[a-z])/(?=(?:\d{1,3} )?\d/\d)|(?<=\d[a-z]{2})/(?=(?:\d{1,3} )?\d/\d)"
)
"""Between two measures: ``100g/3½oz``."""
_ROW = re.compile(
    r"(?<![\w./])(?=[\d/]{0,30}\d{3})(?!\d{1,2}/\d{1,2}/(?:\d\d|(?:19|20)\d\d)(?![\d/]))\d{1,4}(?:/\d{1,4}){2,5}(?![\w/]|[.,]\d)"
)
_SHARE = re.compile(
    rf"{_FREE}(?P<one>\d{{1,6}}(?:\.\d{{1,3}})?)(?P<unit> ?(?:[KMGTP]i?B))?\s?/\s?(?=(?P<two>\d{{1,6}}(?:\.\d{{1,3}})?) ?(?P<of>[KMGTP]i?B)\b)"
)
"""A part of a memory or disk: ``7.8/16 GB``."""
_PARTS_WITH_ENDING = re.compile(r"(?<![\w./])(?P<part>\d{1,2}/\d{1,2})(?:rds?|ths?|nds?)\b")
"""``2/3rds``"""
_EYES = re.compile(r"(?<=\b20)/(?=\d{2,3} (?:vision|hindsight|eyesight))")
_USED = re.compile(r"\b(?:used|free|full|available|left|consumed|in use)\b")
_COUNTED = re.compile(
    rf"{_FREE}(?P<one>\d{{1,4}})/(?P<two>\d{{1,4}}){_END}(?= (?:tests?|pods|checks|replicas|nodes|tasks|jobs|files|items|questions|students|users|people|members|"
    r"dentists|doctors|patients|respondents|times|correct|passed|passing|ready|running|healthy|attempts|reviews|votes|matches|games|wins|seats|players|teams|countries|shots|goals|penalties|judges|students|answers|steps|lessons|modules)\b)"
)
_OF = re.compile(
    rf"(?P<before>\b(?:attempt|retry|retries|test|chunk|shard|image|photo|file|disc|track|vol|volume|dose|day|week|match|game|instal?lment|EMI|task|stage|phase|item|set|step|page|part|round|slide|try|batch|epoch|chapter|episode|question|level|lap)s? ){_FREE}(?P<one>\d{{1,4}})/(?P<two>\d{{1,4}}){_END}",
    re.IGNORECASE,
)
_ATTEMPTS = re.compile(
    rf"(?P<before>\b(?:went|shot|threw|is|was|now|finished) ){_FREE}(?P<one>\d{{1,2}})/(?P<two>\d{{1,2}}){_END}"
    r"(?=[^.;]{0,40} (?:yds|yards|TDs?|points|pts|rebounds|passing|from|three|3s|shooting|field)\b)"
)
"""Throws of American sport."""
_MIXED = re.compile(
    rf"(?P<minus>(?<![\w)])-)?{_FREE}(?<!\d )(?:(?P<whole>\d{{1,6}})[ -])?(?P<top>\d{{1,3}})/(?P<bottom>\d{{1,3}}){_END}(?P<noun>[ -]?in\.(?= [a-z]|[,;)]|\s*\Z)|[\"”]|[ -]?[^\W\d_.]+(?:\.(?=[ ,;)])|\b|\.))?"
)
_CUPS = re.compile(
    rf"{_FREE}(?P<whole>\d{{1,2}} )?(?P<part>1/(?:[2-8]|12)|2/3|[357]/8|3/4)(?:c(?!\w)| C(?= [a-z]))"
)
"""A part of a cup in a recipe."""
_NO_NOUN = re.compile(
    r" (?:of|from|in|at|on|thick|wide|long|deep|high|tall|and|or|to|by|above|below|per|is|was)\b"
)
"""A word after an inch that does not make it a part of a noun."""
_OVER = re.compile(
    rf"{_FREE}(?P<top>\d{{1,15}}+(?:\.\d{{1,9}})?+)/(?P<bottom>\d{{1,15}}){_END}(?P<pressure> ?mmHg\b)?"
)
_ODDS_AFTER = re.compile(
    r",? (?:shots?|fav|favou?rites?|outsiders?|odds|chance|joint|each[- ]way|second fav|co-fav|against|on)\b"
)
_ODDS_BEFORE = re.compile(r"\b(?:odds(?: of)?|priced at|backed at|SP|at) \Z")
_NUMBER_BEFORE = re.compile(r"\b(?:[Nn]umber|[Cc]ase|FIR):? \Z")
_BOTTOMS = frozenset([*range(2, 13), 16, 20, 32, 50, 64, 100])
_HALVED = "onion lemon lime bunch head block stick bowl glass can bottle packet pack plate avocado pepper cucumber apple banana tablet"
_MEASURES = frozenset(
    [
        "cup",
        "teaspoon",
        "tablespoon",
        "mile",
        "hour",
        "inch",
        "pint",
        "pound",
        "kilo",
        "litre",
        "liter",
        "metre",
        "meter",
        "foot",
        "yard",
        "gallon",
        "ounce",
        "gram",
        "kilogram",
        "dozen",
        "million",
        "billion",
        "acre",
        "century",
        "minute",
        "second",
        "day",
        "page",
        "tsp",
        "tbsp",
        *_HALVED.split(),
    ]
)
_DETERMINERS = frozenset(
    [
        "a",
        "an",
        "the",
        "of",
        "this",
        "that",
        "these",
        "those",
        "my",
        "your",
        "his",
        "her",
        "its",
        "our",
        "their",
    ]
)
"""Words that one half is short before: half an hour."""
_HINDI_PARTS = {
    (1, 2): "आधा", (1, 3): "एक तिहाई", (2, 3): "दो तिहाई", (1, 4): "चौथाई", (3, 4): "तीन चौथाई",
}  # fmt: skip


def written_out(text: str, locale: Locale) -> str:
    """Write the fractions of ``text`` in words."""
    if not _SLASH.search(text):
        return text
    text = _PARTS_WITH_ENDING.sub(r"\g<part>", text)
    text = _EYES.sub(" ", text)
    text = _AFTER_UNIT.sub(", ", text)
    text = _RANGE.sub(" से " if locale.is_hindi else " to ", text)
    text = _SHARE.sub(lambda match: _share(match, locale), text)
    text = _ALWAYS.sub(lambda match: _always(match, locale), text)
    if not locale.is_hindi:
        text = _CUPS.sub(_cups, text)
    if not locale.is_hindi:
        text = _OF.sub(r"\g<before>\g<one> of \g<two>", text)
        text = _COUNTED.sub(_counted, text)
        text = _ATTEMPTS.sub(_attempts, text)
    text = _OUT_OF.sub(lambda match: _out_of(match, locale), text)
    text = _ROW.sub(lambda match: match[0].replace("/", ", "), text)
    text = _MIXED.sub(lambda match: _mixed(match, locale), text)
    if not _OVER.search(text):
        return text
    in_cricket = locale.region is Region.IN or cricket.is_meant(text)
    return _OVER.sub(lambda match: _over(match, locale, in_cricket=in_cricket), text)


def _attempts(match: re.Match[str]) -> str:
    if int(match["one"]) > int(match["two"]):
        return match[0]
    return f"{match['before']}{match['one']} for {match['two']}"


def _share(match: re.Match[str], locale: Locale) -> str:
    unit = match["unit"] or ""
    has_more = float(match["one"]) > float(match["two"])
    if unit and (has_more or not _USED.search(match.string, match.end(), match.end() + 40)):
        return f"{match['one']}{unit}, "
    return f"{match['one']}{unit}{' में से ' if locale.is_hindi else ' of '}"


def _counted(match: re.Match[str]) -> str:
    """A part of several things, unless it is a part of each: ``3/4 times``."""
    one, two = int(match["one"]), int(match["two"])
    return f"{one} of {two}" if one <= two and two not in (2, 3, 4) else match[0]


def _always(match: re.Match[str], locale: Locale) -> str:
    if locale.is_hindi:
        return "चौबीस घंटे सातों दिन"
    return "twenty four seven" + (" three sixty five" if match["days"] else "")


def _cups(match: re.Match[str]) -> str:
    return f"{match['whole'] or ''}{match['part']} cup{'s' if match['whole'] else ''}"


def _out_of(match: re.Match[str], locale: Locale) -> str:
    one = match["one"] or match["some"] or match["good"]
    two = match["two"] or match["of"] or match["ten"]
    first, second = numbers.spoken(one, locale), numbers.spoken(two, locale)
    if locale.is_hindi:
        return f"{match['before'] or ''}{second} में से {first}"
    return f"{match['before'] or ''}{first} out of {second}"


def _mixed(match: re.Match[str], locale: Locale) -> str:
    top, bottom = int(match["top"]), int(match["bottom"])
    noun = match["noun"] or ""
    if not _is_part(match, top, bottom):
        return match[0]
    below = f"{numbers.minus(locale)} " if match["minus"] else ""
    whole = int(match["whole"]) if match["whole"] else 0
    if locale.is_hindi:
        return below + _in_hindi(whole, top, bottom, locale) + _named(noun, locale, one=False)
    part = _english_part(top, bottom, locale)
    if noun in INCH_SIGNS and in_quotation(match.string[: match.end() - 1]):
        return match[0]
    if whole:
        article = "a" if part == "one half" else None
        part = "a half" if article else part
        is_joined = noun.startswith("-") or DEVICE.match(match.string, match.end()) is not None
        return f"{below}{numbers.cardinal(whole, locale)} and {part}{_named(noun, locale, one=is_joined)}"
    word = noun.strip(" -")
    is_compound = noun.startswith("-") or DEVICE.match(match.string, match.end()) is not None
    if word in INCH_SIGNS:
        part = part.removeprefix("one ") if (top, bottom) == (1, 2) else part
        return f"{below}{part} {INCH[locale.language].one}"
    if word == "in.":
        is_compound = is_compound or not _NO_NOUN.match(match.string, match.end())
        word, noun = "inch", " inch"
    if (word in UNITS and word.isascii() and len(noun) > 0) or word in _MEASURES:
        if is_compound:
            part = "half" if (top, bottom) == (1, 2) else part
            return below + part + _named(noun.replace("-", " "), locale, one=True)
        name = _named(noun, locale, one=True).strip()
        article = "an" if name[0] in "aeiou" or name.startswith("hour") else "a"
        return (
            f"{below}half {article} {name}"
            if (top, bottom) == (1, 2)
            else f"{below}{part} of {article} {name}"
        )
    if (top, bottom) == (1, 2) and word in _DETERMINERS:
        part = "half"
    return below + part + noun


def _is_part(match: re.Match[str], top: int, bottom: int) -> bool:
    """Whether it is a part of one, and no share such as 87/100."""
    if not 0 < top < bottom or bottom not in _BOTTOMS or match["bottom"][0] == "0":
        return False
    if match["whole"]:
        return True
    noun = match["noun"] or ""
    measured = noun.strip(" -") in UNITS or noun in INCH_SIGNS
    return (top, bottom) != (9, 11) and (measured or top <= 12 or bottom not in (20, 50, 100))


def _named(noun: str, locale: Locale, *, one: bool) -> str:
    """The word after a fraction, a unit's symbol in full."""
    word = noun.strip(" -")
    if word == "in.":
        return f" {INCH[locale.language].one if one else INCH[locale.language].many}"
    if word not in UNITS and word not in INCH_SIGNS:
        return noun
    name = (INCH if word in INCH_SIGNS else UNITS[word])[locale.language]
    return f" {name.one if one else name.many}"


def _english_part(top: int, bottom: int, locale: Locale) -> str:
    if bottom == 2:
        name = "half"
    elif bottom == 4:
        name = "quarter"
    else:
        name = numbers.ordinal(bottom, locale)
    plural = "" if top == 1 else "s"
    return f"{numbers.cardinal(top, locale)} {name}{plural}"


def _in_hindi(whole: int, top: int, bottom: int, locale: Locale) -> str:
    if not whole:
        part = _HINDI_PARTS.get((top, bottom))
        return part or f"{numbers.cardinal(top, locale)} बटा {numbers.cardinal(bottom, locale)}"
    if (top, bottom) == (1, 2):
        named = {1: "डेढ़", 2: "ढाई"}.get(whole)
        return named or f"साढ़े {numbers.cardinal(whole, locale)}"
    if (top, bottom) == (1, 4):
        return "सवा" if whole == 1 else f"सवा {numbers.cardinal(whole, locale)}"
    if (top, bottom) == (3, 4):
        return f"पौने {numbers.cardinal(whole + 1, locale)}"
    part = _HINDI_PARTS.get((top, bottom))
    named = part or f"{numbers.cardinal(top, locale)} बटा {numbers.cardinal(bottom, locale)}"
    return f"{numbers.cardinal(whole, locale)} सही {named}"


def _over(match: re.Match[str], locale: Locale, *, in_cricket: bool) -> str:
    """Write out a slash that is no fraction: a date, a score, a share, or a quotient."""
    one, two = match["top"], match["bottom"]
    if day := _day(one, two, locale):
        return day
    top, bottom = numbers.spoken(one, locale), numbers.spoken(two, locale)
    if match["pressure"]:
        over = "बटा" if locale.is_hindi else "over"
        return f"{top} {over} {bottom} {UNITS['mmHg'][locale.language].many}"
    if (one, two) == ("9", "11") or _shares(one, two):
        return f"{top} {bottom}"
    if numbers.value(one) <= numbers.value(two) and two in ("5", "10", "20", "50", "100"):
        return f"{bottom} में से {top}" if locale.is_hindi else f"{top} out of {bottom}"
    if named := _of_year(match, locale):
        return named
    if not locale.is_hindi and _is_odds(match):
        return f"{top} to {bottom}"
    if in_cricket and _is_score(one, two):
        return f"{top} {'पर' if locale.is_hindi else 'for'} {bottom}"
    return f"{top} बटा {bottom}" if locale.is_hindi else f"{top} over {bottom}"


def _day(one: str, two: str, locale: Locale) -> str | None:
    """A date without a year, recognised by a day above twelve."""
    if not (one.isdecimal() and two.isdecimal() and len(one) <= 2 and len(two) <= 2):
        return None
    day, month = (int(one), int(two)) if locale.day_first else (int(two), int(one))
    # 5/16, 10/20: fractions and marks.
    if not (12 < day <= 31 and 0 < month <= 12) or two in ("16", "20"):
        return None
    return dates.said(day, month, None, locale)


def _shares(one: str, two: str) -> bool:
    """Whether two figures are the parts of a hundred: 60/40."""
    return one.isdecimal() and two.isdecimal() and int(one) + int(two) == 100


def _of_year(match: re.Match[str], locale: Locale) -> str | None:
    """The number of a case and its year, or of a bill behind its year: ``No. 112/2026``."""
    if locale.is_hindi or not _NUMBER_BEFORE.search(
        match.string, max(0, match.start() - 12), match.start()
    ):
        return None
    one, two = match["top"], match["bottom"]
    if re.fullmatch(r"(?:19|20)\d\d", two):
        return f"{numbers.spoken(one, locale)} of {numbers.year(int(two), locale)}"
    if re.fullmatch(r"(?:19|20)\d\d", one):
        return f"{numbers.year(int(one), locale)} slash {numbers.spoken(two, locale)}"
    by = "by" if locale.is_indian else "slash"
    return f"{numbers.spoken(one, locale)} {by} {numbers.spoken(two, locale)}"


def _is_odds(match: re.Match[str]) -> bool:
    return bool(
        _ODDS_AFTER.match(match.string, match.end())
        or _ODDS_BEFORE.search(match.string, max(0, match.start() - 16), match.start())
    )


def _is_score(runs: str, wickets: str) -> bool:
    return runs.isdecimal() and wickets.isdecimal() and int(runs) >= 32 and int(wickets) < 10
