"""Writes out the signs of programs and shells: a dot between two names, a pipe, ``%`` for a remainder.

A sentence is about a program when it begins with a command, calls a function or names an exception;
elsewhere the same signs mean something else, or a space is missing.
"""

from __future__ import annotations

import re

from speech.text.normalise import numbers
from speech.text.normalise.locale import Locale

_COMMANDS = (
    "git|npm|npx|yarn|pnpm|docker|kubectl|curl|wget|pip3?|sudo|ssh|scp|chmod|chown|grep|systemctl|apt-get|rsync|psql|pytest|"
    "terraform|helm|conda|brew|cargo|mkdir|kill"
)
_SHELL = re.compile(rf"^\s*(?:[$#>] (?=[a-z])|(?:{_COMMANDS}) (?=[a-z./~-]))")
_PROMPT = re.compile(r"^\s*[$#>] (?=[a-z])")
_MEANT = re.compile(
    r"\w\(\)|\w\.\w+\(|[=!]==?|&&|\|\||\w::\w|\w->\w|\b[A-Z]\w+(?:Error|Exception)\b|^\s*at [\w$.]+ ?\("
    r"|\b(?:null|undefined|NaN|nullptr|stderr|stdout|segfault|panic)\b|\.(?:java|py|js|ts|go|rs|rb|cpp|cs|kt):\d"
    r"|\b(?:ERROR|WARN|INFO|DEBUG|FATAL)\b|\b[a-z]\w*\.[a-z]\w* (?:[<>]=?|=) [\d\"'\[{]"
)
_SIGN = re.compile(r"[/|%!=$(*:]|\.\w|->|kill -")
_DOT = re.compile(r"(?:(?<=[A-Za-z_]{2})|(?<=[)\]]))\.(?=[A-Za-z_][\w$])(?!com\b|org\b|net\b|io\b)")
_SLASH = re.compile(r"(?<=[a-z\d_]{2})/(?=[a-z_]{2})(?!or\b)")
_PIPE = re.compile(r"(?<=\S) \| (?=[a-z])")
_REMAINDER = re.compile(r"(?:(?<=\b[a-z])|(?<=[)\]])) ?% ?(?=[\da-z(])")
_DIVIDED = re.compile(r"(?<=\b[a-z]) / (?=[\da-z])")
_SIGNAL = re.compile(r"(?<=kill) -(?=\d)")
_NOT = re.compile(r"(?<![\w!])!(?=[a-z]{2})")
_EVERY = re.compile(
    r"(?<![\w*])\*(?=\.\w)|(?<=\bSELECT )\*|(?<=\(DISTINCT )\*|(?<=(?i:count)\()\*(?=\))"
)
_HIDDEN = re.compile(r"(?<![^\s(\"'`])\.(?=[a-z]{2,20}(?![\w.]))")
"""The dot of a file that is not listed: ``.gitignore``."""
_CRON = re.compile(r"(?:(?<=\d )|(?<=\* ))\*(?=\s|$)|\*(?= [\d*](?:\s|$))")
"""Any time in a timetable of programs: ``0 5 * * 1``."""
_STATUSES = re.compile(
    r"(?<!\bin )(?<!\btook )(?<!\bafter )(?<!\bfor )(?<![\w.,$-])(?P<status>40[0134589]|429|50[0234])s(?!\w)"
)
"""Answers of a web server, several of them."""


def is_meant(text: str) -> bool:
    """Whether a sentence is about a program."""
    return bool(_SIGN.search(text)) and bool(_SHELL.match(text) or _MEANT.search(text))


def written_out(text: str, locale: Locale, *, meant: bool) -> str:
    """Write the signs of a sentence about a program in words; ``meant`` as of the whole sentence."""
    hindi = locale.is_hindi
    if "*" in text:
        text = _EVERY.sub(" स्टार " if hindi else " star ", text)
    if not hindi and ("4" in text or "5" in text):
        text = _STATUSES.sub(lambda match: _statuses(match["status"], locale), text)
    if " ." in text or text.startswith("."):
        text = _HIDDEN.sub(" डॉट " if hindi else " dot ", text)
    if "* *" in text:
        text = _CRON.sub(" स्टार " if hindi else " star ", text)
    if not meant:
        return text
    if _SHELL.match(text):
        text = _PIPE.sub(" पाइप " if hindi else " pipe ", _PROMPT.sub("", text))
    text = _DOT.sub(" डॉट " if hindi else " dot ", text)
    text = _SLASH.sub(" स्लैश " if hindi else " slash ", text)
    text = _SIGNAL.sub(" डैश " if hindi else " dash ", text)
    text = _NOT.sub("not ", text)
    text = _REMAINDER.sub(" mod ", text)
    return _DIVIDED.sub(" भाग " if hindi else " divided by ", text)


def _statuses(status: str, locale: Locale) -> str:
    return numbers.plural(numbers.named(int(status), locale))
