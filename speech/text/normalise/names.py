# ruff: noqa: RUF001  # dashes are meant
"""Streets, titles and the states of America: short forms that the names beside them explain."""

from __future__ import annotations

from speech.text.normalise.rules import Rule, rule

BY_LETTERS = {
    "AL": "Alabama", "AK": "Alaska", "AZ": "Arizona", "AR": "Arkansas", "CA": "California",
    "CO": "Colorado", "CT": "Connecticut", "DE": "Delaware", "DC": "DC", "FL": "Florida",
    "GA": "Georgia", "HI": "Hawaii", "ID": "Idaho", "IL": "Illinois", "IN": "Indiana",
    "IA": "Iowa", "KS": "Kansas", "KY": "Kentucky", "LA": "Louisiana", "ME": "Maine",
    "MD": "Maryland", "MA": "Massachusetts", "MI": "Michigan", "MN": "Minnesota", "MS": "Mississippi",
    "MO": "Missouri", "MT": "Montana", "NE": "Nebraska", "NV": "Nevada", "NH": "New Hampshire",
    "NJ": "New Jersey", "NM": "New Mexico", "NY": "New York", "NC": "North Carolina", "ND": "North Dakota",
    "OH": "Ohio", "OK": "Oklahoma", "OR": "Oregon", "PA": "Pennsylvania", "RI": "Rhode Island",
    "SC": "South Carolina", "SD": "South Dakota", "TN": "Tennessee", "TX": "Texas", "UT": "Utah",
    "VT": "Vermont", "VA": "Virginia", "WA": "Washington", "WV": "West Virginia", "WI": "Wisconsin",
    "WY": "Wyoming",
}  # fmt: skip
"""Of the post, before a ZIP code."""
SHORTENED = {
    "Ala": "Alabama", "Ariz": "Arizona", "Ark": "Arkansas", "Calif": "California", "Colo": "Colorado", "Conn": "Connecticut",
    "Del": "Delaware", "Fla": "Florida", "Ga": "Georgia", "Ill": "Illinois", "Ind": "Indiana", "Kan": "Kansas",
    "Ky": "Kentucky", "La": "Louisiana", "Mass": "Massachusetts", "Md": "Maryland", "Mich": "Michigan", "Minn": "Minnesota",
    "Miss": "Mississippi", "Mo": "Missouri", "Mont": "Montana", "Neb": "Nebraska", "Nev": "Nevada", "Okla": "Oklahoma",
    "Ore": "Oregon", "Pa": "Pennsylvania", "Tenn": "Tennessee", "Tex": "Texas", "Va": "Virginia", "Vt": "Vermont",
    "Wash": "Washington", "Dak": "Dakota", "Wis": "Wisconsin", "Wyo": "Wyoming",
}  # fmt: skip
"""Of newspapers, without their points."""
_NO_WORDS = (
    "Ala Ariz Ark Calif Colo Conn Dak Fla Ill Ky Mich Minn Mont Neb Nev Okla Ore Tenn Tex Wis Wyo"
)
ONLY_STATES = tuple(_NO_WORDS.split())
"""Those that are no words or names, after ``of``, ``in`` and the like."""
_STREET_ENDS = r"(?=\s*$|\s*[,;:)&/]|\s+(?:[a-z]|\d|[-–—(] ?\w)|\s+[A-Z]{2}\b)"


def _point(pattern: str, english: str, hindi: str) -> tuple[Rule, Rule]:
    """Rules for an abbreviation whose point may also end the sentence."""
    return (
        rule(rf"\b{pattern}\.(?=\s*$)", f"{english}.", f"{hindi}."),
        rule(rf"\b{pattern}\.", english, hindi),
    )


def _street(short: str, english: str, hindi: str) -> tuple[Rule, Rule]:
    name = r"(?P<name>\b(?:[A-Z][a-z]+|[A-Z]{2,3}|\d+(?:st|nd|rd|th)) )"
    return (
        rule(rf"{name}{short}\.(?=\s*$)", rf"\g<name>{english}.", rf"\g<name>{hindi}."),
        rule(rf"{name}{short}\b\.?{_STREET_ENDS}", rf"\g<name>{english}", rf"\g<name>{hindi}"),
    )


def _named(short: str, english: str, hindi: str) -> tuple[Rule, Rule]:
    """Rules for a street whose short form is nothing else, whatever follows."""
    at_end, inside = _street(short, english, hindi)
    anywhere = inside.pattern.pattern.replace(_STREET_ENDS, r"(?=\W|$)")
    return at_end, rule(anywhere, inside.english, inside.hindi)


_CAPITAL = r"(?=\s?[A-Z\u0900-\u097F])"
_NUMBERED_STREET = r"(?P<name>\b\d{1,5} (?:[NSEW]\.? )?(?:[A-Z][a-z]+ ){1,2})"
STREETS: tuple[Rule, ...] = (
    rule(rf"{_NUMBERED_STREET}St\b\.?", r"\g<name>Street", r"\g<name>स्ट्रीट"),
    rule(rf"{_NUMBERED_STREET}Dr\b\.?", r"\g<name>Drive", r"\g<name>ड्राइव"),
    *_street("St", "Street", "स्ट्रीट"),
    *_street("Dr", "Drive", "ड्राइव"),
    *_named("Rd", "Road", "रोड"),
    *_named("Ave", "Avenue", "एवेन्यू"),
    *_named("Blvd", "Boulevard", "बुलेवार्ड"),
    *_street("Ln", "Lane", "लेन"),
    *_street("Hwy", "Highway", "हाईवे"),
    *_street("Pkwy", "Parkway", "पार्कवे"),
    *_street("Sq", "Square", "स्क्वेयर"),
    *_street("Pl", "Place", "प्लेस"),
    *_street("Ct", "Court", "कोर्ट"),
    *_street("Ter", "Terrace", "टेरेस"),
    *_street("Cres", "Crescent", "क्रेसेंट"),
    *_street("Gdns", "Gardens", "गार्डन्स"),
    *_street("Cir", "Circle", "सर्किल"),
    *_street("Trl", "Trail", "ट्रेल"),
    *_named("Fwy", "Freeway", "फ़्रीवे"),
    *_named("Expy", "Expressway", "एक्सप्रेसवे"),
    *_named("Tpke", "Turnpike", "टर्नपाइक"),
    *_street("Pk", "Park", "पार्क"),
    *_street("Hts", "Heights", "हाइट्स"),
    *_street("Bch", "Beach", "बीच"),
    *_street("Av", "Avenue", "एवेन्यू"),
    *(
        rule(rf"{_NUMBERED_STREET}{short}\b\.?(?=\s*$|\s*[,;:)])", rf"\g<name>{word}", rf"\g<name>{word}")
        for short, word in (
            ("Cl", "Close"), ("Gr", "Grove"), ("Mnr", "Manor"), ("Cv", "Cove"), ("Xing", "Crossing"), ("Est", "Estate"),
            ("Aly", "Alley"), ("Lk", "Lake"), ("Pt", "Point"), ("Wy", "Way"), ("Plz", "Plaza"),
        )
    ),
    *_point("Blvd", "Boulevard", "बुलेवार्ड"),
    *_point("Rd", "Road", "रोड"),
    *_point("Ave", "Avenue", "एवेन्यू"),
    *_point("Hwy", "Highway", "हाईवे"),
)  # fmt: skip
TITLES: tuple[Rule, ...] = (
    rule(r"\bDr\.?(?=\s[A-Z\u0900-\u097F])", "Doctor", "डॉक्टर"),
    rule(rf"\bDr\.{_CAPITAL}", "Doctor ", "डॉक्टर "),
    rule(r"\bDr\.", "Doctor", "डॉक्टर"),
    rule(r"\bProf\b(?:\.(?=[\s,;)]|$)|(?= [A-Z]))", "Professor", "प्रोफ़ेसर"),
    rule(r"\bMr\b\.?", "Mister", "मिस्टर"),
    rule(r"\bMrs\b\.?", "Missus", "मिसेज़"),
    rule(r"\bMs\.", "Miz", "मिस"),
    rule(r"\bSmt\.", "Shrimati", "श्रीमती"),
    *_point("Jr", "Junior", "जूनियर"),
    *_point("Sr", "Senior", "सीनियर"),
    rule(r"\bSt\.?(?=\s[A-Z])", "Saint", "सेंट"),
    rule(r"\bSts\.(?=\s[A-Z])", "Saints", "संत"),
    rule(r"\bMt\.?(?=\s[A-Z])", "Mount", "माउंट"),
    rule(r"\bFt\.(?=\s[A-Z])", "Fort", "फ़ोर्ट"),
    rule(r"\bGen\.(?=\s[A-Z])", "General", "जनरल"),
    rule(r"\bCapt\.", "Captain", "कैप्टन"),
    rule(r"\bLt\.", "Lieutenant", "लेफ़्टिनेंट"),
    rule(r"\bCol\.(?=\s[A-Z])", "Colonel", "कर्नल"),
    rule(r"\bMaj\.(?=\s[A-Z])", "Major", "मेजर"),
    rule(r"\bSgt\.", "Sergeant", "सार्जेंट"),
    rule(r"\bGov\.(?=\s[A-Z])", "Governor", "गवर्नर"),
    rule(r"\bSen\.(?=\s[A-Z])", "Senator", "सीनेटर"),
    rule(r"\bRep\.(?=\s[A-Z])", "Representative", "प्रतिनिधि"),
    rule(r"\bPres\.(?=\s[A-Z])", "President", "राष्ट्रपति"),
    rule(r"\bRev\.(?=\s[A-Z])", "Reverend", "रेवरेंड"),
    rule(r"\bHon\.(?=\s[A-Z])", "Honourable", "माननीय"),
)
