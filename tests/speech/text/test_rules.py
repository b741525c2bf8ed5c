"""A rule that is passed over, because a text lacks what it needs, has no match in that text."""

from __future__ import annotations

from pathlib import Path

import pytest

from speech.text.kinds import devanagari
from speech.text.normalise import abbreviations, signs
from speech.text.normalise.rules import Rule, rule

TEXTS = [
    cell
    for table in sorted(Path(__file__).parents[2].joinpath("support/texts").glob("*.tsv"))
    for line in table.read_text("utf-8").splitlines()
    for cell in line.split("\t")
]
TABLES: dict[str, tuple[Rule, ...]] = {
    "short forms": abbreviations.ALL,
    "Devanagari": devanagari.DEVANAGARI,
    "comparisons": signs.COMPARISONS,
    "maths": signs.MATHS,
    "words": signs.WORDS,
}


@pytest.mark.parametrize("table", TABLES)
def test_no_rule_is_passed_over_that_has_a_match(table: str) -> None:
    missed = [
        (each.pattern.pattern, text)
        for each in TABLES[table]
        for text in TEXTS
        if (each.needs not in text or (each.counts and not any(map(str.isdecimal, text))))
        and each.pattern.search(text)
    ]

    assert missed == []


@pytest.mark.parametrize(
    ("pattern", "needs", "counts"),
    [
        (r"\bDr\.(?=\s[A-Z])", "Dr.", False),
        (r"\b[Dd]r\b", "r", False),
        (r"\b(?:one|two)\b", "", False),
        (r"one|two", "", False),
        (r"(?<=\d)-pt\b\.?", "-pt", True),
        (r"\d?x+(?!abc)(?:cd)?", "x", False),
        (r"(?P<a>[A-Z])-(?=(?P=a)\d{1,4})", "-", True),
        (r"={1,3}\s*\+", "=", False),
    ],
)
def test_a_rule_needs_what_every_match_has(pattern: str, needs: str, counts: bool) -> None:
    made = rule(pattern, "", "")

    assert (made.needs, made.counts) == (needs, counts)
