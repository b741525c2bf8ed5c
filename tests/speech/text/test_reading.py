"""Sentences of receipts, messages, logs, recipes, laws, sport and medicine, read as people read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.texts.reading import lines

DOCUMENTATION = Path(__file__).parents[3] / "docs/explain/speech-reading.md"
FIRST = {
    "development": 209,
    "scored": 190,
    "fresh": 48,
    "fresh2": 41,
    "fresh3": 40,
    "fresh4": 142,
    "fresh5": 38,
    "fresh6": 56,
}
"""Lines that were right when a part was first measured, which the page says."""
LEAST = {
    "development": 209,
    "scored": 208,
    "fresh": 59,
    "fresh2": 60,
    "fresh3": 60,
    "fresh4": 148,
    "fresh5": 45,
    "fresh6": 60,
}
"""Lines that are right since its misses have rules."""


@pytest.mark.parametrize("part", LEAST)
def test_sentences_of_many_kinds_of_writing_are_read_as_published(part: str) -> None:
    every = lines(part)
    wrong = [line.written for line in every if not line.is_right]

    assert len(every) - len(wrong) >= LEAST[part], wrong
    page = DOCUMENTATION.read_text("utf-8")
    assert f"{FIRST[part]} of {len(every)}" in page
    assert f"{LEAST[part]} of {len(every)}" in page


def test_the_misses_that_are_left_are_listed() -> None:
    text = DOCUMENTATION.read_text("utf-8")
    wrong = [line.written for part in LEAST for line in lines(part) if not line.is_right]

    assert [written for written in wrong if f"`{written}`" not in text.replace(r"\|", "|")] == []


def test_no_sentence_is_in_two_parts() -> None:
    written = [line.written for part in LEAST for line in lines(part)]

    assert len(written) == len(set(written))
