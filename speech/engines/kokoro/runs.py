"""Cuts a sentence into runs for Kokoro-82M, which returns sound only for a complete run.

So the first run is short, to be heard early, and each later one is made while the one before it is
played. Cuts are where a reader pauses; their marks are kept, since the model speaks by them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Final

from speech.engines.sanitize import portions

WHOLE: Final = 50
"""Most symbols of a text that is spoken in one run; 50 are about 3 seconds."""

FIRST_LEAST: Final = 15
"""Fewest symbols of the first run of a longer text."""

FIRST_MOST: Final = 75
INTERACTIVE_MOST: Final = 75
"""Most symbols of every run of an interactive text, which may be interrupted: a run cannot be, and
the next text waits for its end."""

LATER_MOST: Final = (110, 150)
"""Most symbols of the second and later runs; the model's limit is 510.

Memory grows with the longest run: 570 MB at 160, 880 MB at 508.
"""

PAUSES: Final = {
    ",": 0.16,
    ";": 0.22,
    ":": 0.22,
    "—": 0.22,
    ".": 0.28,
    "!": 0.28,
    "?": 0.28,
    "…": 0.3,
}
"""Seconds of silence after a run that ends in this mark; a cut between words gets none."""

_CLOSING = "[\\s\"')\\].!?\\u0964\\u0965]"
_MARK = re.compile(
    rf"(?: -+(?= )|[(),;:!?\u0964\u0965](?=[(),;:]|{_CLOSING}|$)|(?<= )\(|\.(?={_CLOSING}|$)|[\"')\]](?=\s|$))+"
)
_ABBREVIATION = re.compile(r"(?:^|\s)[^\W\d_]{1,4}$")


@dataclass(frozen=True, slots=True)
class Clause:
    """Words up to a pause, and the mark of the pause; no mark after the last words without one."""

    words: str
    mark: str


@dataclass(frozen=True, slots=True)
class Run:
    """Symbols that the model speaks at once, and the seconds of silence until the next run."""

    symbols: str
    pause: float


def clauses(text: str) -> list[Clause]:
    """Cut ``sanitized`` text into clauses, none longer than an espeak-ng order may be."""
    found = []
    start = 0
    for match in _MARK.finditer(text):
        mark = _mark(match[0])
        words = text[start : match.start()]
        ends_the_text = match.end() == len(text)
        if not mark or (match[0] == "." and not ends_the_text and _ABBREVIATION.search(words)):
            continue
        found += _cut(words, mark)
        start = match.end()
    return found + _cut(text[start:], "")


def _cut(words: str, mark: str) -> list[Clause]:
    parts = portions(words.strip(" \"'()[]"))
    return [Clause(part, mark if part is parts[-1] else "") for part in parts]


def _mark(written: str) -> str:
    """The one mark that replaces adjacent marks for the model."""
    for sign in "?!":
        if sign in written:
            return sign
    if ".." in written:
        return "…"
    if any(stop in written for stop in ".\u0964\u0965"):
        return "."
    if "-" in written:
        return "—"
    return next(
        (sign for sign in ";:," if sign in written), "," if set(written) & set("()") else ""
    )


def runs(spoken: list[Clause], *, is_interactive: bool = False) -> list[Run]:
    """Join clauses, whose words are the model's symbols, to runs."""
    later = (INTERACTIVE_MOST,) if is_interactive else LATER_MOST
    longest = [INTERACTIVE_MOST * 3 // 4] * 2 if is_interactive else [FIRST_MOST, LATER_MOST[0]]
    spoken = [clause for clause in spoken if clause.words.strip()]
    if sum(len(clause.words) + 2 for clause in spoken) <= WHOLE:
        return [_run(spoken)] if spoken else []
    pieces = [
        piece
        for number, clause in enumerate(spoken)
        for piece in _pieces(clause, longest[min(number, 1)])
    ]
    made: list[Run] = []
    limits = chain(later, repeat(later[-1]))
    current: list[Clause] = []
    most = FIRST_MOST
    for piece in pieces:
        size = sum(len(each.words) + 2 for each in current)
        enough = size >= FIRST_LEAST if not made else size + len(piece.words) + 2 > most
        if current and enough:
            made.append(_run(current))
            current, most = [], next(limits)
        current.append(piece)
    return [*made, _run(current)]


def _pieces(clause: Clause, most: int) -> list[Clause]:
    """Cut a clause that is too long for a run between words, into parts of about equal length.

    It is too long when it has a third more symbols than ``most``.
    """
    if len(clause.words) <= most * 4 // 3:
        return [clause]
    words = clause.words.split(" ")
    count = -(-len(clause.words) // most)
    wanted = -(-len(clause.words) // count)
    parts = [words[0][:most]]
    for word in words[1:]:
        if len(parts) < count and len(parts[-1]) + len(word) // 2 >= wanted:
            parts.append(word[:most])
        else:
            parts[-1] += " " + word[:most]
    return [Clause(part, clause.mark if part is parts[-1] else "") for part in parts]


def _run(spoken: list[Clause]) -> Run:
    symbols = " ".join(clause.words.strip() + clause.mark for clause in spoken)
    return Run(symbols, PAUSES.get(spoken[-1].mark, 0.0))
