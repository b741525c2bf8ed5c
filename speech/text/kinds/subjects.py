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


def _any(words: str, *patterns: str) -> tuple[Rule, ...]:
    """A rule for each expression, so that each is tried only where its letters are."""
    return tuple(_same(pattern, words) for pattern in patterns)


_YEAR = r"(?=\s?(?:1\d|20)\d\d\b)"
_REPORTS = (("2d", "second"), ("3d", "third"), ("4th", "fourth"))
COURTS: tuple[Rule, ...] = (
    _same(r"\b[Mm]ot\. (?=to\b|for\b|in\b)", "motion "),
    _same(r"\b[Cc]ompl\.(?= ¶| at\b)", "complaint"),
    _same(r"\bDecl\.(?= ¶| of\b| at\b)", "declaration"),
    _same(r"(?:(?<=\bat )|(?<=, )|(?<=& ))n\. ?(?=\d{1,3}\b)", "note "),
    _same(r"(?:(?<=\bat )|(?<=, )|(?<=& ))nn\. ?(?=\d{1,3}\b)", "notes "),
    _same(r"\b[Cc]ert\. denied\b", "certiorari denied"),
    *(_same(rf"\bF\. ?{short}\b", f"F {word}") for short, word in _REPORTS),
    *(_same(rf"\bF\. Supp\. {short}\b", f"F supplement {word}") for short, word in _REPORTS),
    *(_same(rf"\bL\. Ed\. {short}\b", f"lawyers' edition {word}") for short, word in _REPORTS),
    _same(r"\bS\. Ct\.", "Supreme Court"),
    _same(r"\bSup\. Ct\.", "Supreme Court"),
    _same(r"\bFed\. Reg\.", "Federal Register"),
    _same(r"\bConst\.(?=,? (?:[Aa]rt|[Aa]mend))", "Constitution"),
    _same(r"\bU\.S\.C\.A?\b\.?(?= ?§)", "U S C"),
    *_any("Circuit", r"(?<=\d(?:st|nd|rd|th) )Cir\.", r"(?<=\dd )Cir\."),
    _same(r"\bAtt(?:y|orney)\. Gen\.", "Attorney General"),
    _same(r"\bDist\. Ct\.", "District Court"),
    _same(r"\bBankr\. (?=[A-Z])", "Bankruptcy "),
)  # fmt: skip
SIGNED: tuple[Rule, ...] = (_same(r"(?<=\bGrade II)\*", " star"),)
BOOKS: tuple[Rule, ...] = (
    _same(r"\b[Rr]evd?\. ed\b\.?", "revised edition"),
    _same(r"\b[Ee]d\. (?=by\b)", "edited "),
    _same(r"\b[Tt]rans(?:l?)\. (?=by\b|from\b)", "translated "),
    _same(r"\b[Rr]ev\. (?=in\b|by\b|[12]\d{3}\b|\d{1,2}/)", "revised "),
    _same(rf"\b[Pp]ub\.{_YEAR}", "published"),
    _same(rf"\b[Rr]epr?\.{_YEAR}", "reprinted"),
    _same(r"\([Ee]d\.\)", "editor"),
    _same(r"\b[Ee]ds\.", "editors"),
    _same(r"\b[Ee]d\. note\b", "editor's note"),
    _same(r"(?<!\w)n\.d\.", "no date"),
    *_any("and following", r"(?<=\d)ff\.", r"(?<=\d )ff\.", r"\b[Tt]he ff\."),
    *_any("born ", r"\bB\. ?(?=(?:c\. ?)?(?:1\d|20)\d\d\b|(?:\d{1,2} )?[A-Z][a-z]{2,8}\.? \d|\d{1,2}/\d{1,2}/\d)", r"\bb\. ?(?=(?:c\. ?)?(?:1\d|20)\d\d\b|(?:\d{1,2} )?[A-Z][a-z]{2,8}\.? \d|\d{1,2}/\d{1,2}/\d)"),
    *_any("died ", r"\bD\. ?(?=(?:c\. ?)?(?:1\d|20)\d\d\b|(?:\d{1,2} )?[A-Z][a-z]{2,8}\.? (?:\d{1,2},? )?[12]\d{3}\b)", r"\bd\. ?(?=(?:c\. ?)?(?:1\d|20)\d\d\b|(?:\d{1,2} )?[A-Z][a-z]{2,8}\.? (?:\d{1,2},? )?[12]\d{3}\b)"),
    _same(r"(?<![\w.])c\. ?(?=1\d{3}\b|\d{3} (?:BC|AD|B\.C|A\.D))", "circa "),
    _same(r"\b[Aa]pp\. (?=[A-H]\b)", "appendix "),
    _same(r"\bVols?\.(?= [IVX]+\b)", "Volume"),
)  # fmt: skip
HOMES: tuple[Rule, ...] = (
    *_any(" bedroom", r"(?<=\d)[ -]?[Bb]drms?\b\.?", r"(?<=\w)-bdrm\b\.?", r"(?<=\d)[ -]?[Bb][Dd][Rr]?\b(?=[/,]| (?:apt|apartment|house|home|condo|flat)\b)"),
    _same(r"(?<=\d)[ -]?BR?(?=/\d)", " bedroom"),
    _same(r"(?<=\d)[ -]?BR\b", " bedroom"),
    _same(r"(?<=\d)[ -]?(?:BA|ba)\b(?=$|[,.;)/]| [a-z])", " bath"),
    _same(r"\bapt\.(?=\s*$|[,;:)])", "apartment"),
    _same(r"\bbus\. (?=days?\b|hours?\b|hrs\b)", "business "),
    _same(r"\b[Rr]t\. (?=on(?:to)?\b|at\b|turn\b)", "right "),
    _same(r"\b[Ll]t\. (?=on(?:to)?\b|turn\b)", "left "),
    _same(r"\bO\.?N\.?O\.?(?=[\s,.;)]|$)(?<=O\.)", "or nearest offer"),
    _same(r"\bH\.? ?No\.?(?=[:\s]\s?\d|\d)", "house number"),
    _same(r"\bCo\. (?=(?:Durham|Cork|Down|Antrim|Kerry|Mayo|Galway|Clare|Donegal|Wicklow|Kildare|Meath|Louth|Sligo|Tyrone|Armagh|Fermanagh)\b)", "County "),
    _same(r"\b[Ff]lrs\b\.?(?=$|[,;)])", "floors"),
    _same(r"\b[Ss]ec\. dep\b\.?", "security deposit"),
    _same(r"\b[Dd]et\. (?=semi|house|bungalow|garage|villa|cottage|home|property)", "detached "),
    _same(r"\b[Ee]xc\. cond\b\.?", "excellent condition"),
    _same(r"\b[Gg]d\.? cond\b\.?", "good condition"),
    _same(r"\bv\. (?=(?:good|large|small|hot|cold|nice|high|low|rare|little|few|much|big|heavy|light|busy|clean|easy|hard|important|popular|quiet|tired|late|early|well)\b)", "very "),
    _same(r"\b[Ss]q\. (?=footage|met(?:er|re)s?|feet|foot|inch(?:es)?|miles?|yards?|pan\b|kilom)", "square "),
    _same(r"\b[Cc]u\. (?=feet|foot|inch(?:es)?|yards?|met(?:er|re)s?|cap)", "cubic "),
    _same(r"\b(?P<county>[A-Z][a-z]{2,15}) Co\.(?=, (?:[A-Z]{2}\b|(?:Ala|Ariz|Ark|Calif|Colo|Conn|Fla|Ill|Ind|Kan|Ky|La|Mass|Md|Mich|Minn|Miss|Mo|Mont|Neb|Nev|Okla|Ore|Pa|Tenn|Tex|Va|Wash|Wis|Wyo)\.))", r"\g<county> County"),
    _same(r"\bNat(?:['’]l|l\.?|\.) P(?:ar)?k\b\.?", "National Park"),
    _same(r"\bNat(?:['’]l|l\.?|\.) Mon(?:ument)?\b\.?", "National Monument"),
    _same(r"(?<=\d )NB\b", "northbound"),
    _same(r"(?<=\d )SB\b", "southbound"),
    _same(r"(?<=\d )EB\b", "eastbound"),
    _same(r"(?<=\d )WB\b", "westbound"),
    _same(r"\bHse\.? of\b", "House of"),
    _same(r"\bSth\.? (?=[A-Z][a-z])", "South "),
    _same(r"\bNth\.? (?=[A-Z][a-z])", "North "),
    _same(r"\bRt\.? Hon\b\.?", "Right Honourable"),
    _same(r"\b[Pp]lz\b\.?(?=,? [A-Z]{2}\b)", "Plaza"),
)  # fmt: skip
KITCHENS: tuple[Rule, ...] = (
    _same(r"\b[Aa]dm\.? (?=fee|free|charge|ticket|price|\$|£|₹)", "admission "),
    _same(r"\b[Dd]ist\.?(?=: ?\d)", "distance"),
    _same(r"\bbtw\.(?= [\dA-Z])", "between"),
    _same(r"(?<=(?:st|nd|rd|th) )Aves\b\.?", "Avenues"),
    _same(r"(?<=(?:st|nd|rd|th) )Sts\b\.?", "Streets"),
    _same(r"(?<=(?:st|nd|rd|th) )inst\.", "instant"),
    _same(r"(?<=\dk )mls\b\.?", "miles"),
    *(
        _same(rf"\b{short}\.? [Nn]o\b\.?+(?!:? ?[#\d])", f"{word} number")
        for short, word in (("[Rr]ef", "reference"), ("[Rr]eg", "registration"), ("[Tt]el", "telephone"), ("[Aa]cct?", "account"), ("[Ii]nv", "invoice"))
    ),
    *(
        _same(rf"\b{office} Gen\b\.?(?! [A-Z][a-z])", f"{word} General")
        for office, word in (("Secy\\.?", "Secretary"), ("Secretary", "Secretary"), ("Dir\\.?", "Director"), ("Solicitor", "Solicitor"), ("Consul", "Consul"))
    ),
    *_any("medium", r"\bMed\.?(?=-(?:high|low|size|sized|well|hot|rare)\b)", r"\bmed\.?(?=-(?:high|low|size|sized|well|hot|rare)\b)"),
    *_any("medium ", r"\bMed\.? (?=(?:high|low|heat|rare|well|bowl|saucepan|skillet|pan|onion|egg|potato|carrot|speed|flame)s?\b)", r"\bmed\.? (?=(?:high|low|heat|rare|well|bowl|saucepan|skillet|pan|onion|egg|potato|carrot|speed|flame)s?\b)"),
    _same(r"\b[Cc]ond\. milk\b", "condensed milk"),
    _same(r"\b[Cc]onf\. sugar\b", "confectioners' sugar"),
    _same(r"\b(?P<where>[Rr]oom|[Oo]ven|[Hh]igh|[Ll]ow|[Bb]ody|[Ww]ater|[Cc]ore) temp\.(?=\s*$|\s[A-Z])", r"\g<where> temperature."),
    _same(r"(?<=\d )hwy\b\.?(?= mpg|[,/)]|$)", "highway"),
    _same(r"(?P<road>\b(?:city|highway|hwy)\b,? ?)mpg\b", r"\g<road>miles per gallon"),
    _same(r"\bPWR(?= (?:btn|button|LED|light|switch|key))", "power"),
)  # fmt: skip
RANKS: tuple[Rule, ...] = tuple(
    _same(rf"\b{short} (?=[A-Z])", f"{word} ")
    for short, word in (
        ("Sqn", "Squadron"), ("Ldr", "Leader"), ("Wg", "Wing"), ("Cdr", "Commander"), ("Cmdr", "Commander"), ("Flt", "Flight"),
        ("Lt", "Lieutenant"), ("Col", "Colonel"), ("Maj", "Major"), ("Sgt", "Sergeant"), ("Cpl", "Corporal"), ("Capt", "Captain"),
        ("Brig", "Brigadier"), ("Adm", "Admiral"), ("Insp", "Inspector"), ("Supt", "Superintendent"), ("Rev", "Reverend"), ("Asst", "Assistant"),
    )
)  # fmt: skip
BY: tuple[Rule, ...] = tuple(
    _same(rf"\b{short}\. (?=by\b)", f"{word} ")
    for short, word in (
        ("[Dd]ir", "directed"), ("[Pp]rod", "produced"), ("[Cc]omp", "composed"), ("[Pp]erf", "performed"), ("[Cc]ond", "conducted"),
        ("[Aa]rr", "arranged"), ("[Dd]es", "designed"), ("[Pp]ubl?", "published"), ("[Ii]llus", "illustrated"), ("[Rr]ec", "recorded"),
    )
)  # fmt: skip
_AGAINST = r"(?:(?<=\bv )|(?<=\bvs )|(?<=\bvs\. )|(?<=beat )|(?<=\bbt )|(?<=against ))"
_PLAYS = r"(?= (?:\d|beat|bt|vs?\b|won|need|lead|trail|lost|all out|XI))"
TEAMS: tuple[Rule, ...] = tuple(
    each
    for short, word in (("Eng", "England"), ("Aus", "Australia"), ("Pak", "Pakistan"), ("Ind", "India"), ("Afg", "Afghanistan"))
    for each in _any(word, rf"{_AGAINST}{short}\b\.?", rf"\b{short}\b\.?{_PLAYS}")
)  # fmt: skip
WORK: tuple[Rule, ...] = (
    *_any("major", r"(?<=in [A-G] )maj\b\.?", r"(?<=in [A-G][b♭#♯] )maj\b\.?"),
    *_any("minor", r"(?<=in [A-G] )min\b\.?", r"(?<=in [A-G][b♭#♯] )min\b\.?"),
    _same(r"\b[Aa]tt\. (?=docs?\b|files?\b|photos?\b|pdf|PDF|images?\b|forms?\b|letter|list|agenda|report|is\b|are\b|please|invoice)", "attached "),
    _same(r"\b[Rr]eg\.? (?=[$£€₹]|price|hours\b|hrs\b|size|unleaded)", "regular "),
    _same(r"(?<=[a-z]\s)#(?=:)", "number"),
    _same(r"(?<=\d) ?(?:[Pp]ct\.?|%)[ -](?:pts?\b\.?|points?)", " percentage points"),
    _same(r"(?<=\d)[ -]?y\.o\.", " year old"),
    _same(r"(?<![\w/])[Ff]/[Tt](?![\w/])", "full time"),
    _same(r"(?<![\w/])[Pp]/[Tt](?![\w/])", "part time"),
    _same(r"(?<![\w/])[Hh]/[Tt](?![\w/])", "half time"),
    _same(r"(?<=\d) ?p/w(?![\w/])", " per week"),
    _same(r"(?<=\d) ?p/m(?![\w/])", " per month"),
    _same(r"(?<=\d) ?p/a(?![\w/])", " per annum"),
    _same(r"(?<=\d) ?p/h(?![\w/])", " per hour"),
    _same(r"(?<=\d) ?p/p(?![\w/])", " per person"),
    _same(r"(?<![\w/])w/out(?![\w/])", "without"),
    _same(r"(?<![\w/])w/e?nd(?![\w/])", "weekend"),
    _same(r"(?<![\w/])b/fast(?![\w/])", "breakfast"),
    _same(r"(?<![\w/])[Nn]/[Cc](?![\w/])", "no charge"),
    *_any("also known as", r"(?<![\w/])a/k/a(?![\w/])", r"\ba\.k\.a\."),
    _same(r"(?<![\w/])d/b/a(?![\w/])", "doing business as"),
    _same(r"(?<![\w/])f/k/a(?![\w/])", "formerly known as"),
    _same(r"\b[Rr]ev\. (?=& |and )", "review "),
    _same(r"\bAssoc\.? (?=Prof|Dir|Ed\b|Dean|Att|Just|Prod|VP)", "associate "),
    _same(r"\bDiv\. (?=Mgr|Head|Dir|Chief)", "division "),
    _same(r"\bReg\. (?=Mgr|Dir|Head|Manager)", "regional "),
    _same(r"\b(?P<kind>Software|Sr\.|Senior|Chief|Lead|Jr\.|Junior) Eng\.", r"\g<kind> Engineer"),
    _same(r"\b(?P<kind>[Ss]alary|[Pp]rice|[Rr]ent|OBO|ono|[$£₹][\d,.kK]{1,12},?) neg\b\.?", r"\g<kind> negotiable"),
    _same(r"\b[Dd]ep\. (?=from\b|at\b|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6}\b)", "departs "),
    _same(r"\b[Aa]rr\. (?=in\b|at\b|from\b|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6}\b)", "arrives "),
    _same(r"(?<=\d )\([Ee]st\. (?=\d{4}\))", "(estimated "),
    _same(r"\((?P<party>[DRI])-(?=[A-Z][A-Za-z.])", r"(\g<party> "),
    *_any("no experience", r"\bNo [Ee]xp\b\.?", r"\bno [Ee]xp\b\.?"),
    _same(r"\b(?P<many>\d\+? ?y(?:ea)?rs?\.?) [Ee]xp\b\.?", r"\g<many> experience"),
    _same(r"\b[Ee]xp\. (?=date\b|dt\b)", "expiry "),
    _same(r"(?P<count>\d )refs\b\.?", r"\g<count>references"),
    _same(r"(?P<count>\d )encls?\b\.?", r"\g<count>enclosures"),
    _same(r"\b[Rr]ev\. (?=up\b|down\b|rose\b|fell\b|grew\b|was\b|of\b|growth\b|per\b|\$|£|€|₹)", "revenue "),
    _same(r"\b[Ii]nv\.? (?=[Nn]o\b|[Nn]um|#)", "invoice "),
    _same(r"\b[Cc]omp\. Sci\b\.?", "computer science"),
    _same(r"\b[Pp]ol\. Sci\b\.?", "political science"),
    _same(r"\b[Bb]io\. (?=lab\b|class\b|dept\b)", "biology "),
    *_any("Physics", r"(?<= of )Phys\.", r"(?<= of )Phy\."),
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
    _same(r"(?P<century>\b\d{1,2}(?:st|nd|rd|th))(?=C\b|[ -][Cc]\.)[ -]?[Cc]\.?", r"\g<century> century"),
    *_any("page ", r"\bPg\b\.? (?=\d)", r"\bpg\b\.? (?=\d)"),
    *_any("serial number", *(rf"\b{short}\.? ?[Nn]o\b\.?(?=[:\s]|$)" for short in ("Sr", "Sl", "sl", "sr", "Ser"))),
    _same(r"\b[Ll]r\. ?[Nn]o\b\.?(?=[:\s]|$)", "letter number"),
    _same(r"\b[Rr]oll [Nn]o\b\.?(?=[:\s]|$)", "roll number"),
    _same(r"\bDy (?=[A-Z])", "deputy "),
)  # fmt: skip
CLINICS: tuple[Rule, ...] = (
    _same(r"\b[Dd]isp\.?:? (?=#|\d)", "dispense "),
    _same(r"\b[Ss]ig\.: ?", "sig: "),
    *_any("every morning", r"\bq ?AM\b", r"\bqam\b"),
    *_any("every evening", r"\bq ?PM\b", r"\bqpm\b"),
    _same(r"\bq ?HS\b", "every night at bedtime"),
    _same(r"\bq ?(?:wk|week)\b", "every week"),
    _same(r"\bq ?(?P<count>\d{1,2}) ?(?P<unit>d|days)\b", r"every \g<count> days"),
    _same(r"\bq ?(?P<count>\d{1,2}) ?(?:wks?|weeks?)\b", r"every \g<count> weeks"),
    _same(r"\bq ?(?P<count>\d{1,2}) ?mins?\b", r"every \g<count> minutes"),
    _same(r"\b[Aa]dm\. [Nn]o\b\.?", "admission number"),
    *_any("every night at bedtime", r"\bq\.h\.s\.", r"\bqhs\b"),
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
    *_any("syrup ", r"\bSyr\. (?=[A-Z])", r"\bSyp\. (?=[A-Z])"),
    _same(r"\b[Oo]int\. (?=[A-Z])", "ointment "),
    *_any("symptoms", r"\bSx\b(?=:| of\b| (?:x|for)\b)", r"\bsx\b(?=:| of\b| (?:x|for)\b)"),
    _same(r"\bFx\b(?=:| of\b)", "fracture"),
    _same(r"\b[Ss]urg\. (?=hx|history)", "surgical "),
)  # fmt: skip
INDIA: tuple[Rule, ...] = (
    _same(r"(?P<train>\b[A-Z][a-z]+ )Exp\b\.?(?=[\s,;(]|$)(?! \d{1,2}/)", r"\g<train>Express"),
    _same(r"^(?P<lead>\s*)Sub[.:]+ ?", r"\g<lead>Subject: "),
    _same(r"\bResp\.? (?=Sir|Madam|Ma['’]am)", "respected "),
    _same(r"\b[Ii]nt\.? (?=@)", "interest "),
    _same(r"\bTot\b\.?(?=:? ?[₹\d]|:? Rs)", "total"),
    _same(r"\bAdv\. (?=[A-Z][a-z])", "advocate "),
    _same(r"\bPt\. (?=[A-Z][a-z])", "pandit "),
    _same(r"\bB/[hH](?=[:\s]| [A-Z])", "behind"),
    _same(r"\b[Dd]t\b\.?(?=[:\s] ?\d)", "date"),
    _same(r"\bPS(?=[:-] [A-Z])", "police station"),
)  # fmt: skip
AMERICA: tuple[Rule, ...] = (
    _same(r"(?<=\d )cr\b\.?(?=[,;)]|\s*$| hrs| hours| course| req)", "credit"),
    _same(r"\bPt\. (?=[A-Z][a-z])", "Point "),
    _same(r"\b(?P<state>Ohio|Mich(?:igan)?\.?|Penn|Iowa|Fla\.|Oklahoma|Boise|Kansas|Oregon|Utah|Fresno|Florida|Texas|Arizona|Colorado|N\.C\.|NC|San Diego|San Jose) St\b\.?(?= \d|,| (?:beat|vs?|def|at|over|and|won|lost)\b|\s*$)", r"\g<state> State"),
)  # fmt: skip
_EVERYWHERE = SIGNED + BY + KITCHENS + COURTS + BOOKS + HOMES + WORK + CLINICS + TEAMS + RANKS
_OF_REGION = {
    Region.US: AMERICA + _EVERYWHERE,
    Region.GB: _EVERYWHERE,
    Region.IN: INDIA + _EVERYWHERE,
}


def of(region: Region) -> tuple[Rule, ...]:
    """The rules of a region, in their order."""
    return _OF_REGION[region]
