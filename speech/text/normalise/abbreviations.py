"""Writes out titles, streets and other abbreviations, by the words beside them."""

# ruff: noqa: RUF001  # apostrophes of both kinds are meant

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from speech.text import short_forms
from speech.text.kinds import subjects
from speech.text.kinds.devanagari import DEVANAGARI
from speech.text.normalise import expressions, names
from speech.text.normalise.locale import Locale
from speech.text.normalise.rules import apply
from speech.text.normalise.units import UNITS
from speech.text.shortened import MEANINGS, WITHOUT_POINT, Place, spellings

_STATE = re.compile(r"(?<!\w)(?P<state>[A-Z][a-z]{1,5})\.(?=[,;:)]|\s|$)")
_BEFORE_STATE = re.compile(r"(?:[a-z], |[DR]-|\([DRI] )\Z")
_BEFORE_ONLY_STATE = re.compile(r"(?:\b(?:of|in|from|to|near|across|North|South)|\b[NS]\.) \Z")
_CAPITAL_CITY = re.compile(r",? D\.?C")
"""American states after a town or a party: ``St. Paul, Minn.``"""
ALL = names.STREETS + names.TITLES + expressions.OTHERS
_SOME = re.compile(
    r"\.(?!\s*\Z)|[\u0900-\u097f]\.|\u0970|[/#¶?]|[a-zA-Z]['’][tnldspbchm]|\b(?:[DMSJ]r|Mrs|Sts?|Mt|vs?|etc|Rd|Ave|Blvd|Ln|Hwy|Pkwy|Sq|Pl|Ct|Ter|Cres|Gdns|Cir|Trl"
    r"|prn|[YQMyqm]o[YQMyqm]|[hHdDtT]x|Ngr|[Nn][ro]|[Pp]h|[Ss]vc|[Ss]erv|mkt|inc|bt|Opp|Sec|[Ss]r|[Mm]ob|[Tt]el)\b"
)
"""What a text without figures needs to have any of these short forms."""
_POINTLESS = (*spellings(Place.PLAIN), *WITHOUT_POINT, *map(str.capitalize, WITHOUT_POINT))


def _by_first_letter(words: Iterable[str]) -> str:
    """An expression of these words, which fails at the first letter of most others."""
    after: defaultdict[str, set[str]] = defaultdict(set)
    for word in words:
        after[word[0]].add(word[1:])
    return "|".join(
        f"{first}(?:{'|'.join(sorted(rests, key=lambda rest: (-len(rest), rest)))})"
        for first, rests in sorted(after.items())
    )


_PLAIN = re.compile(
    rf"(?<![\w.'’@#/_-])(?P<short>{_by_first_letter({*_POINTLESS, *map(str.upper, _POINTLESS)})})(?![\w'’(/@_-]|\.\w)(?P<point>\.?)"
)
_DOTTED = re.compile(r"(?<![\w.'’@/-])(?P<short>[A-Za-z]{1,7}+)(?P<point>\.)(?![\w.@])")
_AFTER_FIGURE = re.compile(r"[\d½¼¾]\)? ?\Z")
_AFTER_ORDINAL = re.compile(r"\d(?:st|nd|rd|th) \Z")
_BEFORE_NUMBER = re.compile(
    r"\s?(?:[\d#]|(?:[IVX]{2,4}|[VX]|[A-H]\d{0,2})\b|I(?=[,.;:)]|\s*$)|[A-Z]{1,5}[-/]?\d|[ivx]{2,6}\b)|\.?\d"
)
_PHONE = re.compile(r"\.?:? ?\+?\(?\d{3}")
"""What follows the short form of a telephone; a figure after Hindi ``tel`` is of oil."""
_GOES_ON = re.compile(r"[,:;)]|\s[^\sA-Z]")
_CAPITAL = re.compile(r"\s?[A-Z]")
_OF = re.compile(r" (?:of|for) [A-Z]")
_OTHER_WORDS = "P S C EA PP MSG FWD HSE PD ADM CPL GR LV EP DTD YR GP PG LN ETA"
_FORMS = "CHQ CHQS PMT PMTS RCPT REGD STMT BDRM RPT SVC"
_NO_SHORT_FORM = frozenset(
    (
        *_OTHER_WORDS.split(),
        *(
            short.upper()
            for short in spellings(Place.PLAIN, Place.WORD, Place.INSIDE)
            if len(short) < 5 and short.lower() in short_forms.LATER
        ),
    )
) - frozenset(_FORMS.split())
"""Capitals that are other words, or letters that are said one by one."""


def written_out(text: str, locale: Locale) -> str:
    """Write the abbreviations of ``text`` in full."""
    if any(map(str.isdecimal, text)) or _SOME.search(text):
        text = apply(subjects.of(locale.region), text, locale)
        text = apply(ALL, text, locale)
        if not text.isascii():
            text = apply(DEVANAGARI, text, locale)
    if "." in text:
        text = _STATE.sub(_state, text)
    text = _PLAIN.sub(lambda match: _meant(match, locale), text)
    return _DOTTED.sub(lambda match: _meant(match, locale), text) if "." in text else text


def _state(match: re.Match[str]) -> str:
    state, text, start = match["state"], match.string, match.start()
    if state not in names.SHORTENED:
        return match[0]
    least = max(0, start - 8)
    is_meant = (
        _BEFORE_STATE.search(text, least, start)
        or (state in names.ONLY_STATES and _BEFORE_ONLY_STATE.search(text, least, start))
        or (state == "Wash" and _CAPITAL_CITY.match(text, match.end()))
    )
    if not is_meant:
        return match[0]
    return names.SHORTENED[state] + ("" if text[match.end() :].strip() else ".")


def _meant(match: re.Match[str], locale: Locale) -> str:
    short = match["short"]
    if not (short.islower() or short.istitle() or short.isupper()) or short in _NO_SHORT_FORM:
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
    if place in (Place.TITLE, Place.OF):
        follows = _CAPITAL if place is Place.TITLE else _OF
        return match["short"].istitle() and follows.match(text, end) is not None
    if place is Place.ORDINAL:
        return _AFTER_ORDINAL.search(text, max(0, start - 6), start) is not None
    if place is Place.INSIDE:
        is_plain = not counted and not match["short"].isupper()
        return is_plain and _GOES_ON.match(text, end) is not None
    # After a figure it is a unit, which is written out in the number of the figure.
    return not (counted and (match["short"] in UNITS or match[0] in UNITS))
