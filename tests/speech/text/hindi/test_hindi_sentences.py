"""Romanized Hindi in sentences: how many words are right, and words that the context decides.

The readings were written by hand. Rules and exceptions were tuned on the development part only; the
held-out parts are for measuring, so no rule may be tuned on them.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from speech.text.hindi import lexicon
from speech.text.hindi.detect import prepare, transliterate
from speech.text.hindi.lexicon import Group, overrides
from tests.support.texts.hindi_reading import misses, rows, share_right, sounds

DEVELOPMENT = rows("hindi_development.tsv")
HELD_OUT = rows("hindi_held_out.tsv")
SECOND = rows("hindi_held_out_later.tsv")
DOCUMENTATION = Path(__file__).parents[4] / "docs/explain/speech-text.md"


def test_the_held_out_sentences_are_read_as_well_as_published() -> None:
    assert len(HELD_OUT) >= 80
    share = share_right(HELD_OUT)
    assert share >= 0.975, misses(HELD_OUT)
    published = f"{len(HELD_OUT)} held-out sentences, {100 * share:.1f} % of the words are right"
    assert published in DOCUMENTATION.read_text("utf-8")


def test_the_second_set_is_read_as_well_as_published() -> None:
    share = share_right(SECOND)
    assert share >= 0.975, misses(SECOND)
    published = (
        f"{len(SECOND)} sentences of a second set, {100 * share:.1f} % of the words are right"
    )
    assert published in DOCUMENTATION.read_text("utf-8")


def test_the_documentation_lists_every_held_out_miss() -> None:
    text = DOCUMENTATION.read_text("utf-8")
    for miss in [*misses(HELD_OUT), *misses(SECOND)]:
        assert f"`{miss.typed}`" in text


def test_the_sentences_that_the_rules_were_tuned_on_are_right() -> None:
    assert share_right(DEVELOPMENT) >= 0.99, misses(DEVELOPMENT)


def test_no_sentence_is_in_both_parts() -> None:
    assert not {typed for typed, _ in DEVELOPMENT} & {typed for typed, _ in [*HELD_OUT, *SECOND]}


@pytest.mark.parametrize(("typed", "expected"), rows("hindi_mixes.tsv"))
def test_the_words_around_an_ambiguous_word_decide(typed: str, expected: str) -> None:
    assert sounds(transliterate(typed)) == sounds(expected)


@pytest.mark.parametrize("group", [Group.SPELLING, Group.CHAT, Group.NAME])
def test_each_exception_differs_from_the_reading_of_the_rules(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = {roman: word for roman, (word, of) in overrides().items() if of is group}
    monkeypatch.setattr(lexicon, "overrides", dict)
    without_cache = lexicon.match.__wrapped__
    needless = [
        roman
        for roman, word in listed.items()
        if (found := without_cache(roman)) is not None and sounds(found.word) == sounds(word)
    ]
    assert not needless


def test_the_exceptions_stay_few_and_each_has_one_line() -> None:
    words = [row[0] for row in rows("../../../speech/text/hindi/overrides.tsv")]
    assert len(words) == len(set(words)) <= 260


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "w",
        ".",
        "ह",
        "a1",
        "ka@ ",
        "main ",
        "the ",
        "ki ",
        "krkrkrkr ",
        "k" * 40 + " ",
        "hai, ",
    ],
)
def test_the_time_grows_with_the_length_and_no_faster(piece: str) -> None:
    prepare()
    text = (piece * 50_000)[:50_000]
    start = time.process_time()
    transliterate(text)
    assert time.process_time() - start < 2
