"""Abbreviations of one subject that the words beside them explain: courts, books, flats, prescriptions.

The rules are tried before those of titles and streets (speech/text/normalise/abbreviations.py).
"""

# ruff: noqa: RUF001  # apostrophes of both kinds are meant

from __future__ import annotations

from speech.text.normalise.locale import Region
from speech.text.normalise.rules import Rule, rule


def _same(pattern: str, words: str) -> Rule:
    """A rule with the same words in both languages."""
    return rule(pattern, words, words)


_YEAR = r"(?=\s?(?:1\d|20)\d\d\b)"
_REPORTS = (("2d", "second"), ("3d", "third"), ("4th", "fourth"))
COURTS: tuple[Rule, ...] = (
    _same(r"\b[Cc]ert\. denied\b", "certiorari denied"),
    *(_same(rf"\bF\. ?{short}\b", f"F {word}") for short, word in _REPORTS),
    *(_same(rf"\bF\. Supp\. {short}\b", f"F supplement {word}") for short, word in _REPORTS),
    *(_same(rf"\bL\. Ed\. {short}\b", f"lawyers' edition {word}") for short, word in _REPORTS),
    _same(r"\bS\. Ct\.", "Supreme Court"),
    _same(r"\bSup\. Ct\.", "Supreme Court"),
    _same(r"\bFed\. Reg\.", "Federal Register"),
    _same(r"\bConst\.(?=,? (?:[Aa]rt|[Aa]mend))", "Constitution"),
    _same(r"\bU\.S\.C\.A?\b\.?(?= ?§)", "U S C"),
    _same(r"(?<=\dst )Cir\.|(?<=\dnd )Cir\.|(?<=\drd )Cir\.|(?<=\dth )Cir\.|(?<=\dd )Cir\.", "Circuit"),
    _same(r"\bAtt(?:y|orney)\. Gen\.", "Attorney General"),
    _same(r"\bDist\. Ct\.", "District Court"),
    _same(r"\bBankr\. (?=[A-Z])", "Bankruptcy "),
)  # fmt: skip
SIGNED: tuple[Rule, ...] = (_same(r"(?<=\bGrade II)\*", " star"),)
BOOKS: tuple[Rule, ...] = (
    _same(r"\b(?:[Rr]ev\. ed|[Rr]evd\. ed)\b\.?", "revised edition"),
    _same(r"\b[Ee]d\. (?=by\b)", "edited "),
    _same(r"\b[Tt]rans(?:l?)\. (?=by\b|from\b)", "translated "),
    _same(r"\b[Rr]ev\. (?=in\b|by\b|[12]\d{3}\b|\d{1,2}/)", "revised "),
    _same(rf"\b[Pp]ub\.{_YEAR}", "published"),
    _same(rf"\b[Rr]epr?\.{_YEAR}", "reprinted"),
    _same(r"\([Ee]d\.\)", "editor"),
    _same(r"\b[Ee]ds\.", "editors"),
    _same(r"\b[Ee]d\. note\b", "editor's note"),
    _same(r"(?<!\w)n\.d\.", "no date"),
    _same(r"(?<=\d)ff\.|(?<=\d )ff\.|\b[Tt]he ff\.", "and following"),
    _same(r"\b[Bb]\. ?(?=(?:c\. ?)?(?:1\d|20)\d\d\b|(?:\d{1,2} )?[A-Z][a-z]{2,8}\.? \d|\d{1,2}/\d{1,2}/\d)", "born "),
    _same(r"\b[Dd]\. ?(?=(?:c\. ?)?(?:1\d|20)\d\d\b|(?:\d{1,2} )?[A-Z][a-z]{2,8}\.? (?:\d{1,2},? )?[12]\d{3}\b)", "died "),
    _same(r"(?<![\w.])ca?\. ?(?=1\d{3}\b|\d{3} (?:BC|AD|B\.C|A\.D))", "circa "),
    _same(r"\b[Aa]pp\. (?=[A-H]\b)", "appendix "),
    _same(r"\bVols?\.(?= [IVX]+\b)", "Volume"),
)  # fmt: skip
HOMES: tuple[Rule, ...] = (
    _same(r"(?<=\d)[ -]?[Bb]drms?\b\.?|(?<=\w)-bdrm\b\.?|(?<=\d)[ -]?[Bb][Dd][Rr]?\b(?=[/,]| (?:apt|apartment|house|home|condo|flat)\b)", " bedroom"),
    _same(r"(?<=\d)[ -]?BR?(?=/\d)", " bedroom"),
    _same(r"(?<=\d)[ -]?BR\b", " bedroom"),
    _same(r"(?<=\d)[ -]?(?:BA|ba)\b(?=$|[,.;)/]| [a-z])", " bath"),
    _same(r"\bapt\.(?=\s*$|[,;:)])", "apartment"),
    _same(r"\bbus\. (?=days?\b|hours?\b|hrs\b)", "business "),
    _same(r"\b[Rr]t\. (?=on(?:to)?\b|at\b|turn\b)", "right "),
    _same(r"\b[Ll]t\. (?=on(?:to)?\b|turn\b)", "left "),
    _same(r"\bO\.?N\.?O\.?(?=[\s,.;)]|$)(?<=O\.)", "or nearest offer"),
    _same(r"\b[Hh]\.? ?[Nn]o\.?(?=[:\s]\s?\d|\d)", "house number"),
    _same(r"\bCo\. (?=(?:Durham|Cork|Down|Antrim|Kerry|Mayo|Galway|Clare|Donegal|Wicklow|Kildare|Meath|Louth|Sligo|Tyrone|Armagh|Fermanagh)\b)", "County "),
    _same(r"\bFlrs?\b\.?(?=$|[,;)])", "floors"),
    _same(r"\bHse\.? of\b", "House of"),
    _same(r"\bSth\.? (?=[A-Z][a-z])", "South "),
    _same(r"\bNth\.? (?=[A-Z][a-z])", "North "),
    _same(r"\bRt\.? Hon\b\.?", "Right Honourable"),
    _same(r"\b[Pp]lz\b\.?(?=,? [A-Z]{2}\b)", "Plaza"),
)  # fmt: skip
WORK: tuple[Rule, ...] = (
    _same(r"\b[Dd]ep\. (?=from\b|at\b|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6}\b)", "departs "),
    _same(r"\b[Aa]rr\. (?=in\b|at\b|from\b|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6}\b)", "arrives "),
    _same(r"(?<=\d )\([Ee]st\. (?=\d{4}\))", "(estimated "),
    _same(r"\((?P<party>[DRI])-(?=[A-Z][A-Za-z.])", r"(\g<party> "),
    _same(r"\b[Nn]o [Ee]xp\b\.?", "no experience"),
    _same(r"\b(?P<many>\d\+? ?y(?:ea)?rs?\.?) [Ee]xp\b\.?", r"\g<many> experience"),
    _same(r"\b[Ee]xp\. (?=date\b|dt\b)", "expiry "),
    _same(r"(?P<count>\d )refs\b\.?", r"\g<count>references"),
    _same(r"(?P<count>\d )encls?\b\.?", r"\g<count>enclosures"),
    _same(r"\b[Rr]ev\. (?=up\b|down\b|rose\b|fell\b|grew\b|was\b|of\b|growth\b|per\b|\$|£|€|₹)", "revenue "),
    _same(r"\b[Ii]nv\.? (?=[Nn]o\b|[Nn]um|#)", "invoice "),
    _same(r"\b[Cc]omp\. Sci\b\.?", "computer science"),
    _same(r"\b[Pp]ol\. Sci\b\.?", "political science"),
    _same(r"\b[Bb]io\. (?=lab\b|class\b|dept\b)", "biology "),
    _same(r"(?<= of )Phys\.|(?<= of )Phy\.", "Physics"),
    _same(r"(?<= of )Math(?:s?)\.", "Mathematics"),
    _same(r"(?<= of )Eng(?:g?)\.", "Engineering"),
    _same(r"(?<= of )Ed\.", "Education"),
    _same(r"(?<= of )Psych\.", "Psychology"),
    _same(r"\b[Ff]wd: ?", "forward: "),
    _same(r"\b[Ss]/[Nn](?=:? ?[A-Z\d])", "serial number"),
    _same(r"\b[Pp]/[Nn](?=:? ?[A-Z\d])", "part number"),
    _same(r"\b(?P<which>[Tt]his|[Ll]ast|[Nn]ext|[Pp]er|[Ee]ach|[Ee]very|[Tt]he|[Ff]irst|[Ff]inal) yr\b\.?", r"\g<which> year"),
    _same(r"\b(?P<which>[Tt]his|[Ll]ast|[Nn]ext|[Pp]er|[Ee]ach|[Ee]very|[Ff]irst|[Ff]inal) wk\b\.?", r"\g<which> week"),
    _same(r"\b(?P<which>[Tt]his|[Ll]ast|[Nn]ext|[Pp]er|[Ee]ach|[Ee]very|[Ff]irst|[Ff]inal|1st|2nd|3rd|4th) qtr\b\.?", r"\g<which> quarter"),
    _same(r"\b(?P<which>[Pp]er|[Ee]very|[Ee]ach|[Aa]n) hr\b\.?", r"\g<which> hour"),
    _same(r"\b(?P<which>[Aa] )(?P<few>few|couple|couple of) mins\b\.?", r"\g<which>\g<few> minutes"),
    _same(r"\b[Dd]ep\. (?=(?:Dir|Min|Gov|Chief|Sheriff|Comm|Sec|Mayor|Head|Mgr|PM)\b)", "deputy "),
    _same(r"\b[Ff]eat\. (?=[A-Z])", "featuring "),
    _same(r"(?P<song>\b[A-Z][A-Za-z]+['’]?[\")]? )ft\. (?=[A-Z])", r"\g<song>featuring "),
    _same(r"\b[Dd]iv\b\.? (?=\d{1,2}\b(?![.,]\d|%)|[A-H]\b|I{1,3}\b)", "division "),
    _same(r"(?P<century>\b\d{1,2}(?:st|nd|rd|th))(?:C\b|[ -][Cc]\.)", r"\g<century> century"),
    _same(r"\b[Pp]g\b\.? (?=\d)", "page "),
    _same(r"\b(?:[Ss][lr]|[Ss]er)\.? ?[Nn]o\b\.?(?=[:\s]|$)", "serial number"),
    _same(r"\b[Ll]r\. ?[Nn]o\b\.?(?=[:\s]|$)", "letter number"),
    _same(r"\b[Rr]oll [Nn]o\b\.?(?=[:\s]|$)", "roll number"),
    _same(r"\bDy (?=[A-Z])", "deputy "),
)  # fmt: skip
CLINICS: tuple[Rule, ...] = (
    _same(r"\bq\.h\.s\.|\bqhs\b", "every night at bedtime"),
    _same(r"\bq\.o\.d\.", "every other day"),
    _same(r"\bq\.d\.", "once a day"),
    _same(r"\bq\.h\.", "every hour"),
    _same(r"\bp\.o\.", "by mouth"),
    _same(r"(?<![\w.])h\.s\.", "at bedtime"),
    _same(r"(?<![\w.])a\.c\.(?=[\s,;)]|$)", "before meals"),
    _same(r"(?<![\w.])p\.c\.(?=[\s,;)]|$)", "after meals"),
    _same(r"\bp\.r\.n\.", "as needed"),
    _same(r"(?<![\w/])F/U(?![\w/])", "follow up"),
    _same(r"(?<![\w/])R/O(?![\w/])", "rule out"),
    _same(r"(?<![\w/])H/O(?![\w/])", "history of"),
    _same(r"(?<![\w/])[Ww]/[Uu](?![\w/])", "work up"),
    _same(r"\b[Tt]ab\.? (?=[A-Z][a-z]{2})(?<=\.\s)", "tablet "),
    _same(r"\b[Cc]ap\.? (?=[A-Z][a-z]{2})(?<=\.\s)", "capsule "),
    _same(r"\b[Ss]y[rp]\. (?=[A-Z])", "syrup "),
    _same(r"\b[Oo]int\. (?=[A-Z])", "ointment "),
    _same(r"\b[Ss]x\b(?=:| of\b| (?:x|for)\b)", "symptoms"),
    _same(r"\b[Ff]x\b(?=:| of\b)", "fracture"),
    _same(r"\b[Ss]urg\. (?=hx|history)", "surgical "),
)  # fmt: skip
INDIA: tuple[Rule, ...] = (
    _same(r"\bAdv\. (?=[A-Z][a-z])", "advocate "),
    _same(r"\bPt\. (?=[A-Z][a-z])", "pandit "),
    _same(r"\bB/[hH](?=[:\s]| [A-Z])", "behind"),
    _same(r"\b[Dd]t\b\.?(?=[:\s] ?\d)", "date"),
    _same(r"\bPS(?=[:-] [A-Z])", "police station"),
)  # fmt: skip
AMERICA: tuple[Rule, ...] = (
    _same(r"\bPt\. (?=[A-Z][a-z])", "Point "),
    _same(r"\b(?P<state>Ohio|Mich(?:igan)?\.?|Penn|Iowa|Fla\.|Oklahoma|Boise|Kansas|Oregon|Utah|Fresno|Florida|Texas|Arizona|Colorado|N\.C\.|NC|San Diego|San Jose) St\b\.?(?= \d|,| (?:beat|vs?|def|at|over|and|won|lost)\b|\s*$)", r"\g<state> State"),
)  # fmt: skip
_EVERYWHERE = SIGNED + COURTS + BOOKS + HOMES + WORK + CLINICS
_OF_REGION = {
    Region.US: AMERICA + _EVERYWHERE,
    Region.GB: _EVERYWHERE,
    Region.IN: INDIA + _EVERYWHERE,
}


def of(region: Region) -> tuple[Rule, ...]:
    """The rules of a region, in their order."""
    return _OF_REGION[region]
