"""Writes out titles, streets and other abbreviations, by the words beside them."""

# ruff: noqa: RUF001  # apostrophes of both kinds are meant

from __future__ import annotations

import re
from typing import NamedTuple

from speech.text.normalise.locale import Locale
from speech.text.normalise.units import UNITS
from speech.text.shortened import MEANINGS, WITHOUT_POINT, Place, spellings


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
_OTHERS: tuple[_Rule, ...] = (
    _rule(r"\be\. ?g\.,?", "for example", "जैसे"),
    _rule(r"\bi\. ?e\.,?", "that is", "यानी"),
    _rule(r"\bvs\b\.?", "versus", "बनाम"),
    _rule(r"\betc\.(?=\s*$)", "et cetera.", "वगैरह."),
    _rule(r"\betc\b\.?", "et cetera", "वगैरह"),
    _rule(r"\bet al\.", "and others", "और अन्य"),
    _rule(r"(?<!\w)cf\.", "compare", "तुलना करें"),
    _rule(r"(?<=[a-z&] )Co\.(?=\s*$)", "Company.", "कंपनी."),
    _rule(r"(?<=[a-z&] )Co\.", "Company", "कंपनी"),
    _rule(r"\b[Ee]st\.(?=\s?(?:1[0-9]|20)\d\d\b)", "established", "स्थापित"),
    _rule(r"\b[Nn]o\.(?= (?:is|was|of|and|on)\b|:)", "number", "नंबर"),
    _rule(r"\bH\.? ?No\.(?=\s?\d)", "house number", "मकान नंबर"),
    *(
        _rule(rf"\b{short}\b\.?", english, hindi)
        for short, english, hindi in (
            ("[Gg]ov['’]t", "government", "सरकार"),
            ("[Dd]ep['’]t", "department", "विभाग"),
            ("[Ii]nt['’]l", "international", "अंतरराष्ट्रीय"),
            ("[Nn]at['’]l", "national", "राष्ट्रीय"),
            ("[Aa]ss['’]n", "association", "एसोसिएशन"),
            ("[Rr]ec['’]d", "received", "प्राप्त"),
            ("[Cc]ont['’]d", "continued", "जारी"),
        )
    ),
    _rule(r"\bp\.a\.(?=[\s,.;)]|$)", "per annum", "प्रति वर्ष"),
    _rule(r"(?<=\d)-pt\b\.?", "-point", " अंक"),
    _rule(r"(?<!\w)#(?= (?:is|of|are|was)\b)", "number", "नंबर"),
    _rule(r"\b(?P<one>[A-Z][a-z]+\.?) v\.? (?=[A-Z])", r"\g<one> versus ", r"\g<one> बनाम "),
    _rule(
        r"\b[Pp]t\.(?= (?:is|was|has|had|reports?|states|denies|presents?|complains)\b)",
        "patient",
        "मरीज़",
    ),
    _rule(r"\bw/in\b", "within", "के भीतर"),
    _rule(r"\bb/c\b", "because", "क्योंकि"),
    _rule(r"(?<=\d)[ -]?y/?o\b", " year old", " वर्षीय"),
    _rule(r"\bh/o\b", "history of", "history of"),
    _rule(r"\bs/p\b", "status post", "status post"),
    _rule(r"\bu/s (?=\d)", "under section ", "धारा "),
    _rule(r"\bb\.i\.d\.", "twice a day", "दिन में दो बार"),
    _rule(r"\bt\.i\.d\.", "three times a day", "दिन में तीन बार"),
    _rule(r"\bq\.i\.d\.", "four times a day", "दिन में चार बार"),
    _rule(r"\b(?:p\.r\.n\.|prn\b)", "as needed", "ज़रूरत होने पर"),
    _rule(
        r"\bq ?(?P<hours>\d{1,2}(?:-\d{1,2})?) ?h(?:rs?)?\b",
        r"every \g<hours> hours",
        r"हर \g<hours> घंटे",
    ),
    _rule(r"\b10s of\b", "tens of", "दसियों"),
    _rule(r"\b100s of\b", "hundreds of", "सैकड़ों"),
    _rule(r"\b1,?000s of\b", "thousands of", "हज़ारों"),
    *(
        _rule(
            rf"\b{letter}\. (?=(?:[A-Z][a-z]+|\d+(?:st|nd|rd|th)) (?:Street|Avenue|Road|Boulevard|Drive|Lane)\b)",
            f"{side} ",
            f"{side} ",
        )
        for letter, side in (("N", "North"), ("S", "South"), ("E", "East"), ("W", "West"))
    ),
    _rule(r"(?<!\w)#\s?(?=\d)", "number ", "नंबर "),
    _rule(r"¶ ?(?=\d)", "paragraph ", "पैरा "),
)
_ALONE = r"(?<![\u0900-\u097F.])"
_DEVANAGARI: tuple[_Rule, ...] = (
    *(
        _rule(rf"{_ALONE}{short}\.", word, word)
        for short, word in (
            ("डॉ", "डॉक्टर"), ("डा", "डॉक्टर"), ("प्रो", "प्रोफ़ेसर"), ("पं", "पंडित"), ("श्री", "श्री"),
            ("श्रीमती", "श्रीमती"), ("सुश्री", "सुश्री"), ("कु", "कुमारी"), ("इंजी", "इंजीनियर"),
            ("मो", "मोबाइल"), ("लि", "लिमिटेड"), ("कं", "कंपनी"), ("प्रा", "प्राइवेट"), ("पृ", "पृष्ठ"),
        )
    ),
    _rule(rf"{_ALONE}(?:नं|नम्बर|सं)\.(?=\s?\d)", "नंबर", "नंबर"),
    _rule(rf"{_ALONE}कि\.\s?मी\.?", "किलोमीटर", "किलोमीटर"),
    _rule(rf"{_ALONE}ई\.\s?पू\.", "ईसा पूर्व", "ईसा पूर्व"),
    _rule(r"(?<=\d )ई\.", "ईस्वी", "ईस्वी"),
)  # fmt: skip
_ALL = _STREETS + _TITLES + _OTHERS
_SOME = re.compile(
    r"\.(?!\s*\Z)|[\u0900-\u097f]\.|[/#¶]|[a-z]['’][tnld]\b|\b(?:Dr|Mrs?|Sts?|Mt|vs|etc|[JS]r|Rd|Ave|Blvd|Ln|Hwy|Pkwy|Sq|Pl|Ct|q ?\d+|prn|v|1,?0+s)\b|-pt\b"
)
"""What any of these rules needs; most texts have nothing of it, and are not tried rule by rule."""
_POINTLESS = (*spellings(Place.PLAIN), *WITHOUT_POINT, *map(str.capitalize, WITHOUT_POINT))
_SPELLED = "|".join(sorted(_POINTLESS, key=len, reverse=True))
_PLAIN = re.compile(
    rf"(?<![\w.'’@#/_-])(?P<short>{_SPELLED}|{_SPELLED.upper()})(?![\w'’(/@_-]|\.\w)(?P<point>\.?)"
)
_DOTTED = re.compile(r"(?<![\w.'’@/-])(?P<short>[A-Za-z]{1,7}+)(?P<point>\.)(?![\w.@])")
_AFTER_FIGURE = re.compile(r"[\d½¼¾]\)? ?\Z")
_AFTER_ORDINAL = re.compile(r"\d(?:st|nd|rd|th) \Z")
_BEFORE_NUMBER = re.compile(
    r"\s?(?:[\d#]|(?:[IVX]{2,4}|[VX]|[A-H]\d{0,2})\b|I(?=[,.;:)])|[A-Z]{1,5}[-/]?\d)|\.?\d"
)
_GOES_ON = re.compile(r"[,:;)]|\s[^\sA-Z]")


def written_out(text: str, locale: Locale) -> str:
    """Write the abbreviations of ``text`` in full."""
    if _SOME.search(text):
        for rule in _ALL if text.isascii() else _ALL + _DEVANAGARI:
            text = rule.pattern.sub(rule.hindi if locale.is_hindi else rule.english, text)
    text = _PLAIN.sub(lambda match: _meant(match, locale), text)
    return _DOTTED.sub(lambda match: _meant(match, locale), text) if "." in text else text


def _meant(match: re.Match[str], locale: Locale) -> str:
    short = match["short"]
    if not (short.islower() or short.istitle() or short.isupper()) or short in "PSC":
        return match[0]
    if short.isupper() and not short.isalpha():
        return match[0]
    for meaning in MEANINGS.get(short) or MEANINGS.get(short.lower(), ()):
        if _fits(meaning.place, match):
            ends = match["point"] and not match.string[match.end() :].strip()
            words = meaning.hindi if locale.is_hindi else meaning.english
            return (words[0].upper() + words[1:] if short[0].isupper() else words) + "." * bool(
                ends
            )
    return match[0]


def _fits(place: Place, match: re.Match[str]) -> bool:
    """Whether an abbreviation stands at such a place."""
    text, start, end = match.string, match.start(), match.end()
    counted = _AFTER_FIGURE.search(text, max(0, start - 3), start)
    if place is Place.NUMBER:
        is_unit = counted and match["short"] in UNITS
        return not is_unit and _BEFORE_NUMBER.match(text, end) is not None
    if place is Place.ORDINAL:
        return _AFTER_ORDINAL.search(text, max(0, start - 6), start) is not None
    if place is Place.INSIDE:
        is_plain = not counted and not match["short"].isupper()
        return is_plain and _GOES_ON.match(text, end) is not None
    # After a figure it is a unit, which is written out in the number of the figure.
    return not (counted and (match["short"] in UNITS or match[0] in UNITS))
