# ruff: noqa: RUF001  # signs that look like others are the point
"""Writes out times of day, and ratios with a colon."""

from __future__ import annotations

import re

from speech.text.normalise.locale import Locale
from speech.text.normalise.numbers import numbers

_HALF = r"(?:(?P<half>[aApP])\.?[mM]\b(?:\.(?=\s*[a-z,;])|(?P<stop>\.))?)"
_FREE = r"(?<![\w.,:/$€£₹-])"
_TIME = re.compile(
    rf"{_FREE}(?P<hour>2[0-4]|1\d|0?\d):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d))?"
    rf"(?:\s?{_HALF})?+(?![\w:]|[.,]\d)"
    r"(?P<clock> ?(?:बजे|baje|o['’]clock)(?![\w\u0900-\u097f]))?"
)
_HOUR = re.compile(
    rf"{_FREE}(?P<hour>1[0-2]|0?[1-9])(?P<minute>)(?P<second>)\s?{_HALF}(?!\w)(?P<clock>)"
)
_HOURS = re.compile(
    r"(?<![\w.,:/$€£₹-])(?P<first>(?:1[0-2]|0?[1-9])(?::[0-5]\d)?(?:\s?[aApP]\.?[mM]\.?)?)\s?[-–—]\s?"
    r"(?=(?:1[0-2]|0?[1-9])(?::[0-5]\d)?\s?[aApP]\.?[mM]\b)"
)
_CLOCKS = re.compile(
    r"(?<![\w.,:/-])(?P<first>\d{1,2}:[0-5]\d(?:\s?[aApP]\.?[mM]\.?)?)\s?[-–—]\s?(?=\d{1,2}:[0-5]\d(?!\d))"
)
_RATIO = re.compile(r"(?<![\w.,:/])(?P<one>\d{1,9}) ?: ?(?P<two>\d{1,9})(?![\w:]|[.,]\d)")


def written_out(text: str, locale: Locale) -> str:
    """Write the times of ``text`` in words; a ratio such as 16:9 becomes ``16 to 9``."""
    if not any(map(str.isdecimal, text)):
        return text
    to = "से" if locale.is_hindi else "to"
    for pattern in (_CLOCKS, _HOURS):
        text = pattern.sub(lambda match: f"{match['first']} {to} ", text)
    for pattern in (_TIME, _HOUR):
        text = pattern.sub(lambda match: _time(match, locale), text)
    between = "अनुपात" if locale.is_hindi else "to"
    return _RATIO.sub(rf"\g<one> {between} \g<two>", text)


def _time(match: re.Match[str], locale: Locale) -> str:
    hour, minute = int(match["hour"]), int(match["minute"] or 0)
    half = (match["half"] or "").upper()
    if half and not 1 <= hour <= 12:
        half = ""
    second = int(match["second"]) if match["second"] else None
    if locale.is_hindi:
        said = _in_hindi(hour, minute, half, locale, with_clock=bool(match["clock"]))
    else:
        said = _english(hour, minute, half, locale)
    if second is not None:
        said = _with_seconds(said, second, locale)
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


def _with_seconds(said: str, second: int, locale: Locale) -> str:
    seconds = numbers.cardinal(second, locale)
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
