"""Writes out titles, streets and other abbreviations, by the words beside them."""

from __future__ import annotations

import re
from typing import NamedTuple

from speech.text.normalise.locale import Locale


class _Rule(NamedTuple):
    pattern: re.Pattern[str]
    english: str
    hindi: str


_STREET_ENDS = r"(?=\s*$|\s*[,;:)]|\s+(?:[a-z]|\d)|\s+[A-Z]{2}\b)"


def _rule(pattern: str, english: str, hindi: str) -> _Rule:
    return _Rule(re.compile(pattern), english, hindi)


def _point(pattern: str, english: str, hindi: str) -> tuple[_Rule, _Rule]:
    """Rules for an abbreviation whose point may also end the sentence."""
    return (
        _rule(rf"\b{pattern}\.(?=\s*$)", f"{english}.", f"{hindi}."),
        _rule(rf"\b{pattern}\.", english, hindi),
    )


def _street(short: str, english: str, hindi: str) -> tuple[_Rule, _Rule]:
    name = r"(?P<name>\b(?:[A-Z][a-z]+|\d+(?:st|nd|rd|th)) )"
    return (
        _rule(rf"{name}{short}\.(?=\s*$)", rf"\g<name>{english}.", rf"\g<name>{hindi}."),
        _rule(rf"{name}{short}\b\.?{_STREET_ENDS}", rf"\g<name>{english}", rf"\g<name>{hindi}"),
    )


_CAPITAL = r"(?=\s?[A-Z\u0900-\u097F])"
_NUMBERED_STREET = r"(?P<name>\b\d{1,5} (?:[NSEW]\.? )?(?:[A-Z][a-z]+ ){1,2})"
_STREETS: tuple[_Rule, ...] = (
    _rule(rf"{_NUMBERED_STREET}St\b\.?", r"\g<name>Street", r"\g<name>स्ट्रीट"),
    _rule(rf"{_NUMBERED_STREET}Dr\b\.?", r"\g<name>Drive", r"\g<name>ड्राइव"),
    *_street("St", "Street", "स्ट्रीट"),
    *_street("Dr", "Drive", "ड्राइव"),
    *_street("Rd", "Road", "रोड"),
    *_street("Ave", "Avenue", "एवेन्यू"),
    *_street("Blvd", "Boulevard", "बुलेवार्ड"),
    *_street("Ln", "Lane", "लेन"),
    *_street("Hwy", "Highway", "हाईवे"),
    *_street("Pkwy", "Parkway", "पार्कवे"),
    *_street("Sq", "Square", "स्क्वेयर"),
    *_street("Pl", "Place", "प्लेस"),
    *_street("Ct", "Court", "कोर्ट"),
    *_point("Blvd", "Boulevard", "बुलेवार्ड"),
    *_point("Rd", "Road", "रोड"),
    *_point("Ave", "Avenue", "एवेन्यू"),
    *_point("Hwy", "Highway", "हाईवे"),
)
_TITLES: tuple[_Rule, ...] = (
    _rule(rf"\bDr\.?{_CAPITAL.replace('?', '')}", "Doctor", "डॉक्टर"),
    _rule(rf"\bDr\.{_CAPITAL}", "Doctor ", "डॉक्टर "),
    _rule(r"\bDr\.", "Doctor", "डॉक्टर"),
    _rule(r"\bProf\.(?=\s|$)", "Professor", "प्रोफ़ेसर"),
    _rule(r"\bMr\b\.?", "Mister", "मिस्टर"),
    _rule(r"\bMrs\b\.?", "Missus", "मिसेज़"),
    _rule(r"\bMs\.", "Miz", "मिस"),
    _rule(r"\bSmt\.", "Shrimati", "श्रीमती"),
    *_point("Jr", "Junior", "जूनियर"),
    *_point("Sr", "Senior", "सीनियर"),
    _rule(r"\bSt\.?(?=\s[A-Z])", "Saint", "सेंट"),
    _rule(r"\bSts\.(?=\s[A-Z])", "Saints", "संत"),
    _rule(r"\bMt\.?(?=\s[A-Z])", "Mount", "माउंट"),
    _rule(r"\bFt\.(?=\s[A-Z])", "Fort", "फ़ोर्ट"),
    _rule(r"\bGen\.(?=\s[A-Z])", "General", "जनरल"),
    _rule(r"\bCapt\.", "Captain", "कैप्टन"),
    _rule(r"\bLt\.", "Lieutenant", "लेफ़्टिनेंट"),
    _rule(r"\bCol\.(?=\s[A-Z])", "Colonel", "कर्नल"),
    _rule(r"\bMaj\.(?=\s[A-Z])", "Major", "मेजर"),
    _rule(r"\bSgt\.", "Sergeant", "सार्जेंट"),
    _rule(r"\bGov\.(?=\s[A-Z])", "Governor", "गवर्नर"),
    _rule(r"\bSen\.(?=\s[A-Z])", "Senator", "सीनेटर"),
    _rule(r"\bRep\.(?=\s[A-Z])", "Representative", "प्रतिनिधि"),
    _rule(r"\bPres\.(?=\s[A-Z])", "President", "राष्ट्रपति"),
    _rule(r"\bRev\.(?=\s[A-Z])", "Reverend", "रेवरेंड"),
    _rule(r"\bHon\.(?=\s[A-Z])", "Honourable", "माननीय"),
)
_NUMBERED: tuple[_Rule, ...] = (
    _rule(r"\b[Nn]os\.(?=\s?\d)", "numbers", "नंबर"),
    _rule(r"\b(?:No|Nr|no)\.\s?(?=\d)", "number ", "नंबर "),
    _rule(r"\b[Ff]igs?\.(?=\s?\d)", "figure", "चित्र"),
    _rule(r"\b[Vv]ol\.(?=\s?[\dIVX])", "volume", "खंड"),
    _rule(r"\b[Cc]h\.(?=\s?[\dIVX])", "chapter", "अध्याय"),
    _rule(r"\b[Ss]ec\.(?=\s?\d)", "section", "धारा"),
    _rule(r"\b[Ee]q\.(?=\s?\d)", "equation", "समीकरण"),
    _rule(r"\bpp\.?(?=\s?\d)", "pages", "पृष्ठ"),
    _rule(r"(?<!\w)p\.(?=\s?\d)", "page", "पृष्ठ"),
    _rule(r"\b[Aa]pt\.?(?=\s?[\d#])", "apartment", "अपार्टमेंट"),
    _rule(r"\b[Ss]te\.(?=\s?\d)", "suite", "सुइट"),
    _rule(r"\b[Ee]xt\.(?=\s?\d)", "extension", "एक्सटेंशन"),
)
_OTHERS: tuple[_Rule, ...] = (
    _rule(r"\be\. ?g\.,?", "for example", "जैसे"),
    _rule(r"\bi\. ?e\.,?", "that is", "यानी"),
    _rule(r"\bvs\b\.?", "versus", "बनाम"),
    _rule(r"\betc\.(?=\s*$)", "et cetera.", "वगैरह."),
    _rule(r"\betc\b\.?", "et cetera", "वगैरह"),
    _rule(r"\bet al\.", "and others", "और अन्य"),
    _rule(r"\bapprox\.", "approximately", "लगभग"),
    _rule(r"(?<!\w)cf\.", "compare", "तुलना करें"),
    _rule(r"\bca\.(?=\s?\d)", "circa", "लगभग"),
    *_point("[Dd]ept", "Department", "विभाग"),
    *_point("Inc", "Incorporated", "इनकॉर्पोरेटेड"),
    *_point("Ltd", "Limited", "लिमिटेड"),
    *_point("Corp", "Corporation", "कॉर्पोरेशन"),
    _rule(r"(?<=[a-z&] )Co\.(?=\s*$)", "Company.", "कंपनी."),
    _rule(r"(?<=[a-z&] )Co\.", "Company", "कंपनी"),
    *_point("Univ", "University", "विश्वविद्यालय"),
    *_point("Assn", "Association", "एसोसिएशन"),
    _rule(r"\bBros\.", "Brothers", "ब्रदर्स"),
    _rule(r"\b[Ee]st\.(?=\s?\d)", "established", "स्थापित"),
    _rule(r"\b[Mm]isc\.", "miscellaneous", "विविध"),
    _rule(r"\b[Tt]el\.", "telephone", "टेलीफ़ोन"),
    *_point("max", "maximum", "अधिकतम"),
    *_point("[Bb]ldg", "building", "बिल्डिंग"),
    *_point("[Mm]gr", "manager", "मैनेजर"),
    _rule(r"\bRte\.(?=\s?\d)", "Route", "रूट"),
    _rule(r"\bGov['’]t\b\.?", "Government", "सरकार"),  # noqa: RUF001 the apostrophe is meant
    _rule(r"(?<![\w.])ppl(?![\w.]\w|\w)", "people", "लोग"),
)
_ALONE = r"(?<![\u0900-\u097F.])"
_DEVANAGARI: tuple[_Rule, ...] = (
    *(
        _rule(rf"{_ALONE}{short}\.", word, word)
        for short, word in (
            ("डॉ", "डॉक्टर"), ("डा", "डॉक्टर"), ("प्रो", "प्रोफ़ेसर"), ("पं", "पंडित"), ("श्री", "श्री"),
            ("श्रीमती", "श्रीमती"), ("सुश्री", "सुश्री"), ("कु", "कुमारी"), ("इंजी", "इंजीनियर"),
            ("लि", "लिमिटेड"), ("कं", "कंपनी"), ("प्रा", "प्राइवेट"), ("पृ", "पृष्ठ"),
        )
    ),
    _rule(rf"{_ALONE}(?:नं|नम्बर|सं)\.(?=\s?\d)", "नंबर", "नंबर"),
    _rule(rf"{_ALONE}ई\.\s?पू\.", "ईसा पूर्व", "ईसा पूर्व"),
    _rule(r"(?<=\d )ई\.", "ईस्वी", "ईस्वी"),
)  # fmt: skip
_ALL = _NUMBERED + _STREETS + _TITLES + _OTHERS


def written_out(text: str, locale: Locale) -> str:
    """Write the abbreviations of ``text`` in full."""
    rules = _ALL if text.isascii() else _ALL + _DEVANAGARI
    for rule in rules:
        text = rule.pattern.sub(rule.hindi if locale.is_hindi else rule.english, text)
    return text
