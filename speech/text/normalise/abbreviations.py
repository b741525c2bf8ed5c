"""Writes out titles, streets and other abbreviations, by the words beside them."""

# ruff: noqa: RUF001  # apostrophes of both kinds are meant

from __future__ import annotations

import re

from speech.text.normalise import names
from speech.text.normalise.devanagari import DEVANAGARI
from speech.text.normalise.locale import Locale
from speech.text.normalise.rules import Rule, apply, rule
from speech.text.normalise.units import UNITS
from speech.text.shortened import MEANINGS, WITHOUT_POINT, Place, spellings

_LAWS = (
    ("Civ", "Civil"), ("Crim", "Criminal"), ("Pen", "Penal"), ("Veh", "Vehicle"), ("Gov", "Government"), ("Fam", "Family"), ("Lab", "Labor"),
    ("Prob", "Probate"), ("Educ", "Education"), ("Com", "Commercial"), ("Ins", "Insurance"),
)  # fmt: skip
_OTHERS: tuple[Rule, ...] = (
    rule(r"\be\. ?g\.,?", "for example", "जैसे"),
    rule(r"\bi\. ?e\.,?", "that is", "यानी"),
    rule(r"\bvs\b\.?", "versus", "बनाम"),
    rule(r"\betc\.(?=\s*$)", "et cetera.", "वगैरह."),
    rule(r"\betc\b\.?", "et cetera", "वगैरह"),
    rule(r"\bet al\.", "and others", "और अन्य"),
    rule(r"(?<!\w)cf\.", "compare", "तुलना करें"),
    rule(r"(?<=[a-z&] )Co\.(?=\s*$)", "Company.", "कंपनी."),
    rule(r"(?<=[a-z&] )Co\.", "Company", "कंपनी"),
    rule(r"\b[Ee]st\.(?=\s?(?:1[0-9]|20)\d\d\b)", "established", "स्थापित"),
    rule(r"\b[Nn]o\.(?= (?:is|was|of|and|on)\b|:)", "number", "नंबर"),
    rule(r"\bH\.? ?No\.(?=\s?\d)", "house number", "मकान नंबर"),
    *(
        rule(rf"\b{short}\b\.?", english, hindi)
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
    rule(r"\bp\.a\.(?=[\s,.;)]|$)", "per annum", "प्रति वर्ष"),
    rule(r"(?<=\d)-pt\b\.?", "-point", " अंक"),
    rule(r"(?<!\w)#(?= (?:is|of|are|was)\b)", "number", "नंबर"),
    rule(r"\b(?P<one>[A-Z][a-z]+\.?) v\.? (?=[A-Z])", r"\g<one> versus ", r"\g<one> बनाम "),
    rule(
        r"\b[Pp]t\.(?= (?:is|was|has|had|reports?|states|denies|presents?|complains)\b)",
        "patient",
        "मरीज़",
    ),
    rule(r"\bw/in\b", "within", "के भीतर"),
    rule(r"\bb/c\b", "because", "क्योंकि"),
    rule(r"(?<=\d)[ -]?y/?o\b", " year old", " वर्षीय"),
    rule(r"\bh/o\b", "history of", "history of"),
    rule(r"\bs/p\b", "status post", "status post"),
    rule(r"\bu/s (?=\d)", "under section ", "धारा "),
    rule(r"\bb\.i\.d\.", "twice a day", "दिन में दो बार"),
    rule(r"\bt\.i\.d\.", "three times a day", "दिन में तीन बार"),
    rule(r"\bq\.i\.d\.", "four times a day", "दिन में चार बार"),
    rule(r"\b(?:p\.r\.n\.|prn\b)", "as needed", "ज़रूरत होने पर"),
    rule(
        r"\bq ?(?P<hours>\d{1,2}(?:-\d{1,2})?) ?h(?:rs?)?\b",
        r"every \g<hours> hours",
        r"हर \g<hours> घंटे",
    ),
    rule(r"\b10s of\b", "tens of", "दसियों"),
    rule(r"\b100s of\b", "hundreds of", "सैकड़ों"),
    rule(r"\b1,?000s of\b", "thousands of", "हज़ारों"),
    *(
        rule(
            rf"\b{letter}\. (?=(?:[A-Z][a-z]+|\d+(?:st|nd|rd|th)) (?:Street|Avenue|Road|Boulevard|Drive|Lane)\b)",
            f"{side} ",
            f"{side} ",
        )
        for letter, side in (("N", "North"), ("S", "South"), ("E", "East"), ("W", "West"))
    ),
    rule(r"(?<!\w)#\s?(?=\d)", "number ", "नंबर "),
    rule(r"¶¶ ?(?=\d)", "paragraphs ", "पैरा "),
    rule(r"¶ ?(?=\d)", "paragraph ", "पैरा "),
    rule(r"\bEsq\.(?=\s*$)", "Esquire.", "एस्क्वायर."),
    rule(r"\bEsq\.", "Esquire", "एस्क्वायर"),
    rule(r"\b[Nn]r\b\.? (?=[A-Z])", "near ", "पास "),
    rule(
        r"(?<=[A-Za-z] )(?:No\b\.?|no\.)(?=:? ?(?:# ?)?(?:\d|[A-Z]{1,4}[ -]?\d|[A-Z]{2,5}[-/]))",
        "number",
        "नंबर",
    ),
    rule(r"(?<=[A-Za-z]{2})#:? ?(?=\d)", " number ", " नंबर "),
    rule(
        r"\b(?P<kind>[Dd]ew|[Mm]elting|[Bb]oiling|[Ff]reezing|[Ss]tarting|[Tt]urning) pt\b\.?",
        r"\g<kind> point",
        r"\g<kind> point",
    ),
    rule(
        r"(?<=\dst )qtr\b\.?|(?<=\dnd )qtr\b\.?|(?<=\drd )qtr\b\.?|(?<=\dth )qtr\b\.?",
        "quarter",
        "तिमाही",
    ),
    rule(r"(?<=\dth )std\b\.?", "standard", "कक्षा"),
    rule(r"\binc\b\.?(?=\s*(?:[,;)]|$))", "included", "सहित"),
    rule(r"(?<=[\d½¼¾] )(?:lge?)\b\.?(?=[ ,][a-z(])", "large", "बड़ा"),
    rule(r"(?<=[\d½¼¾] )sm\b\.?(?=[ ,][a-z(])", "small", "छोटा"),
    rule(r"(?<=[\d½¼¾] )med\b\.?(?=[ ,][a-z(])", "medium", "मध्यम"),
    rule(r"(?<=\d)[ -]?yrs?\.?[ -]old\b", " year old", " वर्षीय"),
    rule(r"(?<!\w)#(?=[A-Z]{1,4}\d*-[A-Z\d]*\d)", "number ", "नंबर "),
    rule(r"\b[Ee]xp\.?:? (?=\d{1,2}[/-]\d|(?:\d{1,2} )?[A-Z][a-z]{2})", "expires ", "समाप्ति "),
    rule(r"\bExp\.? (?=\d{5}\b)", "Express ", "एक्सप्रेस "),
    rule(
        r"(?<![\w'’.-])ss?\.(?=\d{1,3}[A-Z]?\b)|(?<![\w'’.-])s\.? ?(?=\d{1,3}[A-Z]?\(\d)",
        "section ",
        "धारा ",
    ),
    rule(r"\b[Ss](?:vc|erv)\.? (?:chg|ch?rge?|charge)\b\.?", "service charge", "सेवा शुल्क"),
    rule(r"\b[Dd]t\.(?= ?\d)", "dated", "दिनांक"),
    rule(r"\b[Dd]t\.(?= (?:for|of)\b)", "date", "तारीख"),
    rule(
        r"\bRs\.? (?=(?:One|Two|Three|Four|Five|Six|Seven|Eight|Nine|Ten|Eleven|Twelve|Fifteen|Twenty|Thirty|Forty|Fifty|Sixty|Seventy|Eighty|Ninety)\b)",
        "Rupees ",
        "रुपये ",
    ),
    rule(r"\b[Ss]r\.? (?=[Cc]itizen)", "senior ", "वरिष्ठ "),
    rule(r"\b[Pp]h\.? [Nn]o\b\.?", "phone number", "फ़ोन नंबर"),
    rule(
        r"(?P<what>\b(?:[Rr]oll|[Rr]oom|[Pp]hone|[Ss]eat|[Ff]lat|[Hh]ouse|[Oo]rder|[Bb]ill|[Tt]oken|[Aa]ccount|[Mm]obile|[Cc]ontact|[Tt]icket|[Pp]latform|[Vv]ehicle|[Gg]ate|[Pp]lot|[Rr]eg|[Ss]erial|[Tt]rain|[Pp]olicy|[Cc]ase) )no\b\.?(?=:? ?#?\d| (?:is|hai|kya|bhej|do|de|batao|dena)\b)",
        r"\g<what>number",
        r"\g<what>नंबर",
    ),
    rule(r"\bN\. Delhi\b", "New Delhi", "नई दिल्ली"),
    rule(r"\bNgr\b\.?", "Nagar", "नगर"),
    rule(r"(?P<floor>\d(?:st|nd|rd|th) )[Ff]lr?\b\.?", r"\g<floor>floor", r"\g<floor>मंज़िल"),
    rule(r"\b[Ss]vc\.? (?=fee\b)", "service ", "सेवा "),
    rule(r"\bmkt (?=cap\b)", "market ", "मार्केट "),
    rule(r"(?<=\d )dep\b\.?(?=[,;)]|$)", "deposit", "जमा"),
    rule(r"(?<=\d{3}-\d{4}) x ?(?=\d{2,5}(?!\d))", " extension ", " एक्सटेंशन "),
    rule(r"\b[Ww]t\b\.?(?=:? \d)", "weight", "वज़न"),
    rule(r"\b[Hh]t\b\.?(?=:? \d)", "height", "लंबाई"),
    rule(r"\b[Dd]ep\.? (?=[£$€₹] ?\d)", "deposit ", "जमा "),
    rule(r"\b[bB]['’]days?\b", "birthday", "birthday"),
    rule(r"(?<=\d) pts? (?=of [a-z])", " pints ", " पिंट "),
    rule(r"(?P<which>\d(?:st|nd|rd|th) )yr\b\.?", r"\g<which>year", r"\g<which>साल"),
    rule(r"\bS\. ?(?=\d{1,3}[A-Z]? (?:CrPC|IPC|BNS|NI|of the)\b)", "section ", "धारा "),
    rule(r"(?P<which>\d(?:st|nd|rd|th) )sem\b\.?", r"\g<which>semester", r"\g<which>semester"),
    rule(r"(?<=[a-z] )bt\b\.?(?= [A-Z])", "beat", "ने हराया"),
    rule(r"(?<=[a-z] )def\.(?= [A-Z])", "defeated", "ने हराया"),
    rule(r"\b[Mm]ob\b\.?(?=: ?\+?\d)", "mobile", "मोबाइल"),
    rule(r"\b[Tt]el\b\.?(?=:? ?\+?\(?\d[\d -]{2})", "telephone", "टेलीफ़ोन"),
    rule(r"\bPh[-. ](?=(?:\d|I{1,3}V?)(?![\w-]))", "Phase ", "फ़ेज़ "),
    *(rule(rf"\b{short}\. Code\b", f"{word} Code", f"{word} Code") for short, word in _LAWS),
    *(
        rule(rf"\bFed\. R\. {short}\. P\.", *(f"Federal Rule of {word} Procedure",) * 2)
        for short, word in (("Civ", "Civil"), ("Crim", "Criminal"), ("App", "Appellate"))
    ),
    rule(r"\bFed\. R\. Evid\.", "Federal Rule of Evidence", "Federal Rule of Evidence"),
    rule(r"\bCal\. (?=[A-Z]\w+\.? (?:& \w+\.? )?Code\b)", "California ", "California "),
    rule(
        r"(?P<amount>[₹£] ?\d[\d,.]{0,12}(?:/-)?[kK]?) p\.?m\.?(?!\w)",
        r"\g<amount> per month",
        r"\g<amount> प्रति माह",
    ),
    rule(r"(?:(?<=^)|(?<=[;,:(] )|(?<=\())\?(?=[A-Z])", "query ", "query "),
    rule(r"\b[hH]x\b", "history", "history"),
    rule(r"\b[dD]x\b(?=:| of\b)", "diagnosis", "diagnosis"),
    rule(r"\b[tT]x\b(?=:| (?:of|for|with)\b)", "treatment", "treatment"),
    rule(r"\b(?P<size>[Dd])ims\b\.?(?=:? \d)", r"\g<size>imensions", "आयाम"),
    rule(r"\b[Tt]ab\.(?= [A-Z][a-z]+ \d)", "tablet", "टैबलेट"),
    rule(r"\b[Cc]ap\.(?= [A-Z][a-z]+ \d)", "capsule", "कैप्सूल"),
    rule(r"\bw\.e\.f\.", "with effect from", "से प्रभावी"),
    rule(r"\bw\.r\.t\.", "with respect to", "के संदर्भ में"),
    rule(r"\bviz\.", "namely", "यानी"),
    rule(r"\bOpp\b\.?(?= (?:to )?[A-Z])", "Opposite", "सामने"),
    rule(r"(?<!\w)(?:[Dd]ep)\b\.?(?= (?:[A-Z]\w*,? ){1,3}\d{1,2}[:.]\d\d)", "departs", "प्रस्थान"),
    rule(r"(?<!\w)(?:[Aa]rr)\b\.?(?= (?:[A-Z]\w*,? ){1,3}\d{1,2}[:.]\d\d)", "arrives", "आगमन"),
    rule(
        r"\bSec\b[.-]? ?(?=\d{1,3}[A-Z]?,? (?:Noida|Gurgaon|Gurugram|Chandigarh|Dwarka|Rohini|Faridabad|Panchkula|Mohali|Vashi|Nerul)\b)",
        "Sector ",
        "सेक्टर ",
    ),
    rule(r"\bInd\. Est\b\.?", "Industrial Estate", "इंडस्ट्रियल एस्टेट"),
    rule(r"\bR v\.? (?=[A-Z])", "R versus ", "R बनाम "),
    rule(r"\b4ever\b", "forever", "forever"),
    rule(
        r"\bPub\. L\. (?:No\. )?(?P<one>\d{1,3})-(?=\d)",
        r"Public Law \g<one> dash ",
        r"Public Law \g<one> dash ",
    ),
    rule(r"(?<!\w)(?P<whole>YoY|yoy)(?!\w)", "year over year", "साल दर साल"),
    rule(r"(?<!\w)QoQ(?!\w)", "quarter over quarter", "तिमाही दर तिमाही"),
    rule(r"(?<!\w)MoM(?!\w)", "month over month", "महीने दर महीने"),
)
_STATE = re.compile(
    rf"(?:(?<=[a-z], )|(?<=[DR]-))(?P<state>{'|'.join(names.SHORTENED)})\.(?=[,)]|\s|$)"
)
"""American states after a town or a party: ``St. Paul, Minn.``"""
ALL = names.STREETS + names.TITLES + _OTHERS
_SOME = re.compile(
    r"\.(?!\s*\Z)|[\u0900-\u097f]\.|\u0970|[/#¶?]|[a-z]['’][tnlds]|\b(?:[DMSJ]r|Mrs|Sts?|Mt|vs?|etc|Rd|Ave|Blvd|Ln|Hwy|Pkwy|Sq|Pl|Ct|Ter|Cres|Gdns|Cir|Trl"
    r"|prn|[YQMyqm]o[YQMyqm]|[hHdDtT]x|Ngr|[Nn][ro]|[Pp]h|[Ss]vc|[Ss]erv|mkt|inc|bt|Opp|Sec|[Ss]r|[Mm]ob|[Tt]el)\b"
)
"""What a text without figures needs to have any of these short forms."""
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
_PHONE = re.compile(r"\.?:? ?\+?\(?\d{3}")
"""What follows the short form of a telephone; a figure after Hindi ``tel`` is of oil."""
_GOES_ON = re.compile(r"[,:;)]|\s[^\sA-Z]")


def written_out(text: str, locale: Locale) -> str:
    """Write the abbreviations of ``text`` in full."""
    if any(map(str.isdecimal, text)) or _SOME.search(text):
        text = apply(ALL, text, locale)
        if not text.isascii():
            text = apply(DEVANAGARI, text, locale)
    if "., " in text or ".)" in text or text.endswith("."):
        text = _STATE.sub(_state, text)
    text = _PLAIN.sub(lambda match: _meant(match, locale), text)
    return _DOTTED.sub(lambda match: _meant(match, locale), text) if "." in text else text


def _state(match: re.Match[str]) -> str:
    ends = "" if match.string[match.end() :].strip() else "."
    return names.SHORTENED[match["state"]] + ends


def _meant(match: re.Match[str], locale: Locale) -> str:
    short = match["short"]
    if not (short.islower() or short.istitle() or short.isupper()) or short in (
        "P",
        "S",
        "C",
        "EA",
        "PP",
    ):
        return match[0]
    if short == "tel" and locale.is_hindi and not _PHONE.match(match.string, match.end()):
        return match[0]
    if short.isupper() and not short.isalpha():
        return match[0]
    for meaning in MEANINGS.get(short.capitalize() if short.isupper() else short) or MEANINGS.get(
        short.lower(), ()
    ):
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
