"""Figures with a unit, and the short forms of thousand, million and billion."""

from __future__ import annotations

import re

from speech.text.language import WORD_END
from speech.text.normalise import numbers
from speech.text.normalise.locale import Locale, Region
from speech.text.normalise.numbers import FIGURE, START
from speech.text.normalise.units import (
    FOOT,
    INCH,
    PER,
    UNIT,
    Nouns,
    in_quotation,
    nouns_of,
    per,
    powered,
)

# ruff: noqa: RUF001  # signs that look like others are the point


_SIGN = r"(?P<minus>(?<![\w)])(?:[-−]|(?<!\S )[-−]\s))?"
_AMOUNT = rf"(?P<first>{FIGURE})(?:\s?(?:[-–—]|to|से)\s?(?P<last>{FIGURE}))?+"
_SCALE = (
    r"(?P<scale> (?:thousand|million|billion|trillion|lakh|crore|हज़ार|हजार|लाख|करोड़|अरब)(?= ))?+"
)
_MEASURE = re.compile(
    rf"(?<![\w.$€£₹-])(?<!\d,){_SIGN}{_AMOUNT}{_SCALE}(?:\s?|(?P<joined>-))(?P<unit>{UNIT})(?:\^?(?P<power>[23]))?{WORD_END}{PER}(?!['’]\w)"
)
_SCIENTIFIC = re.compile(
    rf"(?<![\w.,$€£₹^])(?:(?P<first>{FIGURE})(?:\s?[×x*·]\s?10\^(?P<power>[-−]?\d{{1,3}})|(?:e|(?<=\.\d)E|(?<=\d\d)E(?=[-+]))\+?(?P<ten>[-−]?\d{{1,3}}))"
    rf"|10\^(?P<bare>[-−]?\d{{1,3}}))(?![\w.]\w|\w)(?:\s?(?P<unit>{UNIT}){WORD_END})?{PER}"
)
"""A figure with a power of ten, and its unit."""
_PER_UNIT = re.compile(rf"(?<=\bper )(?P<unit>(?=\w\w)(?:{UNIT})){WORD_END}(?!\.\w)")
_TIMES_MEASURE = re.compile(
    rf"(?<=[\d\"])\s?[x×]\s?(?={FIGURE}(?:\s?[x×]\s?{FIGURE})?(?:\s?(?:{UNIT}|in\.?){WORD_END}|\"|\s?in\.)|{FIGURE}\s?[x×]\s?{FIGURE})"
)
_STONE = re.compile(
    r"(?<![\w.,])(?P<stone>\d{1,2})\s?st\.?\s?(?P<pounds>\d{1,2})\s?lbs?(?!\w)|(?<![\w.,])(?P<first>\d{1,2})\s?st (?P<last>\d{1,2})(?![\w.,%])|(?<![\w.,])(?P<only>\d{1,2}) st\b\.?|(?<![\w.,])(?P<bare>1[0-9]|[4-9])st\b"
)
_HEIGHT = re.compile(
    r"(?<![\w.,])(?P<feet>\d{1,2})\s?(?:['’′]|ft\.?)\s?(?P<inches>\d{1,2})(?:\"|”|″|''|’’|\s?in(?:ches|\.)?(?!\w))"
    r"|(?<![\w.,'’])(?P<foot>[4-7])['’](?P<left>\d|1[01])(?![\w'’\"”])"
)
_FEET = re.compile(
    rf"{START}(?P<first>{FIGURE})\s?(?:′|['’](?=\s?(?:[x×]\s?\d|(?:by|to|wide|tall|long|high|deep)\b))|(?<=[x×]\d)['’]|(?<=[x×]\d\d)['’])"
)
_ROOM = re.compile(rf"{START}(?P<one>{FIGURE})\s?['’′]\s?(?:[x×]|by)\s?(?P<two>{FIGURE})\s?['’′]")
_INCHES = re.compile(
    rf"{START}(?P<first>{FIGURE})(?:\s?″|(?P<mark>[\"”])"
    rf"|\s?in\.(?=\s[a-z,]|[,;:)]|/(?:hr|h|day|min|yr|ft)\b)|(?P<stop>\s?in\.)(?=\s*$|\s+(?!Hg)[A-Z])|in{WORD_END}|\s?in(?=\s(?:x|by|wide|tall|long|high|deep|thick)\b)|-in\.?(?=[\s,)]))"
)
_FOOT_NOUN = re.compile(
    r"(?<![\w.,'’])(?P<feet>\d{1,3})['’′] (?=(?:ceilings?|fences?|walls?|ladders?|ropes?|poles?|boats?|tables?|trees?|boards?|cables?|cords?|hoses?|drop|sections?|lengths?|panels?|gap|doors?|beams?|waves?|putt|trailer|sofa|couch|bed|rug|pool)\b)"
)
"""Feet that a noun follows, which are singular: 8' ceilings."""
_SIDES_IN_FEET = re.compile(
    r"(?<=\d['’′])\s?[x×]\s?(?=\d{1,3}\s?['’′])|(?<=\d['’′]\d[\"”″])\s?[x×]\s?(?=\d)|(?<=\d[\"”″])\s?[x×]\s?(?=\d{1,3}\s?['’′])"
)
_BETWEEN_FEET = re.compile(
    r"(?:(?<=\d['’′])|(?<=\d['’′]\d[\"”″])|(?<=\d['’′]\d\d[\"”″]))\s?[-–—]\s?(?=\d{1,2}['’′])"
)
_CALIBRE = re.compile(r"(?<![\w.])\.(?P<figure>22|25|30|32|35|38|40|44|45|50|357) ?[Cc]al\b\.?")
_SHAPE = re.compile(
    r"\s?(?:$|[x×,.;)]|(?:by|x|wide|tall|long|high|deep|thick|in|and|or|to|at|of|from|is|was|apart|below|above)\b)"
)
"""What follows inches that are counted; before a noun the word is singular."""
_INCH_RANGE = re.compile(
    rf"{START}(?P<first>{FIGURE})\s?[-–—]\s?(?P<last>{FIGURE})(?:\s?(?P<mark>[\"”″])|\s?in\.(?=\s[a-z,(]|[,;:)]))"
)
DEVICE = re.compile(
    r"\.?\)?,? (?:kettle|spoons?|fuse|breaker|circuit|supply|socket|outlet|cable|tins?|cans?|pkg|package|packs?|box|bag|pot|saucepan|pan|dish|bowl|skillet|carton|container|relay|freestyle|backstroke|final|hurdles|jack|battery|bulb|charger|adapter|adaptor|motor|heater|panel|camera|screen|monitor|display|limit|zone|drive|card|"
    r"engine|tank|stick|file|plan|connection|screws?|bolts?|drill|bit|nails?|pipe|hose|lens|film|race|run|walk|radius|bottle|can|jar|journey|flight|ride|trip|delay|film|movie|class|session|meeting|exam|course|warranty|guarantee|contract|lease|mortgage|commute|interview|lecture|workshop|"
    r"video|podcast|episode|window|timeout|nap|rule|limit|deadline|hike|climb|ceiling|ladder|fence|plot|bucket|nails?|bag|sack|jug)\b"
)
"""Nouns that a measure is part of, so that it is singular: a 9 volt battery."""
_LAKHS = re.compile(
    rf"(?<![\w.$€£₹-])(?<!\d,)(?P<figure>{FIGURE})L(?= (?!of\b)(?:[a-z]+ )?(?!(?:bottle|can|pack|jar|tank|container|carton|"
    r"engine|pouche|bucket|cooker|kettle|jug|pot|bag)s\b)(?:[a-z]+s|people|women|men|children|package|salary|loan|bonus|subsidy|prize|fee|deposit|budget|advance|profit|turnover|CTC)\b)"
)
_SAVED = re.compile(
    r"₹|\bRs\b|\brupees?\b|रुपये|\bSIP\b|\bEMI\b|\bCTC\b|\bcr\b|\b[Ss]alary\b|\b[Ll]oan\b|\bpackage\b|\bBHK\b|\bsft\b|\bsq\.? ?ft|\b[Pp]lot\b|\bLPA\b"
)
_LAKHS_SAVED = re.compile(
    rf"(?<![\w.$€£₹-])(?<!\d,)(?P<figure>{FIGURE}) ?L(?=[.,;)+]|$| (?:in|by|nego\w*|onwards|only|cash|loan|all|per|p\.a|ho|hai|ka|ki|tak|a year)\b)"
)
"""Lakhs in a sentence about money; a noun after them may be a liquid."""
_CRORES = re.compile(rf"(?<![\w.$€£₹-])(?<!\d,)(?P<figure>{FIGURE}) ?[cC]r(?![\w.])")
_AMPERES = re.compile(
    rf"{START}(?P<figure>{FIGURE})(?: ?A(?= (?:fuse|breaker|charger|circuit|supply|adapter|adaptor|socket|outlet|current|load|max|cable|battery|motor|plug|wire|relay|main|rating|rated|max|service)s?\b)|(?<=V/\d)A{WORD_END}|(?<=V/\d\.\d)A{WORD_END}|(?<=\.\d) ?A{WORD_END})"
)
_NOT_NOUNS = "hurdles|races|backstroke|breaststroke|butterfly|long|wide|high|tall|deep|away|from|to|and|or|of|in|by|below|above|under|is|was|has|this|race|run|across|as|us|sprint|freestyle|dash"
_SHORT = re.compile(
    rf"(?<![\w.$€£₹-])(?<!\d,)(?P<first>{FIGURE})(?:\s?[-–—]\s?(?P<last>{FIGURE}))?+(?P<magnitude>[kKmMbB]|\s?(?:bn|mn|tn))(?P<more>\+?)"
    rf"(?![\w'’^]|[-.]\w|/(?!(?:mo|month|yr|year|day|week|wk|person|head)\b))(?=(?P<next> (?:[a-z]+ )?(?!(?:{_NOT_NOUNS})\b)(?:[a-z]+s|people|children|women|men|model|parameter)\b)?)(?P<run>(?= (?:run|race|video|TV|resolution|monitor|display|screen|runs|races|streaming)\b))?"
)
_BETWEEN_SHORT = re.compile(r"(?<=\d[kKM])\s?[-–—]\s?(?=\d[\d.,]{0,9}[kKM]\b)")
_RAN = re.compile(
    r"\b(?:ran|run|running|jog|jogged|walk|walked|first|parkrun)(?: an?| the| my)? \Z",
    re.IGNORECASE,
)
"""Words before the distance of a run, which is said "five k"."""
_SHORT_NAMES = {
    "k": ("thousand", "हज़ार"), "m": ("million", "मिलियन"), "b": ("billion", "बिलियन"),
    "bn": ("billion", "बिलियन"), "mn": ("million", "मिलियन"), "tn": ("trillion", "ट्रिलियन"),
}  # fmt: skip


def written_out(text: str, locale: Locale) -> str:
    """Write the measures of ``text`` in words. Pass ``canonical`` figures, after money."""
    if "per " in text:
        text = _PER_UNIT.sub(lambda match: nouns_of(match["unit"])[locale.language].one, text)
    if not any(map(str.isdecimal, text)):
        return text
    if locale.is_indian:
        text = _CRORES.sub(rf"\g<figure> {'करोड़' if locale.is_hindi else 'crore'}", text)
        if _SAVED.search(text):
            text = _LAKHS_SAVED.sub(rf"\g<figure> {'लाख' if locale.is_hindi else 'lakh'}", text)
        text = _LAKHS.sub(rf"\g<figure> {'लाख' if locale.is_hindi else 'lakh'}", text)
    if "^" in text or "e" in text or "E" in text:
        text = _SCIENTIFIC.sub(lambda match: _scientific(match, locale), text)
    text = _AMPERES.sub(rf"\g<figure> {'ऐम्पियर' if locale.is_hindi else 'amp'}", text)
    text = _TIMES_MEASURE.sub(" बाय " if locale.is_hindi else " by ", text)
    text = _BETWEEN_SHORT.sub(" से " if locale.is_hindi else " to ", text)
    text = _SHORT.sub(lambda match: _short(match, locale), text)
    if "'" in text or "′" in text or "’" in text:
        text = _BETWEEN_FEET.sub(" से " if locale.is_hindi else " to ", text)
        text = _SIDES_IN_FEET.sub(" बाय " if locale.is_hindi else " by ", text)
        text = _FOOT_NOUN.sub(lambda match: f"{match['feet']} {FOOT[locale.language].one} ", text)
    if "al" in text and not locale.is_hindi:
        text = _CALIBRE.sub(lambda match: _calibre(match, locale), text)
    text = _HEIGHT.sub(lambda match: _height(match, locale), text)
    if locale.region is Region.GB or "lb" in text:
        text = _STONE.sub(lambda match: _stone(match, locale), text)
    text = _ROOM.sub(lambda match: _room(match, locale), text)
    text = _FEET.sub(lambda match: _counted(match["first"], FOOT, locale), text)
    text = _INCH_RANGE.sub(lambda match: _inch_range(match, locale), text)
    text = _INCHES.sub(lambda match: _inches(match, locale), text)
    return _MEASURE.sub(lambda match: _measure(match, locale), text)


def _counted(figure: str, nouns: Nouns, locale: Locale) -> str:
    return f"{numbers.spoken(figure, locale)} {nouns[locale.language].name(figure)}"


def _height(match: re.Match[str], locale: Locale) -> str:
    if match["foot"]:
        foot, left = (numbers.spoken(match[name], locale) for name in ("foot", "left"))
        return f"{foot} {FOOT[locale.language].one} {left}"
    return f"{_counted(match['feet'], FOOT, locale)} {_counted(match['inches'], INCH, locale)}"


def _calibre(match: re.Match[str], locale: Locale) -> str:
    named = "caliber" if locale.region is Region.US else "calibre"
    return f"{numbers.cardinal(int(match['figure']), locale)} {named}"


def _inch_range(match: re.Match[str], locale: Locale) -> str:
    """A range with the sign of inches, unless the sign closes a quotation."""
    if match["mark"] and in_quotation(match.string[: match.start()]):
        return match[0]
    return f"{_amount(match, locale)} {INCH[locale.language].many}"


def _inches(match: re.Match[str], locale: Locale) -> str:
    if match["mark"] and in_quotation(match.string[: match.start()]):
        return match[0]
    if (match["mark"] or "-" in match[0]) and not _SHAPE.match(match.string, match.end()):
        return f"{numbers.spoken(match['first'], locale)} {INCH[locale.language].one}"
    return _counted(match["first"], INCH, locale) + ("." if match["stop"] else "")


def _room(match: re.Match[str], locale: Locale) -> str:
    by = "बाय" if locale.is_hindi else "by"
    return f"{_counted(match['one'], FOOT, locale)} {by} {_counted(match['two'], FOOT, locale)}"


def _stone(match: re.Match[str], locale: Locale) -> str:
    stone = f"{numbers.spoken(match['stone'] or match['first'] or match['only'] or match['bare'], locale)} stone"
    if match["last"]:
        return f"{stone} {match['last']}"
    return f"{stone} {match['pounds']} lb" if match["pounds"] else stone


def _scientific(match: re.Match[str], locale: Locale) -> str:
    power = match["power"] or match["ten"] or match["bare"]
    below = f"{numbers.minus(locale)} " if power[0] in "-−" else ""
    words = f"{below}{numbers.cardinal(int(power.lstrip('-−')), locale)}"
    ten = numbers.cardinal(10, locale)
    if locale.is_hindi:
        of_ten = {"2": "का वर्ग", "3": "का घन"}.get(power, f"की घात {words}")
        said = f"{ten} {of_ten}"
        said = f"{numbers.spoken(match['first'], locale)} गुणा {said}" if match["first"] else said
    else:
        to_the = {"2": "squared", "3": "cubed"}.get(power, f"to the power of {words}")
        said = f"{ten} {to_the}"
        said = f"{numbers.spoken(match['first'], locale)} times {said}" if match["first"] else said
    unit = f" {nouns_of(match['unit'])[locale.language].many}" if match["unit"] else ""
    return f"{said}{unit}{per(match, locale)}"


def _amount(match: re.Match[str], locale: Locale) -> str:
    said = numbers.spoken(match["first"], locale)
    if match["last"]:
        said += f" {'से' if locale.is_hindi else 'to'} {numbers.spoken(match['last'], locale)}"
    return said


def _measure(match: re.Match[str], locale: Locale) -> str:
    below = f"{numbers.minus(locale)} " if match["minus"] else ""
    noun = nouns_of(match["unit"])[locale.language]
    scale = match["scale"] or ""
    name = noun.many if match["last"] or scale else noun.name(match["first"])
    if match["joined"] or numbers.is_compound(match) or DEVICE.match(match.string, match.end()):
        name = noun.one
    said = f"{below}{_amount(match, locale)}{scale} {powered(name, match['power'], locale)}{per(match, locale)}"
    # The point of a unit at the end of a sentence belongs to the sentence.
    ends = (
        match["unit"].endswith(".") and not match["per"] and not match.string[match.end() :].strip()
    )
    return said + ("." if ends else "")


def _short(match: re.Match[str], locale: Locale) -> str:
    magnitude = match["magnitude"].strip()
    if (
        magnitude in "kK"
        and float(match["first"].replace(",", "")) <= 50
        and _RAN.search(match.string, max(0, match.start() - 10), match.start())
    ):
        return match[0]
    if magnitude in "mbB" and not match["next"] and not match["more"]:
        return match[0]
    if magnitude == "K" and (match["run"] is not None or match["first"] in ("4", "8")):
        return match[0]
    plus = f" {'प्लस' if locale.is_hindi else 'plus'}" if match["more"] else ""
    return f"{_amount(match, locale)} {_SHORT_NAMES[magnitude.lower()][locale.is_hindi]}{plus}"
