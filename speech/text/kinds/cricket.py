"""Writes out the signs of cricket: ``104*`` not out, ``172b`` balls, ``14x4`` fours, ``5-42`` for."""

# ruff: noqa: RUF001  # dashes are meant

from __future__ import annotations

import re

from speech.text.language import HINDI_LETTERS
from speech.text.normalise import numbers
from speech.text.normalise.locale import Locale

_WORDS = re.compile(
    r"\b(?:overs|ovs|wickets?|wkts?|at stumps|innings|inns|lbw|batting|off \d{1,3} ?b(?:alls)?)\b"
    r"|\b\d{1,3}\* ?\(|\d ?ovs?\b|\(\d{1,3} ?b\b|[(,] ?\d{1,2}x[46]\b|\d\*? (?:all|not) out\b|\b\d{2,3}[-/]\d dec\b"
    rf"|\d/\d ?d\b|\b[A-Z][a-z]{{1,20}} \d{{1,3}}\*(?=[,;)])|\b\d{{1,3}}\* (?:runs?|ran|banaye|banae|बनाए|रन)|(?<![\u0900-\u097f])(?:ओवर|विकेट|पारी|गेंद|चौके|छक्के)(?![{HINDI_LETTERS}])"
)
_NOT_OUT = re.compile(r"(?<=\d)\*(?!\w)")
_BALLS = re.compile(r"(?P<before>\boff \d{1,3}|\(\d{1,3}) ?b(?!\w)")
_OVERS = re.compile(r"(?<=\d) ?ovs?\b\.?")
_DECLARED = re.compile(r"(?<=\d) dec\b\.?(?=\s*(?:$|[,;)(]|and|in|at))")
_DECLARED_LETTER = re.compile(r"(?<=\d)/(?P<wickets>\d) ?d\b")
_INNINGS = re.compile(r"\binns\b\.?")
_BOUNDARIES = re.compile(r"(?<![\w.])(?P<count>\d{1,2})x(?P<runs>[46])s?(?!\w)")
_SCORE = re.compile(r"(?<![\w.,/:-])(?P<runs>\d{2,3})[-–](?P<wickets>\d)(?![\w-]|[.,]\d)")
_BOWLED = re.compile(
    r"(?P<name>\b[A-Z][a-z]{2,20} )(?<!Pages )(?<!Table )(?<!Chapters )(?P<wickets>\d)[-–/](?P<runs>\d{2,3})(?![\w-]|[.,]\d)"
)


def is_meant(text: str) -> bool:
    """Whether a sentence has words of cricket."""
    return _WORDS.search(text) is not None


def written_out(text: str, locale: Locale) -> str:
    """Write the signs of a sentence about cricket in words."""
    if not any(map(str.isdecimal, text)) or not is_meant(text):
        return text
    hindi = locale.is_hindi
    text = _NOT_OUT.sub(" नाबाद" if hindi else " not out", text)
    text = _BALLS.sub(r"\g<before> गेंद" if hindi else r"\g<before> balls", text)
    text = _OVERS.sub(" ओवर" if hindi else " overs", text)
    text = _BOUNDARIES.sub(lambda match: _boundaries(match, locale), text)
    if hindi:
        return text
    text = _DECLARED_LETTER.sub(r" for \g<wickets> declared", text)
    text = _DECLARED.sub(" declared", _INNINGS.sub("innings", text))
    text = _SCORE.sub(_for, text)
    return _BOWLED.sub(_for, text)


def _boundaries(match: re.Match[str], locale: Locale) -> str:
    one, many = {"4": ("चौका", "चौके"), "6": ("छक्का", "छक्के")}[match["runs"]]
    if not locale.is_hindi:
        one = {"4": "four", "6": "six"}[match["runs"]]
        many = {"4": "fours", "6": "sixes"}[match["runs"]]
    count = int(match["count"])
    return f"{numbers.cardinal(count, locale)} {one if count == 1 else many}"


def _for(match: re.Match[str]) -> str:
    """A score, or what a bowler has; a range of overs or ages rises within one size."""
    runs, wickets = int(match["runs"]), int(match["wickets"])
    if runs < 20 and match.re is _SCORE:
        return match[0]
    first, last = match[0].replace("–", "-").replace("/", "-").split("-")
    return f"{first} for {last}" if runs > wickets else match[0]
