"""Roman numerals beyond those after one name: ordinal ones, pairs, lower-case ones, names of people."""

# ruff: noqa: RUF001  # dashes are meant

from __future__ import annotations

import re

from speech.text.normalise import numbers
from speech.text.normalise.locale import Locale

_NUMERAL = r"(?=[IVXL])(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})"
_SMALL = r"(?=[ivx])(?:xl|x{0,3})(?:ix|iv|v?i{0,3})"
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}
_ORDINAL = re.compile(rf"(?<![\w.'’-])(?P<numeral>{_NUMERAL})(?P<ending>st|nd|rd|th)(?!\w)")
"""``XIIth`` and ``IInd``, as India writes them."""
_THINGS = (
    "[Ss]tage|[Tt]ype|[Pp]hase|[Gg]rade|[Cc]lass|[Ll]evel|[Cc]hapter|[Pp]art|[Vv]olume|[Ss]ection|[Aa]rticle|[Tt]itle|[Aa]ct|[Ss]cene|"
    "[Bb]ook|[Aa]ppendix|[Tt]ier|[Gg]roup|[Ss]chedule|[Uu]nit|[Mm]odule|[Cc]ategory|[Dd]ivision|[Pp]aper|[Tt]able|[Ff]igure|[Ww]ar|"
    "[Ss]emester|Sem|[Ss]tandard|[Ss]tep|[Pp]age|[Aa]nnex|[Aa]mendment|[Vv]erse|[Cc]lause|[Pp]aragraph|[Ff]actor|[Ll]ist|Std|[Rr]ule"
)
_PAIR = re.compile(
    rf"\b(?P<name>{_THINGS})(?P<many>e?s)? (?P<one>{_NUMERAL})(?P<join> ?(?:and|&|or|to) |\s?[-–/]\s?|, )(?P<two>{_NUMERAL})(?![\w'’]|\.\w)"
)
_AFTER_SMALL = re.compile(
    rf"\b(?P<name>(?:{_THINGS})s?) (?P<numeral>{_NUMERAL})(?=[\s,;:)(]|\.?\s*$|\.\s)"
)
_LOWER = re.compile(
    rf"\b(?P<name>[Ss]cene|[Cc]hapter|[Pp]ages?|[Cc]lause|[Pp]aragraph|[Bb]ook|[Ss]ection|[Pp]art|[Vv]olume) (?P<numeral>{_SMALL})(?:(?P<join>[-–])(?P<last>{_SMALL}))?(?![\w'’])"
)
_LONG = re.compile(
    r"(?<![\w.'’-])(?P<numeral>(?=[MDCLXVI]{4,15}(?!\w))M{1,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3}))(?![\w'’-])"
)
"""A year: MCMXCIX."""
_ALONE = re.compile(
    r"(?:[.,;:)]|$| (?:diabetes|cancer|error|trials?|clinical|hypersensitivity|survey|recall|device|studies|study|of|is|was|and|to|with)\b)"
)
_FIRST_NAMES = (
    "James|John|Robert|Michael|William|David|Richard|Joseph|Thomas|Charles|Christopher|Daniel|Matthew|Anthony|Donald|Mark|Steven|Andrew|Kenneth|"
    "Joshua|Kevin|Brian|Ronald|Timothy|Jason|Jeffrey|Ryan|Gary|Eric|Jonathan|Larry|Justin|Scott|Frank|Brandon|Benjamin|Samuel|Walter|Harry|"
    "Kyle|Albert|Harold|Carl|Arthur|Roger|Ralph|Eugene|Russell|Martin|Warren|Trey|Douglas|Patrick|Raymond|Gregory|Dennis|Jerry|Tyler|Aaron|Jose|Adam|Nathan"
)
_PERSON = re.compile(
    rf"\b(?P<name>(?:{_FIRST_NAMES})(?: [A-Z]\.)? [A-Z][a-z]{{2,15}}),? (?P<numeral>II|III|IV)(?!\w)"
)
_WARS = re.compile(r"(?<!\w)WW(?P<numeral>II|I)(?!\w)")
_ANY = re.compile(r"[IVXLM]|\b[ivx]{1,5}\b")


def written_out(text: str, locale: Locale) -> str:
    """Write these numerals of ``text`` in words."""
    if locale.is_hindi or not _ANY.search(text):
        return text
    text = _LONG.sub(lambda match: _year(match, locale), text)
    text = _ORDINAL.sub(lambda match: _ordinal(match, locale), text)
    text = _PAIR.sub(lambda match: _pair(match, locale), text)
    text = _PERSON.sub(
        lambda match: (
            f"{match['name']} {numbers.regnal(numbers.of_roman(match['numeral']), locale)}"
        ),
        text,
    )
    text = _WARS.sub(
        lambda match: f"World War {numbers.cardinal(numbers.of_roman(match['numeral']), locale)}",
        text,
    )
    text = _AFTER_SMALL.sub(lambda match: _after_small(match, locale), text)
    return _LOWER.sub(lambda match: _lower(match, locale), text)


def _year(match: re.Match[str], locale: Locale) -> str:
    value = numbers.of_roman(match["numeral"])
    return numbers.year(value, locale) if 1000 < value < 2100 else match[0]


def _ordinal(match: re.Match[str], locale: Locale) -> str:
    value = numbers.of_roman(match["numeral"]) if match["numeral"] else 0
    ending = "th" if value in (11, 12, 13) else _ENDINGS.get(value % 10, "th")
    return numbers.ordinal(value, locale) if value and match["ending"] == ending else match[0]


def _pair(match: re.Match[str], locale: Locale) -> str:
    if not match["one"] or not match["two"] or (match["two"] == "I"):
        return match[0]
    one, two = (numbers.cardinal(numbers.of_roman(match[name]), locale) for name in ("one", "two"))
    join = match["join"] if match["join"].strip() in ("and", "&", "or", "to", ",") else " to "
    return f"{match['name']}{match['many'] or ''} {one}{join}{two}"


def _after_small(match: re.Match[str], locale: Locale) -> str:
    """A numeral after a name in lower case, where ``I`` and ``X`` may be a word or a letter."""
    numeral = match["numeral"]
    if not numeral or match["name"][0].isupper() or numeral in ("X", "L", "C"):
        return match[0]
    if numeral in ("I", "V") and not _ALONE.match(match.string, match.end()):
        return match[0]
    if numeral == "I" and not match["name"].startswith(
        ("stage", "type", "phase", "grade", "tier", "level")
    ):
        return match[0]
    return f"{match['name']} {numbers.cardinal(numbers.of_roman(numeral), locale)}"


def _lower(match: re.Match[str], locale: Locale) -> str:
    numeral, last = match["numeral"], match["last"]
    if not numeral or (numeral == "i" and match["name"].lower() not in ("scene", "page", "clause")):
        return match[0]
    said = numbers.cardinal(numbers.of_roman(numeral.upper()), locale)
    if last:
        said += f" to {numbers.cardinal(numbers.of_roman(last.upper()), locale)}"
    return f"{match['name']} {said}"
