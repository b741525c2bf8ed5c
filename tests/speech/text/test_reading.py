"""Sentences of receipts, messages, logs, recipes, laws, sport and medicine, read as people read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.texts.reading import lines

DOCUMENTATION = Path(__file__).parents[3] / "docs/explain/speech-reading.md"
LEAST = {"development": 209, "scored": 190, "fresh": 48}
"""Lines that are right; of the other parts those of the first measurement, which the page says."""


@pytest.mark.parametrize("part", LEAST)
def test_sentences_of_many_kinds_of_writing_are_read_as_published(part: str) -> None:
    every = lines(part)
    wrong = [line.written for line in every if not line.is_right]

    assert len(every) - len(wrong) >= LEAST[part], wrong
    assert f"{LEAST[part]} of {len(every)}" in DOCUMENTATION.read_text("utf-8")


def test_the_misses_that_are_left_are_listed() -> None:
    text = DOCUMENTATION.read_text("utf-8")
    both = [*lines("scored"), *lines("fresh")]
    wrong = [line.written for line in both if not line.is_right]

    assert [written for written in wrong if f"`{written}`" not in text.replace(r"\|", "|")] == []


def test_no_sentence_is_in_two_parts() -> None:
    written = [line.written for part in LEAST for line in lines(part)]

    assert len(written) == len(set(written))
