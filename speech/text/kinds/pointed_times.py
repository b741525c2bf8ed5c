"""Puts a colon into times of day that are written with a point: ``at 17.42``, ``open 9-5.30``."""

from __future__ import annotations

import re

from speech.text.language import WORD_END
from speech.text.normalise.locale import Locale

# ruff: noqa: RUF001  # signs that look like others are the point

_FREE = r"(?<![\w.,:/$€£₹-])"
_FIGURE = re.compile(r"\d\.\d\d")
_NO_VERSION = "".join(
    rf"(?<!\b(?i:{word}) )" for word in ("version", "ver", "release", "build", "update")
)
_AFTER_POINT = (
    rf"(?=\s?[aApP]\.?[mM]\b| (?:बजे|baje){WORD_END}| in the (?:morning|afternoon|evening)\b)"
)
_SINGLE = (
    re.compile(
        rf"{_FREE}(?P<first>2[0-4]|1\d|0?\d)\.(?P<minute>[0-5]\d)(?P<last>)(?P<end>)(?= for (?:1[0-2]|\d)(?:[.:][0-5]\d)?\s?[ap]\.?m\b)"
    ),
    re.compile(
        rf"{_FREE}(?P<first>2[0-4]|1\d|0?\d)\.(?P<minute>[0-5]\d)(?P<last>)(?P<end>)(?= (?:onwards?|sharp|hrs|show|shift|batch|slot)\b)"
    ),
    re.compile(
        rf"{_FREE}(?P<first>2[0-4]|1\d|0?\d)\.(?P<minute>[0-5]\d)(?P<last>\s?(?:[-–—]|to|से)\s?(?:(?:सुबह|प्रातः|दोपहर|शाम|सायं|रात) )?(?:2[0-4]|1\d|0?\d))"
        rf"\.(?P<end>[0-5]\d){_AFTER_POINT}"
    ),
    re.compile(
        rf"(?:(?<=[ap]m-)|(?<=[ap]m - ))(?P<first>1[0-2]|0?\d)\.(?P<minute>[0-5]\d)(?P<last>)(?P<end>){_AFTER_POINT}"
    ),
    re.compile(
        rf"{_FREE}{_NO_VERSION}(?P<first>2[0-4]|1\d|0?\d)\.(?P<minute>[0-5]\d)(?P<last>)(?P<end>){_AFTER_POINT}"
    ),
)
_AFTER_EVENT = re.compile(
    r"(?P<before>\b(?:kick-?off|doors|lunch|dinner|starts?|opens?|closes?|begins?|departs?|arrives?|leaves?|dep\.?|arr\.?|k\.?o\.?|orders|curtain|first act)(?: (?:at|from))?:? |\b(?:appt|appointment|break|tea|assembly|registration|prayers?|puja|pooja|bell|match|game|session|exam|viva|interview|party|wedding|reception|screening|show|rehearsal|training|practice|call|standup|shift|meeting|mtg|lesson|class|lecture|flight|train|bus|coach|service|booked|film)(?: (?:at|from|for)) "
    r"|\b(?:gets? (?:in|there|here|home)|(?:pulls?|comes?|goes) in|due(?: in)?|meet(?: (?:me|us|you|up))?|see (?:you|u|ya)|pick (?:\w{1,12} )?up|home|back) at |\b(?:until|till|til|’til) |[,;] (?=\d{1,2}\.\d\d (?:at [A-Z]|outside|@))|\b(?:got|get|getting|catch|catching|caught|missed|take|taking|for|on) the (?=\d{1,2}\.\d\d(?:[,.;!?]?\s|$))"
    r"|(?:day|appt|appointment|\d(?:st|nd|rd|th)|of \w{3,9}(?: twenty \w{3,9}(?: \w{3,5})?)?|\d/\d{1,2}) (?:at|@) )"
    r"(?P<hour>2[0-4]|1\d|0?\d)\.(?P<minute>[0-5]\d)(?!\w|[.,–—-]\d|%| ?(?:per|million|crore|lakh))",
    re.IGNORECASE,
)
_DAY_HOURS = re.compile(
    r"(?<=day )(?P<first>\d{1,2})(?:\.(?P<minute>[0-5]\d))?(?P<dash>\s?[-–]\s?)(?P<last>\d{1,2})\.(?P<end>[0-5]\d)(?![\w.])"
)
_QUARTER = r"(?:00|15|20|30|45)"
_POINTED_RANGE = re.compile(
    rf"(?<![\w.,:/$€£₹-])(?P<first>2[0-4]|1\d|0?[1-9])\.(?P<minute>{_QUARTER})(?P<dash>\s?(?:[-–]|to)\s?)(?P<last>2[0-4]|1\d|0?[1-9])\.(?P<end>{_QUARTER})"
    r"(?![\w%]|[.,-]\d| ?=| ?(?:per|million|crore|lakh|[a-zµ]{1,2}\b|%))"
)
_HOUR = r"2[0-4]|1\d|0?[1-9]"
_MEASURED = (
    r"per|percent|million|billion|crore|lakh|hours?|hrs?|h|minutes?|mins?|points?|stars?|times|x|[kcm]?m|k?g|mc?g|m?l|miles?|metres?|meters?|"
    r"kilos?|inch(?:es)?|feet|ft|lit(?:re|er)s?|dollars?|euros?|pounds?|rupees?|cents?"
)
_OPENING = re.compile(
    rf"{_FREE}(?P<first>{_HOUR})(?:\.(?P<minute>[0-5][05]))?(?:(?P<dash>[-–—])|\s?[-–—]\s?| to )(?P<last>{_HOUR})(?:\.(?P<end>[0-5][05]))?"
    rf"(?P<half>\s?[aApP]\.?[mM]\b| (?:बजे|baje){WORD_END})?+(?![\w%°])(?!\s?[.,:/–—-]\d| (?:{_MEASURED})\b)"
    r"(?P<on> (?:daily|weekdays|weekends|every day|job|shift|on weekdays|on weekends|(?:on )?\w{2,6}days?)\b)?"
)
_RANGE = r"\d{1,2}(?:[.:]\d\d)?(?:\s?[-–—]\s?| to )\d{1,2}(?:[.:]\d\d)?"
_BEFORE_HOURS = re.compile(
    r"\b(?:open(?:s|ing)?|hours|timings?|served|serving|daily|weekdays?|weekends?|\w{2,6}days?|shifts?|break|lunch|brunch|breakfast|dinner|tea|"
    r"surgery|reception|clinic|OPD|visiting|work(?:s|ing)?|available|appointments|समय|टाइमिंग)"
    r"(?:[ :,(]{1,2}(?:hours|times|timings?|are|is|from|daily|between|only|today|tomorrow|again|now|usually|weekdays|weekends|\w{2,6}days?)){0,4}+"
    rf"[ :,(]{{1,2}}(?:{_RANGE}(?:,? and|,? then|[,;]| &) ){{0,4}}+\Z",
    re.IGNORECASE,
)
"""What is before hours, other hours among it: ``Surgery hours 8.30–12 and 2–5.30``."""
_THE_SERVICE = re.compile(
    r"(?P<before>\b[Tt]he )(?P<hour>2[0-4]|1\d|0?\d)\.(?P<minute>[0-5]\d)(?= (?:to|from|train|bus|coach|service|departure|flight|ferry)\b|(?<=1\d\.\d\d)(?:[.,!?](?:\s|$)|$)|(?<=2\d\.\d\d)(?:[.,!?](?:\s|$)|$))"
)


def with_colons(text: str, locale: Locale) -> str:
    """Write the times of ``text`` as 17:42, which the rules for times read."""
    if not _FIGURE.search(text):
        return text
    text = _OPENING.sub(lambda match: _opening(match, locale), text)
    if locale.day_first:
        text = _AFTER_EVENT.sub(r"\g<before>\g<hour>:\g<minute>", text)
        text = _THE_SERVICE.sub(r"\g<before>\g<hour>:\g<minute>", text)
        text = _POINTED_RANGE.sub(r"\g<first>:\g<minute>\g<dash>\g<last>:\g<end>", text)
        text = _DAY_HOURS.sub(
            lambda match: (
                f"{_time(match, 'first', 'minute')}{match['dash']}{_time(match, 'last', 'end')}"
            ),
            text,
        )
    for pattern in _SINGLE:
        text = pattern.sub(_with_colon, text)
    return text


def _opening(match: re.Match[str], locale: Locale) -> str:
    """Hours of a shop or an office; other figures, such as a price, may look like them."""
    if not (match["minute"] or match["end"]):
        return match[0]
    begins, ends = int(match["first"]), int(match["last"])
    named = match["on"] and (begins > ends or begins >= 8)
    # Figures of a range rise: 9.15-3.30 is a morning and an afternoon.
    named = named or (
        match["minute"] and match["end"] and 12 >= begins > ends and begins >= 7 and match["dash"]
    )
    if not (named or match["half"]):
        before = match.string[max(0, match.start() - 80) : match.start()]
        if not _BEFORE_HOURS.search(before):
            return match[0]
    to = "से" if locale.is_hindi else "to"
    rest = (match["half"] or "") + (match["on"] or "")
    return f"{_time(match, 'first', 'minute')} {to} {_time(match, 'last', 'end')}{rest}"


def _time(match: re.Match[str], hour: str, minute: str) -> str:
    return f"{match[hour]}:{match[minute]}" if match[minute] else str(match[hour])


def _with_colon(match: re.Match[str]) -> str:
    end = f":{match['end']}" if match["end"] else ""
    return f"{match['first']}:{match['minute']}{match['last']}{end}"
