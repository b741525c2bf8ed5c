"""Romanized Hindi: everyday words and sentences become Devanagari, English stays as it is."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speech.text.hindi.detect import transliterate
from tests.support.texts.hindi_reading import rows, sounds, word_in_hindi

WORDS = rows("hindi_words.tsv")
HELD_OUT = rows("hindi_words_held_out.tsv")


def share_right(words: list[list[str]]) -> tuple[float, list[str]]:
    wrong = [r for r, expected in words if sounds(word_in_hindi(r)) != sounds(expected)]
    return 1 - len(wrong) / len(words), wrong


def test_ninety_three_percent_of_everyday_words_are_right() -> None:
    assert len({roman for roman, _ in WORDS}) >= 200
    share, wrong = share_right(WORDS)
    assert share >= 0.93, wrong


def test_words_that_no_rule_was_tuned_on_are_mostly_right() -> None:
    share, wrong = share_right(HELD_OUT)
    assert share >= 0.85, wrong


@pytest.mark.parametrize(("roman", "expected"), rows("hindi_sentences.tsv"))
def test_hindi_words_of_a_sentence_change_and_english_ones_stay(roman: str, expected: str) -> None:
    assert sounds(transliterate(roman)) == sounds(expected)


@pytest.mark.parametrize("sentence", [row[0] for row in rows("english_sentences.txt")])
def test_an_english_sentence_is_left_alone(sentence: str) -> None:
    assert transliterate(sentence) == sentence


@pytest.mark.parametrize(
    "text",
    [
        "",
        "123 !",
        "मैं ठीक हूँ।",
        "NASA",
        "https://main.example/kya",
        "kya@example.org",
        "b2b 4k",
        "It's he'd don't",
        "main" * 20,
    ],
)
def test_a_token_that_is_no_romanized_word_is_left_alone(text: str) -> None:
    assert transliterate(text) == text


def test_an_unknown_name_is_not_replaced_by_a_look_alike() -> None:
    assert transliterate("mera dost Xylqo ghar par hai") == "मेरा दोस्त Xylqo घर पर है"


def test_letter_case_does_not_matter() -> None:
    assert transliterate("Mera Ghar") == transliterate("mera ghar") == "मेरा घर"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
def test_everything_but_latin_words_is_kept(text: str) -> None:
    changed = transliterate(text)
    between = re.split("[A-Za-z]+", text)
    position = 0
    for piece in between:
        assert piece in changed[position:]
        position = changed.index(piece, position) + len(piece)
