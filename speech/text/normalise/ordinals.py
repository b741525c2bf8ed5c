"""Ordinal figures (21st, 5वाँ) and Roman numerals after names."""

# ruff: noqa: RUF001  # dashes are meant

from __future__ import annotations

import re

from speech.text.language import WORD_END, Language
from speech.text.normalise import numbers
from speech.text.normalise.locale import Locale

_ENGLISH = re.compile(
    r"(?<![\w.])(?<!\d,)(?P<figure>\d{1,15}|\d{1,3}(?:,\d{2,3})+)(?:st|nd|rd|th|ST|ND|RD|TH)(?!\w)-?"
)
_ORDINAL_RANGE = re.compile(
    r"(?:(?<=\dst)|(?<=\dnd)|(?<=\drd)|(?<=\dth))\s?[-–]\s?(?=\d{1,4}(?:st|nd|rd|th)\b)"
)
_HINDI_AFTER = re.compile(
    r" (?:(?P<feminine>(?:class|kaksha|std|board|pass|anniversary|team|innings|ball|seat|baar|bar|tareekh|tarikh|date|kakshaa|कक्षा|क्लास|पारी|बार)\b|(?:me|mein|mei|में|ko|को|se|से|tak|तक)(?!\w))"
    rf"|(?:[a-z]{{3,12}}|[\u0900-\u097f]{{2,12}}) (?:pe|par|pr|me|mein|mei|se|ko|tak|पर|पे|में|से|को|तक){WORD_END})"
)
"""What follows a Latin ordinal in Hindi and decides its ending: a class of a school, a postposition."""
_LOAN_AFTER = re.compile(
    r" (?:class|AC|hand|half|year|sem|semester|round|prize|rank|position|gear|attempt|birthday|anniversary|floor|wave|dose|edition|season|episode|batch|shift|innings|standard|Saturday|Sunday|Monday|Friday|week|month|day|last|time|option|term|semester|ODI|Test)\b"
)
"""English nouns, before which Hindi says the English ordinal: 2nd class."""
_AGES = re.compile(
    r"(?P<from>[1-8]\d)(?:(?<=\bof ..)|(?<=\bamong ..)|(?<=\bthe ..)|(?<=\bfor ..)|(?<=\ball ..))\s?[-–]\s?(?P<age>[1-9]\d)s(?!\w)"
)
_UNDER_AGE = re.compile(r"(?<=[nN]der[- ]|[oO]ver[- ])(?P<age>\d\d)s(?!\w)")
_ENDINGS = {
    "ला": "ा", "ली": "ी", "ले": "े", "रा": "ा", "री": "ी", "रे": "े", "था": "ा", "थी": "ी", "थे": "े",
    "ठा": "ा", "ठी": "ी", "ठे": "े", "वाँ": "ा", "वां": "ा", "वा": "ा", "वीं": "ी", "वी": "ी", "वें": "े", "वे": "े",
}  # fmt: skip
_SPACED_ENDINGS = frozenset({"वाँ", "वां", "वीं", "वी", "वें"})
"""Endings that may stand apart from their figure; ले, थे and others are words there: ``2 ले आना``."""
_HINDI = re.compile(
    rf"(?<![\w.])(?<!\d,)(?P<figure>\d{{1,3}}(?:,\d{{2,3}})+|\d{{1,15}})"
    rf"(?:-?(?P<ending>{'|'.join(sorted(_ENDINGS, key=len, reverse=True))})| (?P<apart>{'|'.join(sorted(_SPACED_ENDINGS))})){WORD_END}"
)
_NUMERAL = r"(?P<numeral>(?=[IVXLC])(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3}))"
_ROMAN = re.compile(
    rf"(?P<name>(?<!\w)[A-Z][a-zA-Zéèöü’']{{1,30}}|[\u0900-\u097f]{{1,30}}) {_NUMERAL}(?![\w'’.&/-]*\w)"
)
_OF_RULER = re.compile(rf"(?P<name>(?<!\w)[A-Z][a-z]{{1,30}}) {_NUMERAL}['’]s(?!\w)")
_STAGE = re.compile(
    r"\b(?P<name>[Ss]tage|[Tt]ype|[Cc]lass|[Gg]rade) (?P<numeral>I{1,3}|IV)(?P<letter>[a-dA-D])(?!\w)"
)
_HYPHENATED = re.compile(
    rf"\b(?P<name>Sem|Semester|Part|Phase|Paper|Term|Module|Unit|Class|Section|Schedule|Group|Type|Level|Grade|Stage|Vol|Volume)-{_NUMERAL}(?![\w'’-])"
)
"""Numbered things as India writes them: Part-II."""
_KINGS = frozenset(
    [
        "Henry",
        "Louis",
        "Elizabeth",
        "George",
        "William",
        "Edward",
        "Richard",
        "Charles",
        "James",
        "Mary",
        "Philip",
        "Francis",
        "Napoleon",
        "Benedict",
        "Paul",
        "Pius",
        "Leo",
        "Ivan",
        "Peter",
        "Catherine",
        "Nicholas",
        "Alexander",
        "Frederick",
        "Wilhelm",
        "Otto",
        "Ramses",
        "Ramesses",
        "Akbar",
        "Shah",
        "Gregory",
        "Clement",
        "Urban",
        "Innocent",
        "Ferdinand",
        "Gustav",
        "Carl",
        "Christian",
        "Harald",
        "Haakon",
        "Olav",
        "Ptolemy",
        "Darius",
        "Xerxes",
        "Constantine",
        "Theodosius",
        "Justinian",
        "Leopold",
        "Albert",
        "Baudouin",
        "Umberto",
        "Victor",
        "Emmanuel",
        "Joseph",
        "Franz",
        "Maximilian",
        "Rudolf",
        "Sigismund",
        "Casimir",
        "John",
        "Stephen",
        "Robert",
        "David",
        "Margaret",
        "Juan",
        "Alfonso",
        "Felipe",
        "Pedro",
        "Manuel",
        "Selim",
        "Mehmed",
        "Murad",
        "Cyrus",
        "Rama",
        "Mahendra",
        "हेनरी",
        "लुई",
        "एलिज़ाबेथ",
        "एलिजाबेथ",
        "जॉर्ज",
        "विलियम",
        "एडवर्ड",
        "रिचर्ड",
        "चार्ल्स",
        "जेम्स",
        "पॉल",
        "अकबर",
        "शाह",
        "पीटर",
    ]
)
_NUMBERED = frozenset(
    [
        "War",
        "Standard",
        "Chapter",
        "Sem",
        "Semester",
        "Paper",
        "Term",
        "Module",
        "Part",
        "Volume",
        "Act",
        "Scene",
        "Section",
        "Type",
        "Phase",
        "Class",
        "Bowl",
        "Rocky",
        "Episode",
        "Book",
        "Title",
        "Article",
        "Figure",
        "Table",
        "Level",
        "Grade",
        "Apollo",
        "Mark",
        "Fantasy",
        "Appendix",
        "Unit",
        "Stage",
        "Tier",
        "Division",
        "Category",
        "Schedule",
        "Round",
        "Group",
        "Lesson",
        "Step",
        "Exhibit",
        "Annex",
        "Amendment",
        "Age",
        "Day",
        "Calculus",
        "Algebra",
        "Physics",
        "Chemistry",
        "English",
        "Algorithm",
        "Gen",
        "Generation",
        "Series",
        "Season",
        "Version",
        "Model",
        "Saturn",
        "Titan",
        "Zone",
        "युद्ध",
        "अध्याय",
        "भाग",
        "खंड",
        "खण्ड",
        "चरण",
        "श्रेणी",
        "कक्षा",
        "अनुच्छेद",
        "प्रकार",
        "अंक",
    ]
)
_VERBS = re.compile(
    r"(?:,|[.!?;:)]|$| (?:was|had|of|died|ruled|reigned|became|is|and his|and her|who|to|the)\b)"
)


def written_out(text: str, locale: Locale) -> str:
    """Write the ordinals and Roman numerals of ``text`` in words."""
    if any(map(str.isdecimal, text)):
        text = _ORDINAL_RANGE.sub(" से " if locale.is_hindi else " to ", text)
        text = _AGES.sub(lambda match: f"{match['from']} to {_under_age(match, locale)}", text)
        text = _UNDER_AGE.sub(lambda match: _under_age(match, locale), text)
        text = _ENGLISH.sub(lambda match: _english(match, locale), text)
        if locale.is_hindi:
            text = _HINDI.sub(lambda match: _hindi(match, locale), text)
    text = _STAGE.sub(
        lambda match: (
            f"{match['name']} {numbers.cardinal(numbers.of_roman(match['numeral']), locale)} {match['letter']}"
        ),
        text,
    )
    text = _HYPHENATED.sub(
        lambda match: (
            f"{match['name']} {numbers.cardinal(numbers.of_roman(match['numeral']), locale)}"
            if match["numeral"]
            else match[0]
        ),
        text,
    )
    text = _OF_RULER.sub(lambda match: _of_ruler(match, locale), text)
    return _ROMAN.sub(lambda match: _roman(match, locale), text)


def _of_ruler(match: re.Match[str], locale: Locale) -> str:
    if match["name"] not in _KINGS or not match["numeral"]:
        return match[0]
    return f"{match['name']} {numbers.regnal(numbers.of_roman(match['numeral']), locale)}'s"


def _english(match: re.Match[str], locale: Locale) -> str:
    number = int(match["figure"].replace(",", ""))
    if number > numbers.GREATEST:
        return numbers.spoken(match["figure"], locale)
    if number in range(4, 20) and "st" in match[0]:
        # Stone: no ordinal ends so.
        return match[0]
    if locale.is_hindi and _LOAN_AFTER.match(match.string, match.end()):
        return numbers.ordinal(number, Locale(Language.ENGLISH, locale.region))
    if locale.is_hindi and (after := _HINDI_AFTER.match(match.string, match.end())):
        return numbers.ordinal(number, locale, "ी" if after["feminine"] else "े")
    return numbers.ordinal(number, locale) + (" " if match[0].endswith("-") else "")


def _under_age(match: re.Match[str], locale: Locale) -> str:
    """The plural of an age: under-16s."""
    words = numbers.cardinal(int(match["age"]), locale)
    if locale.is_hindi:
        return words
    return numbers.plural(words)


def _hindi(match: re.Match[str], locale: Locale) -> str:
    number = int(match["figure"].replace(",", ""))
    if number > numbers.GREATEST:
        return numbers.spoken(match["figure"], locale)
    return numbers.ordinal(number, locale, _ENDINGS[match["ending"] or match["apart"]])


def _roman(match: re.Match[str], locale: Locale) -> str:
    name, numeral = match["name"], match["numeral"]
    number = numbers.of_roman(numeral)
    if name in _NUMBERED:
        return f"{name} {numbers.cardinal(number, locale)}"
    if name in _KINGS and (numeral != "I" or _VERBS.match(match.string, match.end())):
        return f"{name} {numbers.regnal(number, locale)}"
    if (
        len(numeral) == 1
        or not name.isascii()
        or numeral
        in (
            "LI",
            "CL",
            "XL",
            "CC",
            "XXL",
            "XC",
            "CV",
            "CI",
            "CX",
            "LV",
            "XX",
            "XXX",
        )
    ):
        return match[0]
    return f"{name} {numbers.cardinal(number, locale)}"
