"""The table of abbreviations: which of them end no sentence, and the words that they stand for.

Sentences are split and abbreviations are written out by the same rows. Titles and streets, whose
meaning depends on the names beside them, have rules of their own (speech/text/normalise/abbreviations.py).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import Enum

from speech.text import short_forms

SHIELD = "\ue0f0"
"""Stands for a dot that ends no sentence. Private use: sentencex takes U+2024 for a full stop."""


class Place(Enum):
    """Where an abbreviation with a point stands for its words."""

    NUMBER = "number"
    """Before a figure, a Roman numeral or a single letter; its point ends no sentence there."""
    ORDINAL = "ordinal"
    """After an ordinal number (``2nd fl.``)."""
    WORD = "word"
    """Anywhere; its point may also end the sentence."""
    INSIDE = "inside"
    """Where the sentence goes on in lower case, because at its end it may be a word (``pop.``)."""
    PLAIN = "plain"
    """Anywhere, also without a point (``qty``)."""
    TITLE = "title"
    """Before a capital letter; its point ends no sentence there."""
    OF = "of"
    """Before ``of`` and a capital letter (``Min. of Finance``)."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """The words of an abbreviation at one kind of place."""

    place: Place
    english: str
    hindi: str


_ROWS: tuple[tuple[Place, str, str, str], ...] = (
    # place, spellings (a capital first letter is understood, if it has no line), English, Hindi
    (Place.NUMBER, "no nr", "number", "नंबर"),
    (Place.NUMBER, "nos", "numbers", "नंबर"),
    (Place.NUMBER, "fig figs", "figure", "चित्र"),
    (Place.NUMBER, "vol vols", "volume", "खंड"),
    (Place.NUMBER, "ch chap", "chapter", "अध्याय"),
    (Place.NUMBER, "sec s", "section", "धारा"),
    (Place.NUMBER, "secs ss", "sections", "धारा"),
    (Place.NUMBER, "art", "article", "अनुच्छेद"),
    (Place.NUMBER, "arts", "articles", "अनुच्छेद"),
    (Place.NUMBER, "cl", "clause", "खंड"),
    (Place.NUMBER, "para", "paragraph", "पैरा"),
    (Place.NUMBER, "paras", "paragraphs", "पैरा"),
    (Place.NUMBER, "reg", "regulation", "विनियम"),
    (Place.NUMBER, "regs", "regulations", "विनियम"),
    (Place.NUMBER, "eq", "equation", "समीकरण"),
    (Place.NUMBER, "p", "page", "पृष्ठ"),
    (Place.NUMBER, "pp pgs", "pages", "पृष्ठ"),
    (Place.NUMBER, "apt", "apartment", "अपार्टमेंट"),
    (Place.NUMBER, "ste", "suite", "सुइट"),
    (Place.NUMBER, "rm", "room", "कमरा"),
    (Place.NUMBER, "ext extn", "extension", "एक्सटेंशन"),
    (Place.NUMBER, "rte rt", "Route", "रूट"),
    (Place.NUMBER, "hwy", "Highway", "हाईवे"),
    (Place.NUMBER, "ex", "exhibit", "प्रदर्श"),
    (Place.NUMBER, "exs", "exhibits", "प्रदर्श"),
    (Place.NUMBER, "tbl", "table", "तालिका"),
    (Place.NUMBER, "pt", "part", "भाग"),
    (Place.NUMBER, "bk", "book", "पुस्तक"),
    (Place.NUMBER, "blk", "block", "ब्लॉक"),
    (Place.NUMBER, "wk", "week", "सप्ताह"),
    (Place.NUMBER, "sched sch", "schedule", "अनुसूची"),
    (Place.NUMBER, "ca c", "circa", "लगभग"),
    (Place.NUMBER, "ver", "version", "वर्ज़न"),
    (Place.NUMBER, "ques", "question", "प्रश्न"),
    (Place.NUMBER, "std", "standard", "कक्षा"),
    (Place.NUMBER, "dkt", "docket", "डॉकेट"),
    (Place.NUMBER, "vit", "vitamin", "विटामिन"),
    (Place.NUMBER, "tel", "telephone", "टेलीफ़ोन"),
    (Place.NUMBER, "fl flr", "floor", "मंज़िल"),
    (Place.NUMBER, "dep dpt", "departs", "प्रस्थान"),
    (Place.NUMBER, "arr", "arrives", "आगमन"),
    (Place.NUMBER, "plat", "platform", "प्लेटफ़ॉर्म"),
    (Place.NUMBER, "Cat", "category", "श्रेणी"),
    (Place.ORDINAL, "fl flr", "floor", "मंज़िल"),
    (Place.ORDINAL, "std", "standard", "कक्षा"),
    (Place.ORDINAL, "ed edn", "edition", "संस्करण"),
    (Place.ORDINAL, "cir", "circuit", "सर्किट"),
    (Place.ORDINAL, "amend", "amendment", "संशोधन"),
    (Place.ORDINAL, "anniv", "anniversary", "वर्षगाँठ"),
    (Place.PLAIN, "approx", "approximately", "लगभग"),
    (Place.PLAIN, "qty", "quantity", "मात्रा"),
    (Place.PLAIN, "amt", "amount", "राशि"),
    (Place.PLAIN, "acct", "account", "खाता"),
    (Place.PLAIN, "accts", "accounts", "खाते"),
    (Place.PLAIN, "dept", "department", "विभाग"),
    (Place.PLAIN, "depts", "departments", "विभाग"),
    (Place.PLAIN, "govt", "government", "सरकार"),
    (Place.PLAIN, "govts", "governments", "सरकारें"),
    (Place.PLAIN, "bldg", "building", "बिल्डिंग"),
    (Place.PLAIN, "bldgs", "buildings", "बिल्डिंग"),
    (Place.PLAIN, "mgmt", "management", "प्रबंधन"),
    (Place.PLAIN, "mgr", "manager", "मैनेजर"),
    (Place.PLAIN, "mgrs", "managers", "मैनेजर"),
    (Place.PLAIN, "avg", "average", "औसत"),
    (Place.PLAIN, "misc", "miscellaneous", "विविध"),
    (Place.PLAIN, "incl", "including", "सहित"),
    (Place.PLAIN, "excl", "excluding", "छोड़कर"),
    (Place.PLAIN, "attn", "attention", "ध्यान दें"),
    (Place.PLAIN, "assn assoc", "association", "एसोसिएशन"),
    (Place.PLAIN, "asst", "assistant", "सहायक"),
    (Place.PLAIN, "intl", "international", "अंतरराष्ट्रीय"),
    (Place.PLAIN, "natl", "national", "राष्ट्रीय"),
    (Place.PLAIN, "pvt", "private", "प्राइवेट"),
    (Place.PLAIN, "mfg", "manufacturing", "विनिर्माण"),
    (Place.PLAIN, "mths mnths", "months", "महीने"),
    (Place.PLAIN, "yrs", "years", "साल"),
    (Place.PLAIN, "wks", "weeks", "हफ़्ते"),
    (Place.PLAIN, "hrs", "hours", "घंटे"),
    (Place.PLAIN, "mins", "minutes", "मिनट"),
    (Place.PLAIN, "pkg", "package", "पैकेज"),
    (Place.PLAIN, "pkgs", "packages", "पैकेज"),
    (Place.PLAIN, "wkts", "wickets", "विकेट"),
    (Place.PLAIN, "hols", "holidays", "छुट्टियाँ"),
    (Place.PLAIN, "ppl", "people", "लोग"),
    (Place.PLAIN, "pts", "points", "अंक"),
    (Place.PLAIN, "apts", "apartments", "अपार्टमेंट"),
    (Place.PLAIN, "grp", "group", "group"),
    (Place.PLAIN, "grps", "groups", "groups"),
    (Place.PLAIN, "appt", "appointment", "अपॉइंटमेंट"),
    (Place.PLAIN, "appts", "appointments", "अपॉइंटमेंट"),
    (Place.PLAIN, "accum", "accumulation", "जमाव"),
    (Place.PLAIN, "precip", "precipitation", "वर्षा"),
    (Place.PLAIN, "qtrs", "quarters", "तिमाही"),
    (Place.PLAIN, "hwys", "highways", "हाईवे"),
    (Place.PLAIN, "tmw", "tomorrow", "tomorrow"),
    (Place.PLAIN, "ystd", "yesterday", "yesterday"),
    (Place.PLAIN, "wknd", "weekend", "weekend"),
    (Place.PLAIN, "pymt", "payment", "भुगतान"),
    (Place.PLAIN, "pymts", "payments", "भुगतान"),
    (Place.WORD, "conf", "confirmation", "पुष्टि"),
    (Place.WORD, "rem", "remaining", "शेष"),
    (Place.NUMBER, "gm", "game", "गेम"),
    (Place.NUMBER, "amend", "amendment", "संशोधन"),
    (Place.WORD, "vis", "visibility", "दृश्यता"),
    (Place.WORD, "mkt", "market", "मार्केट"),
    (Place.WORD, "soc", "society", "सोसाइटी"),
    (Place.NUMBER, "flt", "flight", "फ़्लाइट"),
    (Place.WORD, "inj", "injection", "इंजेक्शन"),
    (Place.WORD, "susp", "suspension", "suspension"),
    (Place.WORD, "bilat", "bilateral", "bilateral"),
    (Place.WORD, "prin", "principal", "मूलधन"),
    (Place.WORD, "wt", "weight", "वज़न"),
    (Place.WORD, "ht", "height", "ऊँचाई"),
    (Place.WORD, "dia", "diameter", "व्यास"),
    (Place.WORD, "batt", "battery", "बैटरी"),
    (Place.WORD, "req", "required", "आवश्यक"),
    (Place.WORD, "elev", "elevation", "ऊँचाई"),
    (Place.PLAIN, "recd", "received", "प्राप्त"),
    (Place.PLAIN, "reqd", "required", "आवश्यक"),
    (Place.WORD, "resp", "respectively", "क्रमशः"),
    # -- messages
    (Place.PLAIN, "pls plz", "please", "please"),
    (Place.PLAIN, "thx", "thanks", "thanks"),
    (Place.PLAIN, "msg", "message", "message"),
    (Place.PLAIN, "mtg", "meeting", "meeting"),
    (Place.PLAIN, "tmrw", "tomorrow", "tomorrow"),
    (Place.PLAIN, "bday", "birthday", "birthday"),
    (Place.PLAIN, "b4", "before", "before"),
    (Place.PLAIN, "gr8", "great", "great"),
    (Place.PLAIN, "l8r", "later", "later"),
    (Place.PLAIN, "2nite", "tonight", "tonight"),
    (Place.PLAIN, "2day", "today", "today"),
    (Place.PLAIN, "2moro", "tomorrow", "tomorrow"),
    (Place.PLAIN, "some1", "someone", "someone"),
    (Place.PLAIN, "any1", "anyone", "anyone"),
    (Place.PLAIN, "every1", "everyone", "everyone"),
    (Place.WORD, "univ", "University", "विश्वविद्यालय"),
    (Place.PLAIN, "utd", "United", "यूनाइटेड"),
    (Place.WORD, "Inc", "Incorporated", "इनकॉर्पोरेटेड"),
    (Place.WORD, "inc", "including", "सहित"),
    (Place.WORD, "ltd", "Limited", "लिमिटेड"),
    (Place.WORD, "corp", "Corporation", "कॉर्पोरेशन"),
    (Place.WORD, "bros", "Brothers", "ब्रदर्स"),
    (Place.WORD, "max", "maximum", "अधिकतम"),
    (Place.PLAIN, "ea", "each", "प्रत्येक"),
    (Place.WORD, "lg", "large", "बड़ा"),
    (Place.WORD, "sm", "small", "छोटा"),
    (Place.WORD, "exc", "except", "छोड़कर"),
    (Place.WORD, "encl", "enclosed", "संलग्न"),
    (Place.WORD, "org", "organization", "संगठन"),
    (Place.WORD, "orgs", "organizations", "संगठन"),
    (Place.WORD, "addl", "additional", "अतिरिक्त"),
    (Place.WORD, "contd", "continued", "जारी"),
    (Place.WORD, "cont", "continued", "जारी"),
    (Place.WORD, "temps", "temperatures", "तापमान"),
    (Place.WORD, "esp", "especially", "ख़ासकर"),
    (Place.WORD, "usu", "usually", "आम तौर पर"),
    (Place.WORD, "orig", "originally", "मूल रूप से"),
    (Place.WORD, "prev", "previous", "पिछला"),
    (Place.WORD, "hosp", "hospital", "अस्पताल"),
    (Place.PLAIN, "stn", "station", "स्टेशन"),
    (Place.WORD, "jct", "junction", "जंक्शन"),
    (Place.WORD, "rly", "railway", "रेलवे"),
    (Place.WORD, "inst", "institute", "संस्थान"),
    (Place.WORD, "vols", "volumes", "खंड"),
    (Place.INSIDE, "temp", "temperature", "तापमान"),
    (Place.INSIDE, "pop", "population", "जनसंख्या"),
    (Place.INSIDE, "Max", "maximum", "अधिकतम"),
    (Place.INSIDE, "min", "minimum", "न्यूनतम"),
    (Place.INSIDE, "wk", "week", "सप्ताह"),
    (Place.INSIDE, "tel", "telephone", "टेलीफ़ोन"),
    (Place.INSIDE, "prob", "probably", "शायद"),
    (Place.INSIDE, "ref", "reference", "संदर्भ"),
    (Place.INSIDE, "reg", "registration", "पंजीकरण"),
    (Place.INSIDE, "bal", "balance", "शेष"),
    (Place.INSIDE, "div", "dividend", "लाभांश"),
    (Place.INSIDE, "avail", "available", "उपलब्ध"),
    (Place.INSIDE, "est", "estimated", "अनुमानित"),
)


_OWN = ("Max", "Inc", "Cat")
"""Spellings with a capital that have other words than those without: Max is a name too."""


def _meanings() -> dict[str, tuple[Meaning, ...]]:
    found: defaultdict[str, list[Meaning]] = defaultdict(list)
    for place, spellings, english, hindi in _ROWS:
        for short in spellings.split():
            found[short].append(Meaning(place, english, hindi))
    for named, row in short_forms.ROWS.items():
        for each in row.split():
            short, _, underscored = each.partition("=")
            words = underscored.replace("_", " ")
            # A number, ``of`` or a name beside it says more than that the sentence goes on.
            at = len(found[short]) if named in ("plain", "word", "inside") else 0
            found[short].insert(at, Meaning(Place(named), words, words))
    for short in [each for each in found if each[0].isupper() and each not in _OWN]:
        found[short] += found.get(short.lower(), [])
    return {short: tuple(meanings) for short, meanings in found.items()}


MEANINGS = _meanings()
"""By spelling, mostly in lower case; the first meaning whose place fits counts."""
_NUMBERED = (
    "apt rm ste fig vol hwy rte pp ext Sec Art Sch Para dep arr flt wk para paras ss cl "
    "Gr Gp gp Yr Ep Eq Ch Ln Lv lvl Pg pg Blk blk Twr Qn eqn Thm Col Pkt Inv Att"
)
WITHOUT_POINT = tuple(_NUMBERED.split())
"""Abbreviations that are numbered also without a point: ``rm 5``."""


def spellings(*places: Place) -> tuple[str, ...]:
    """The spellings at these places, each also with a capital first letter."""
    shorts = [
        short
        for short, meanings in MEANINGS.items()
        if any(meaning.place in places for meaning in meanings)
    ]
    return tuple(sorted({*shorts, *map(str.capitalize, shorts)}))
