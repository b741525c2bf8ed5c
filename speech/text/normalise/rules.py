"""Tables of rules that replace a short form or a sign by words, and their quick application.

Few rules of a table concern a text. Each knows letters or signs without which its expression cannot
match, so that most are passed over with a search for a plain string.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from speech.text.normalise.locale import Locale


class Rule(NamedTuple):
    """An expression, and what stands for a match in either language."""

    pattern: re.Pattern[str]
    english: str
    hindi: str
    needs: str
    """A string that is in every text with a match; may be empty."""
    counts: bool
    """Whether a text without a digit has no match."""


_REPEATED = r"(?:[?*+]|\{[^{}]*\})"
_SET = re.compile(rf"(?<!\\)\[\^?\]?(?:[^\[\]\\]|\\.)*+\]{_REPEATED}*")
_GROUP = re.compile(
    rf"(?<!\\)\((?P<kind>\?(?:P<\w+>|<?[=!]|:))?(?P<inside>(?:[^()\\]|\\.)*)\)(?P<often>{_REPEATED}*)"
)
_OPTIONAL = re.compile(r"(?:\\.|[^\\])(?:[?*]\+?|\{0[^{}]*\}\+?)")
_TIMES = re.compile(r"(?<!\\)\{[1-9][^{}]*\}\+?")
_DIGIT = re.compile(r"\\d")
_CLASS = re.compile(r"\\[A-Za-z\d]")
_PLACES = re.compile(r"(?<!\\)[\^$.+]")
_ESCAPE = re.compile(r"\\(?=\W)")
_ALTERNATIVES = re.compile(r"(?<!\\)\|")


def rule(pattern: str, english: str, hindi: str) -> Rule:
    """A rule by its expression, which has no flags."""
    plain = _SET.sub("\0", pattern)
    while (fewer := _GROUP.sub(_surely, plain)) != plain:
        plain = fewer
    if _ALTERNATIVES.search(plain):
        return Rule(re.compile(pattern), english, hindi, "", counts=False)
    plain = _OPTIONAL.sub("\0", _TIMES.sub("\0", plain))
    counts = _DIGIT.search(plain) is not None
    plain = _PLACES.sub("\0", _CLASS.sub("\0", plain))
    needs = max(_ESCAPE.sub("", plain).split("\0"), key=len)
    return Rule(re.compile(pattern), english, hindi, needs, counts)


def _surely(group: re.Match[str]) -> str:
    """What a group of an expression has in every match; nothing of alternatives."""
    inside = group["inside"]
    may_miss = group["kind"] in ("?!", "?<!") or group["often"] or inside.startswith("?")
    if may_miss or _ALTERNATIVES.search(inside):
        return "\0"
    return f"\0{inside}\0"


def apply(rules: Iterable[Rule], text: str, locale: Locale) -> str:
    """Apply the rules in their order."""
    hindi = locale.is_hindi
    has_figures = any(map(str.isdecimal, text))
    for pattern, english, in_hindi, needs, counts in rules:
        if needs in text and (has_figures or not counts):
            text = pattern.sub(in_hindi if hindi else english, text)
    return text
