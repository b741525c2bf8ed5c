"""Writes out the numbers of flights: ``UA 1542``, ``AI 302``, ``6E-2341``."""

from __future__ import annotations

import re

from speech.text.normalise import numbers
from speech.text.normalise.locale import Locale

_AIRLINES = (
    "6E|9W|A3|AA|AF|AV|AZ|B6|BA|BR|CX|DL|EK|ET|EW|EY|F9|FI|FR|FZ|G8|GF|HA|I5|IB|IX|JL|KE|KL|KQ|KU|LA|LH|LO|LX|LY|MH|MU|NK|NZ|"
    "OZ|QF|QP|QR|RJ|SG|SK|SN|SQ|SU|SV|TG|TK|TP|U2|UA|UL|VN|VS|VY|W6|WN|WS|WY|ZE"
)
_OTHERS = "AC|AI|AM|AS|AY|BG|CA|CI|CM|CZ|EI|GA|HU|MS|NH|OS|PK|PR|SA|UK|VA"
"""Airlines whose letters mean something else as often: a state, a road, artificial intelligence."""
_NUMBER = re.compile(
    rf"(?<![\w$€£₹.,/-])(?:(?P<code>{_AIRLINES})|(?P<other>{_OTHERS}))[ -]?(?P<figure>[1-9]\d{{2,3}})(?![\w%/]|[.,:-]\d| ?(?:mg|ml|kg|km|mm|%))"
    r"(?P<leads>(?= (?:to|from|ex|via) [A-Z]| (?:is |was |has been )?(?:delayed|cancelled|canceled|boarding|diverted|departs|departed|arrives|landed|lands)\b))?"
)
_FIGURE = re.compile(r"[1-9]\d\d")
_FLIGHT = re.compile(
    r"\b(?:flights?|fly|flies|flying|flew|flown|airlines?|airways|airport|boarding|depart(?:s|ed|ing|ures?)|arriv(?:es?|ed|als?)|land(?:s|ed|ing)?|"
    r"take-?off|takes off|took off|layover|stopover|runway|nonstop|baggage|indigo|vistara|lufthansa|emirates|ryanair|delayed|cancell?ed|pnr)\b"
    r"|फ़्लाइट|फ्लाइट|उड़ान|विमान|एयरपोर्ट|हवाई",
    re.IGNORECASE,
)
_BEFORE = re.compile(
    r"(?:\bflights?(?: (?:no\.?|number|is))?[:,]?|\b(?:air india|all nippon|air canada|alaska|vistara)[:,]?|फ़्लाइट|फ्लाइट|उड़ान(?: संख्या)?) ?\(?\Z",
    re.IGNORECASE,
)


def written_out(text: str, locale: Locale) -> str:
    """Write the numbers of flights by letters and as they are named, where a flight is meant."""
    if not (_FIGURE.search(text) and _NUMBER.search(text)):
        return text
    meant = _FLIGHT.search(text) is not None
    return _NUMBER.sub(lambda match: _flight(match, locale, meant=meant), text)


def _flight(match: re.Match[str], locale: Locale, *, meant: bool) -> str:
    """A number that leads to a place is that of a flight; letters with other meanings need more."""
    leads = match["leads"] is not None
    before = match.string[max(0, match.start() - 24) : match.start()]
    if not (meant or (leads and match["code"])):
        return match[0]
    if match["other"] and not leads and not _BEFORE.search(before):
        return match[0]
    figure = match["figure"]
    if locale.is_hindi:
        said = numbers.digits(figure, locale)
    elif len(figure) == 4:
        said = numbers.year(int(figure), locale)
    else:
        said = numbers.named(int(figure), locale)
    return f"{_code(match['code'] or match['other'], locale)} {said}"


def _code(code: str, locale: Locale) -> str:
    """Two letters, which engines spell, unless they are a word or a number."""
    if code.isalpha():
        return {"AS": "A, S", "IX": "I X"}.get(code, code)
    said = " ".join(numbers.digit(one, locale) if one.isdecimal() else one for one in code)
    return said.replace("A ", "A-")
