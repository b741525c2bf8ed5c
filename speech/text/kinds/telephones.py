"""Writes out what is dialled: the keys ``*`` and ``#``, codes with them, and short numbers of services."""

from __future__ import annotations

import re

from speech.text.normalise import numbers
from speech.text.normalise.locale import Locale, Region

_VERB = r"\b(?:[Pp]ress|[Dd]ial|[Hh]it|[Tt]ap|[Tt]ype|[Ee]nter)"
_CODE = re.compile(
    r"(?<![\w*#])\*#?\d{1,5}(?:\*\d{1,20}){0,4}#(?!\w)"
    r"|(?:(?<=ial )|(?<=ress )|(?<=nter ))\*\d{2,6}(?![\w*#%/]|[.,]\d)"
    r"|(?<=ial )#\d{2,6}(?![\w*#%/]|[.,]\d)"
    r"|(?:(?<=ial )|(?<=ress )|(?<=nter ))\d{1,20}#(?!\w)"
)
"""A code of a service or a menu: ``*123#``, ``*67`` and ``5#`` after a verb."""
_AFTER = r"(?:key|sign|symbol|button|बटन|कुंजी|दबा[एँंइयोकर]|daba)"
_KEY = re.compile(
    rf"(?P<before>(?:{_VERB}|\b[Tt]hen|\b(?:followed|ending) (?:by|with)|(?:(?<=[*#] )|(?<=star )|(?<=pound )|(?<=hash ))or)(?: the)? (?P<quote>[\"'“]?))(?P<key>[*#])(?=[\"'”]?(?:[\s,.;:?!)।]|$))(?! \w+\*)"
    rf"|(?<!\S)(?P<open>[\"'“]?)(?P<named>[*#])(?=[\"'”]? {_AFTER})"
    r"|(?P<star>\b[Oo]r |\b[Tt]he )\*(?=[\s,.;]|$)(?! \w+\*)"
)
_IN_BRACKETS = re.compile(
    r"(?P<name>\b(?:[Ss]tar|[Pp]ound|[Hh]ash|[Aa]sterisk)(?: key| sign)?) \([*#]\)"
)
"""A sign beside its name, which is said once."""
_SERVICES = "911|112|999|100|101|102|108|411|311|988"
_MORE_SERVICES = rf"{_SERVICES}|111|211|511|611|711|811"
_SERVICE = re.compile(
    rf"(?P<before>(?<!\w)(?:call|dial|dialled|dialed) )(?P<figure>{_MORE_SERVICES})(?![\w.,-]?\d|\w)"
    rf"|(?:(?<=911 or )|(?<=999 or )|(?<=112 or )|(?<=100 or )|(?<=911/)|(?<=999/)|(?<=NHS ))(?P<other>{_SERVICES}|111)(?![\w.,-]?\d|\w)"
    r"|(?<![\w.,$£€₹/-])(?P<line>988|911|999|112|111|101|311|211|1098|1930|139|181|104|108|102)(?= (?:lifeline|helpline|operator|hotline|dispatcher|for (?:non-)?emergenc|for ambulance))"
    r"|(?<![\w.,/-])(?<!\d )(?P<hindi>\d{3,5})(?= (?:डायल|मिला|पर (?:कॉल|फ़ोन|फोन|संपर्क)|par call|pe call))",
    re.IGNORECASE,
)
_SECOND = re.compile(
    rf"(?P<before>\b(?:call|dial|ring|text|phone) [^.;!?]{{0,60}}?\d(?: or (?:call |text |dial )?))(?P<figure>{_MORE_SERVICES})(?![\w.,-]?\d|\w)(?! [a-z]+s\b)",
    re.IGNORECASE,
)
"""A service after another number: ``call 0 or 911``."""
_CALLED = re.compile(
    rf"(?P<before>\b(?:ring|text) )(?P<figure>{_MORE_SERVICES})(?= or (?:call|text|dial|ring)\b|[.!?]|$)",
    re.IGNORECASE,
)

_LETTERS = r"(?:\d-(?=[A-Z]{2}))?(?:[A-Z]{2,12}|(?<=\d-)[A-Za-z]{2,12})(?:-(?:[A-Za-z]{1,12}|\d)(?!\w)){0,4}(?!\w)"
_TOLL_FREE = r"8(?:00|88|77|66|55|44|33|22)"
_IN_WORDS = re.compile(
    rf"(?<![\w+.,$£€₹-])(?:"
    rf"(?P<one>1[- ]?)(?:\((?P<bracketed>{_TOLL_FREE})\)|(?P<free>{_TOLL_FREE}))[- ](?P<words>{_LETTERS})"
    rf"|(?:\((?P<closed>{_TOLL_FREE})\) |(?P<plain>{_TOLL_FREE})(?:-|(?<=[Cc]all \d\d\d) |(?<=[Dd]ial \d\d\d) ))(?P<long>(?=[A-Z-]{{7}}){_LETTERS})"
    r"|(?P<free_of_charge>0(?:80[08]|300)[- ])(?P<free_words>[A-Z]{4,12}(?:-[A-Z]{2,12}){0,3}(?!\w))"
    rf"|(?P<area>(?:1-)?(?:\(\d{{3}}\) ?|\d{{3}}[-.])\d{{3}}|555)[-.](?P<last>[A-Z]{{4}})(?![\w-])"
    rf"|(?P<called>(?:(?<=\b[Cc]all )|(?<=\b[Dd]ial )|(?<=\b[Tt]ext )|(?<=\b[Pp]hone ))\d{{3}})-(?P<short>[A-Z]{{4}})(?![\w-]))"
)
"""A telephone number that ends in words: ``1-800-FLOWERS``, ``555-CALL``."""
_WORD = re.compile(
    r"(?!(?:USA|ATT|UPS|IRS|AAA)(?!\w))\b(?=[B-DF-HJ-NP-TV-XZ]{0,12}[AEIOUY])[A-Z]{2,12}"
)
"""A word in capitals, which engines may spell; without a vowel it is spelled."""


def keys_written_out(text: str, locale: Locale) -> str:
    """Write the keys of ``text`` by their names, and codes with them digit by digit."""
    if "#" not in text and "*" not in text:
        return text
    text = _CODE.sub(lambda match: _code(match[0], locale), text)
    text = _IN_BRACKETS.sub(r"\g<name>", text)
    return _KEY.sub(lambda match: _key(match, locale), text)


def services_written_out(text: str, locale: Locale) -> str:
    """Write the short numbers of services digit by digit."""
    for pattern in (_CALLED, _SECOND):
        text = pattern.sub(
            lambda match: match["before"] + numbers.digits(match["figure"], locale), text
        )
    return _SERVICE.sub(lambda match: _service(match, locale), text)


def words_written_out(text: str, locale: Locale) -> str:
    """Write the figures of telephone numbers that end in words."""
    if "-" not in text and ") " not in text and " 8" not in text:
        return text
    return _IN_WORDS.sub(lambda match: _in_words(match, locale), text)


def _in_words(match: re.Match[str], locale: Locale) -> str:
    """The figures digit by digit, and the words as words: a person says "call", no letters."""
    words = (
        match["words"] or match["long"] or match["last"] or match["short"] or match["free_words"]
    )
    code = match["bracketed"] or match["free"] or match["closed"] or match["plain"]
    if code:
        said = numbers.cardinal(800, locale) if code == "800" else numbers.digits(code, locale)
        figures = f"{numbers.cardinal(1, locale)} {said}" if match["one"] else said
    else:
        figures = numbers.groups(
            re.findall(r"\d+", match["area"] or match["called"] or match["free_of_charge"]), locale
        )
    lower = _WORD.sub(lambda word: word[0].lower(), words)
    return f"{figures} {lower.replace('-', ' ')}"


def _name(key: str, locale: Locale) -> str:
    if locale.is_hindi:
        return "स्टार" if key == "*" else "हैश"
    if key == "*":
        return "star"
    return "pound" if locale.region is Region.US else "hash"


def _code(code: str, locale: Locale) -> str:
    parts: list[str] = re.findall(r"\d+|[*#]", code)
    return " ".join(
        numbers.digits(part, locale) if part.isdecimal() else _name(part, locale) for part in parts
    )


def _key(match: re.Match[str], locale: Locale) -> str:
    if match["star"]:
        return f"{match['star']}{_name('*', locale)}"
    if match["key"]:
        return f"{match['before']}{_name(match['key'], locale)}"
    return f"{match['open']}{_name(match['named'], locale)}"


def _service(match: re.Match[str], locale: Locale) -> str:
    return (match["before"] or "") + numbers.digits(
        next(each for each in match.groups()[1:] if each), locale
    )
