"""Romanized Hindi: words and sentences become Devanagari, English stays as it is.

The readings were written by hand. Rules and exceptions were tuned on the development part only; the
held-out parts are for measuring, so no rule may be tuned on them.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speech.text.hindi import lexicon
from speech.text.hindi.detect import RARE, prepare, transliterate
from speech.text.hindi.lexicon import (
    Group,
    capital_names,
    english_words,
    english_zipf,
    overrides,
    verb_stems,
)
from tests.support.fuzzing.mutations import within
from tests.support.texts.hindi_reading import misses, rows, share_right, sounds, word_in_hindi

WORDS = rows("hindi_words.tsv")
HELD_OUT_WORDS = rows("hindi_words_held_out.tsv")


def words_right(words: list[list[str]]) -> tuple[float, list[str]]:
    wrong = [r for r, expected in words if sounds(word_in_hindi(r)) != sounds(expected)]
    return 1 - len(wrong) / len(words), wrong


def test_everyday_words_are_right_and_words_that_no_rule_was_tuned_on_mostly() -> None:
    assert len({roman for roman, _ in WORDS}) >= 200
    for words, least in ((WORDS, 0.93), (HELD_OUT_WORDS, 0.85)):
        share, wrong = words_right(words)
        assert share >= least, wrong


@pytest.mark.parametrize(("roman", "expected"), rows("hindi_sentences.tsv"))
def test_hindi_words_of_a_sentence_change_and_english_ones_stay(roman: str, expected: str) -> None:
    assert sounds(transliterate(roman)) == sounds(expected)


@pytest.mark.parametrize("sentence", [row[0] for row in rows("english_sentences.txt")])
def test_an_english_sentence_is_left_alone(sentence: str) -> None:
    assert transliterate(sentence) == sentence


@pytest.mark.parametrize(
    "text",
    [
        "", "123 !", "मैं ठीक हूँ।", "NASA", "https://main.example/kya", "kya@example.org",
        "b2b 4k", "It's he'd don't", "main" * 20,
    ],
)  # fmt: skip
def test_a_token_that_is_no_romanized_word_is_left_alone(text: str) -> None:
    assert transliterate(text) == text


def test_case_does_not_matter_and_an_unknown_name_is_not_replaced_by_a_look_alike() -> None:
    assert transliterate("Mera Ghar") == transliterate("mera ghar") == "मेरा घर"
    assert transliterate("mera dost Xylqo ghar par hai") == "मेरा दोस्त Xylqo घर पर है"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
def test_everything_but_latin_words_is_kept(text: str) -> None:
    changed = transliterate(text)
    between = re.split("[A-Za-z]+", text)
    position = 0
    for piece in between:
        assert piece in changed[position:]
        position = changed.index(piece, position) + len(piece)


# -- sentences: how many words are right, and words that the context decides

DEVELOPMENT = rows("hindi_development.tsv")
HELD_OUT_SENTENCES = rows("hindi_held_out.tsv")
SECOND = rows("hindi_held_out_later.tsv")
DOCUMENTATION = Path(__file__).parents[4] / "docs/explain/speech-text.md"


@pytest.mark.parametrize(
    ("sentences", "least", "name"),
    [(HELD_OUT_SENTENCES, 80, "held-out sentences"), (SECOND, 1, "sentences of a second set")],
    ids=["held out", "second"],
)
def test_held_out_sentences_are_read_as_well_as_published_and_each_miss_is_listed(
    sentences: list[list[str]], least: int, name: str
) -> None:
    assert len(sentences) >= least
    share, missed = share_right(sentences), misses(sentences)
    assert share >= 0.975, missed
    text = DOCUMENTATION.read_text("utf-8")
    assert f"{len(sentences)} {name}, {100 * share:.1f} % of the words are right" in text
    assert [miss for miss in missed if f"`{miss.typed}`" not in text] == []


def test_the_sentences_that_the_rules_were_tuned_on_are_right() -> None:
    assert share_right(DEVELOPMENT) >= 0.99, misses(DEVELOPMENT)


def test_no_sentence_is_in_both_parts() -> None:
    assert not {typed for typed, _ in DEVELOPMENT} & {
        typed for typed, _ in [*HELD_OUT_SENTENCES, *SECOND]
    }


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
        if (found := without_cache(roman)) is not None
        and sounds(found.word) == sounds(word)
        # A name that is frequent in English would stay as it is: Bombay.
        and (group is not Group.NAME or english_zipf(roman) < RARE)
    ]
    assert not needless


def test_each_word_has_one_line_and_the_words_that_others_decide_stay_few() -> None:
    tables = ["overrides.tsv", "spellings.tsv", "names.tsv"]
    words = [row[0] for name in tables for row in rows(f"../../../speech/text/hindi/{name}")]
    assert len(words) == len(set(words))
    assert len(rows("../../../speech/text/hindi/overrides.tsv")) <= 260
    assert not english_words() & set(words)
    assert not capital_names().keys() & {
        row[0] for row in rows("../../../speech/text/hindi/names.tsv")
    }
    assert all(stem.isascii() and stem.islower() for stem in verb_stems())


@pytest.mark.parametrize("word", sorted(english_words()))
def test_an_english_word_that_looks_hindi_stays_in_a_hindi_sentence(word: str) -> None:
    assert transliterate(f"yaar mera {word} kal tak nahi hua").split()[2] == word


@pytest.mark.parametrize(
    "piece",
    [
        "a", "w", ".", "ह", "a1", "ka@ ", "main ", "the ", "ki ", "krkrkrkr ", "k" * 40 + " ",
        "hai, ",
    ],
)  # fmt: skip
def test_the_time_grows_with_the_length_and_no_faster(piece: str) -> None:
    prepare()
    with within(2):
        transliterate((piece * 50_000)[:50_000])
