"""Writes out times of day, and ratios with a colon."""

from __future__ import annotations

import re

from speech.text.kinds import pointed_times
from speech.text.language import WORD_END
from speech.text.normalise import numbers
from speech.text.normalise.locale import Locale, Region

# ruff: noqa: RUF001  # signs that look like others are the point


_HALF = r"(?:(?P<half>[aApP])\.?[mM]\b(?:\.(?=\s*[a-z,;])|(?P<stop>\.))?)"
_FREE = r"(?<![\w.,:/$€£₹-])"
_TIME = re.compile(
    rf"{_FREE}(?P<hour>2[0-4]|1\d|0?\d):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d)(?P<fraction>[.,]\d{{1,6}})?)?"
    rf"(?:\s?{_HALF})?+(?![\w:]|[.,]\d)"
    rf"(?P<clock> ?(?:बजे|baje|o['’]clock){WORD_END})?"
)
_HOUR = re.compile(
    rf"{_FREE}(?P<hour>1[0-2]|0?[1-9])(?P<minute>)(?P<second>)(?P<fraction>)\s?{_HALF}(?!\w)(?P<clock>)"
)
_HOURS = re.compile(
    r"(?<![\w.,:/$€£₹-])(?P<first>(?:1[0-2]|0?[1-9])(?::[0-5]\d)?(?:\s?[aApP]\.?[mM]\.?)?)\s?[-–—]\s?"
    r"(?=(?:1[0-2]|0?[1-9])(?::[0-5]\d)?\s?[aApP]\.?[mM]\b)"
)
_CLOCKS = re.compile(
    r"(?<![\w.,:/-])(?P<first>\d{1,2}(?::[0-5]\d)?(?:\s?[aApP]\.?[mM]\.?)?)\s?[-–—]\s?(?=\d{1,2}:[0-5]\d(?!\d))"
)
_METRES = re.compile(r"\dm\b")
_MINUTES = re.compile(
    r"(?:(?<=[Tt]ime: )|(?<=[Tt]ime )|(?<![\w.,:/$€£₹-])(?=\d{1,3}m (?:ago|late|left|read|walk|drive|timer|rest|break|uptime|delay|downtime)\b)"
    r"|(?<=[Ee]very )|(?<=[Ll]ast )|(?<=[Pp]ast )|(?<=[Nn]ext )|(?<=[Tt]ook )|(?<=[Uu]ptime )|(?<=[Tt]imeout )|(?<=[Ii]nterval )|(?<=[Rr]etry in )|(?<=[Bb]ack in )|(?<=% for ))"
    r"(?P<figure>\d{1,3})m\b"
)
_SPANS = (
    re.compile(
        r"(?<![\w.,:/$€£₹-])(?P<hours>\d{1,3}) ?h(?:rs?)? ?(?P<minutes>[0-5]?\d) ?m(?:ins?)?"
        r"(?: ?(?P<seconds>[0-5]?\d) ?s(?:ecs?)?)?(?!\w)"
    ),
    re.compile(r"(?<![\w.,:/$€£₹-])(?P<hours>)(?P<minutes>\d{1,3})m ?(?P<seconds>[0-5]?\d)s(?!\w)"),
)
_AT = re.compile(
    r"\b(?:at|by|from|until|till|since|before|after|around|between|(?<!up )to) \Z", re.IGNORECASE
)
_SURELY_AT = re.compile(r"\b(?:at|until|till) \Z", re.IGNORECASE)
_LASTS = re.compile(
    r"\b(?:elapsed|remaining|duration|runtime|took|takes|lasted|lasts|length|left|uptime|ETA|(?:total|run|wall|finish|finishing|winning) time)"
    r"(?: (?:is|was|of|in))?[:=]? \Z",
    re.IGNORECASE,
)
_STARTS = re.compile(
    r"(?:^time|\b(?:start(?:s|ing)?|begin(?:s|ning)?|opens?|opening|closes?|closing|depart(?:s|ure)|arriv(?:es|al)|"
    r"ET[AD])(?: time)?):? \Z",
    re.IGNORECASE,
)
_THEN = re.compile(r":| (?:sharp|onwards?|local|GMT|UTC|IST|EST|CET)\b")
_FOUR_DIGITS = re.compile(
    rf"{_FREE}(?P<hour>[01]\d|2[0-4])(?P<minute>[0-5]\d) ?(?P<unit>hrs?|hours)\b(?! (?:of|per|a|each)\b|\s?/)"
)
_PART_BEFORE = re.compile(r"(?:सुबह|दोपहर|शाम|रात|subah|dopahar|shaam|sham|raat)\s\Z")
"""A part of the day before a time, which needs no other one: रात 9 PM."""
_EARLIER = "|".join(f"{hour}/{hour - 1}" for hour in range(2, 13))
_TIME_ZONES = re.compile(rf"{_FREE}(?P<zones>{_EARLIER}|(?<=\bat )1/12)c(?!\w)")
"""The eastern time and the central one, which is an hour earlier: ``8/7c``. 1/12c may be flour."""
_HOURS_UNIT = re.compile(r"(?<=\d:[0-5]\d) ?[Hh]rs?\b\.?")
_WHOLE_HOURS = re.compile(rf"{_FREE}(?P<hour>2[0-4]|[01]?\d):00 ?[Hh]rs?\b\.?")
_NUMBERED_CLOCK = re.compile(
    r"(?P<before>\b(?:[Aa]rrives|[Dd]eparts|[Aa]rrival|[Dd]eparture|ET[AD]|[Dd]ep|[Aa]rr|[Ll]anding|[Tt]akeoff):? (?:at )?)(?P<hour>[01]\d|2[0-3])(?P<minute>[0-5]\d)(?![\w/-]|[.,]\d| ?h(?:ou)?rs?\b)"
    r"|(?P<at>\b(?:at|by|from|until|till|since|before|after|around|@) )(?P<low>0\d)(?P<past>[0-5]\d)(?![\w/-]|[.,]\d| ?h(?:ou)?rs?\b| (?:of|people|times))"
)
"""Four digits that are a time after a word of travel, or with a leading zero."""
_COUNTDOWN = re.compile(
    r"\bT ?[-−](?=\d{1,3}(?:[: ]?(?:\d\d\b|min|sec|hours?|hrs?|days?|s\b|m\b)|[,.;!]))"
)
_NOON = re.compile(r"\b(?P<from>[Nn]oon|[Mm]idnight)\s?[-–—]\s?(?=\d)")
_PARTS_OF_HOUR = re.compile(
    r"(?<![\w./])(?P<part>1/[24]) (?P<to>to|past|til|till) (?=\d{1,2}(?!\w|[:.,/]\d))"
)
_LAP = re.compile(
    rf"{_FREE}(?P<minutes>\d{{1,2}}):(?P<seconds>[0-5]\d)(?P<fraction>\.\d{{1,3}})(?!\w|[.,:]\d)"
)
_LETTER_RANGE = re.compile(
    r"(?<![\w.,:/$-])(?P<first>\d{1,2}(?::[0-5]\d)?)(?P<half>[ap])?\s?[-–]\s?(?P<last>\d{1,2}(?::[0-5]\d)?)(?P<end>[ap])(?![\w.])"
)
"""Hours of American shops: ``7a-9p``."""
_TO_NOON = re.compile(
    r"(?:(?<=[ap]\.m\.)|(?<=\d[ap]m)|(?<= [ap]m)|(?<=[AP]M)|(?<=:[0-5]\d)|(?<=\d))\s?[-–—]\s?(?=(?:12 )?(?:noon|midnight)\b)"
)
_MILITARY_RANGE = re.compile(
    r"(?<![\w.,:/$€£₹-])(?=0\d{3}\D|\d{4}(?:\s?[-–]\s?| (?:to|until|till) )0\d{3}\b)(?P<hour>[01]\d|2[0-4])(?P<minute>[0-5]\d)(?P<dash>\s?[-–]\s?| (?:to|until|till) )(?P<last>[01]\d|2[0-4])(?P<end>[0-5]\d)(?: ?hrs?\b\.?)?(?![\w/-]|[.,]\d)"
)
_HOUR_LETTER = re.compile(
    r"(?P<before>\b(?:at|until|till|by|from|to|after|before|open|opens|closes?|starts?|ends?|around|til) |@ ?)(?P<hour>1[0-2]|[1-9])(?P<half>[ap])(?![\w.'’])"
)
_HALF_LETTER = re.compile(r"(?<=:[0-5]\d)(?P<half>[ap])(?!\w|\.\w)")
_RATIO = re.compile(r"(?<![\w.,:/])(?P<one>\d{1,9})(?::| : )(?P<two>\d{1,9})(?![\w:]|[.,]\d)")


def written_out(text: str, locale: Locale) -> str:
    """Write the times of ``text`` in words; a ratio such as 16:9 becomes ``16 to 9``."""
    if not any(map(str.isdecimal, text)):
        return text
    to = "से" if locale.is_hindi else "to"
    text = pointed_times.with_colons(text, locale)
    text = _LAP.sub(lambda match: _lap(match, locale), text)
    if not locale.is_hindi:
        text = _only_in_english(text, locale)
    text = _HOURS_UNIT.sub(" बजे" if locale.is_hindi else " hours", text)
    text = _TO_NOON.sub(f" {to} ", text)
    text = _NOON.sub(rf"\g<from> {to} ", text)
    text = _HALF_LETTER.sub(r"\g<half>m", text)
    if _METRES.search(text):
        text = _MINUTES.sub(r"\g<figure> min", text)
    for pattern in _SPANS:
        text = pattern.sub(_span, text)
    text = _FOUR_DIGITS.sub(lambda match: _four_digits(match, locale), text)
    for pattern in (_CLOCKS, _HOURS):
        text = pattern.sub(lambda match: f"{match['first']} {to} ", text)
    for pattern in (_TIME, _HOUR):
        text = pattern.sub(lambda match: _time(match, locale), text)
    return _RATIO.sub(lambda match: _ratio(match, locale), text)


def _only_in_english(text: str, locale: Locale) -> str:
    if "1/" in text:
        text = _PARTS_OF_HOUR.sub(
            lambda match: f"{'half' if match['part'] == '1/2' else 'quarter'} {match['to']} ", text
        )
    text = _WHOLE_HOURS.sub(
        lambda match: f"{_hundred_hours(int(match['hour']), 0, locale)} hours", text
    )
    if locale.region is Region.US:
        # Elsewhere a p after a figure is pence.
        text = _LETTER_RANGE.sub(_letter_range, text)
        text = _HOUR_LETTER.sub(r"\g<before>\g<hour> \g<half>m", text)
    text = _TIME_ZONES.sub(lambda match: f"{match['zones'].replace('/', ', ')} central", text)
    text = _COUNTDOWN.sub("T minus ", text)
    text = _MILITARY_RANGE.sub(lambda match: _military_range(match, locale), text)
    return _NUMBERED_CLOCK.sub(lambda match: _numbered_clock(match, locale), text)


def _numbered_clock(match: re.Match[str], locale: Locale) -> str:
    hour, minute = match["hour"] or match["low"], match["minute"] or match["past"]
    return (match["before"] or match["at"]) + _hundred_hours(int(hour), int(minute), locale)


def _letter_range(match: re.Match[str]) -> str:
    half = f" {match['half']}m" if match["half"] else ""
    return f"{match['first']}{half} to {match['last']} {match['end']}m"


def _military_range(match: re.Match[str], locale: Locale) -> str:
    first = _hundred_hours(int(match["hour"]), int(match["minute"]), locale)
    return f"{first} to {_hundred_hours(int(match['last']), int(match['end']), locale)}"


def _lap(match: re.Match[str], locale: Locale) -> str:
    """Minutes and seconds of a race: 1:59.40."""
    minutes, seconds = (int(match[name]) for name in ("minutes", "seconds"))
    low = "oh " if seconds < 10 and not locale.is_hindi else ""
    figure = numbers.spoken(f"{seconds}{match['fraction']}", locale)
    return f"{numbers.cardinal(minutes, locale)} {low}{figure}"


def _ratio(match: re.Match[str], locale: Locale) -> str:
    """Write out a ratio; figures of four digits are ports (``8080:80``)."""
    if len(match["one"]) > 1 and max(len(match["one"]), len(match["two"])) > 3:
        ports = (numbers.port(match[name], locale) for name in ("one", "two"))
        return (" कोलन " if locale.is_hindi else " colon ").join(ports)
    if len(match["one"]) == len(match["two"]) == 2 and match["one"] > "23" and match["two"] < "60":
        # Minutes and seconds: no ratio is written with such figures.
        return f"{match['one']} {match['two']}"
    return f"{match['one']} {'अनुपात' if locale.is_hindi else 'to'} {match['two']}"


def _span(match: re.Match[str]) -> str:
    """Spell a length of time with units, which are written out later: ``2 hr 35 min``."""
    named = ((match["hours"], "hr"), (match["minutes"], "min"), (match["seconds"], "sec"))
    return " ".join(f"{int(figure)} {unit}" for figure, unit in named if figure)


def _four_digits(match: re.Match[str], locale: Locale) -> str:
    """A time such as 1800 hrs; without a word that makes it one, a number of hours."""
    before = match.string[max(0, match.start() - 20) : match.start()]
    if match["unit"] == "hours":
        is_time = _SURELY_AT.search(before)
    else:
        starts = _STARTS.search(before) or _THEN.match(match.string, match.end())
        is_time = starts or _AT.search(before)
    if not (is_time or match["hour"][0] == "0"):
        return match[0]
    if locale.is_hindi:
        return f"{match['hour']}:{match['minute']}"
    return f"{_hundred_hours(int(match['hour']), int(match['minute']), locale)} hours"


def _hundred_hours(hour: int, minute: int, locale: Locale) -> str:
    """A time of four digits: oh seven hundred."""
    low = "oh " if 0 < hour < 10 else ""
    past = f"{'oh ' if minute < 10 else ''}{numbers.cardinal(minute, locale)}"
    return f"{low}{numbers.cardinal(hour, locale)} {past if minute else 'hundred'}"


def _is_span(match: re.Match[str]) -> bool:
    """Whether 2:00:35 is a length of time, as its hour of one digit without ``at`` says, or a word."""
    if match["second"] is None or match["half"] or match["clock"]:
        return False
    if _LASTS.search(match.string, max(0, match.start() - 24), match.start()):
        return True
    if len(match["hour"]) > 1:
        return False
    return not _AT.search(match.string, max(0, match.start() - 10), match.start())


def _time(match: re.Match[str], locale: Locale) -> str:
    hour, minute = int(match["hour"]), int(match["minute"] or 0)
    if _is_span(match):
        return f"{hour} hr {minute} min {int(match['second'])} sec"
    half = (match["half"] or "").upper()
    if half and not 1 <= hour <= 12:
        half = ""
    second = int(match["second"]) if match["second"] else None
    if locale.is_hindi:
        said = _in_hindi(hour, minute, half, locale, with_clock=bool(match["clock"]))
        if half and _PART_BEFORE.search(match.string, max(0, match.start() - 10), match.start()):
            said = said.partition(" ")[2]
    else:
        said = _english(hour, minute, half, locale)
    if second is not None:
        said = _with_seconds(said, second, match["fraction"] or "", locale)
    return said + (match["stop"] or "")


def _english(hour: int, minute: int, half: str, locale: Locale) -> str:
    named = numbers.cardinal(hour, locale)
    if minute:
        low = "oh " if minute < 10 else ""
        said = f"{named} {low}{numbers.cardinal(minute, locale)}"
    elif half:
        said = named
    elif hour in (0, 24):
        said = "midnight"
    else:
        said = f"{named} o'clock" if hour <= 12 else f"{named} hundred hours"
    return f"{said} {half} M" if half else said


def _with_seconds(said: str, second: int, fraction: str, locale: Locale) -> str:
    seconds = numbers.spoken(f"{second}{fraction.replace(',', '.')}", locale)
    if locale.is_hindi:
        return f"{said} {seconds} सेकंड"
    return f"{said} and {seconds} second{'' if second == 1 else 's'}"


def _in_hindi(hour: int, minute: int, half: str, locale: Locale, *, with_clock: bool) -> str:
    part = f"{_part_of_day(hour % 12 + (12 if half == 'P' else 0))} " if half else ""
    quarters = _quarters(hour, minute, locale) if hour <= 12 else None
    if minute == 0:
        return f"{part}{numbers.cardinal(hour, locale)} बजे"
    if quarters and (with_clock or half):
        return f"{part}{quarters} बजे"
    return f"{part}{numbers.cardinal(hour, locale)} बजकर {numbers.cardinal(minute, locale)} मिनट"


def _quarters(hour: int, minute: int, locale: Locale) -> str | None:
    """Half past and the quarters, for which Hindi has own words."""
    if minute == 30 and hour in (1, 2):
        return "डेढ़" if hour == 1 else "ढाई"
    if minute == 45:
        return "पौन" if hour == 0 else f"पौने {numbers.cardinal(hour % 12 + 1, locale)}"
    names = {15: "सवा", 30: "साढ़े"}
    return f"{names[minute]} {numbers.cardinal(hour, locale)}" if minute in names else None


def _part_of_day(hour: int) -> str:
    if 4 <= hour < 12:
        return "सुबह"
    if 12 <= hour < 16:
        return "दोपहर"
    return "शाम" if 16 <= hour < 20 else "रात"
