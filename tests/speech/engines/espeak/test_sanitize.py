"""Only text that espeak-ng is known to survive reaches it."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speech.engines.espeak.pool import EspeakWorker, Order
from speech.engines.sanitize import (
    LONGEST_PORTION,
    LONGEST_RUN,
    plain_words,
    portions,
    sanitized,
    unread_letters,
)

ALPHABETS = (
    [chr(code) for code in range(0x20, 0x7F)],
    [chr(code) for code in range(0x900, 0x980)],
    [*"U.S.", "<", "&", "[", "\u200d", "\u094d", "9", "'", "\u093c", "-", " "],
    [chr(code) for code in range(0xA0, 0x2FF)],
    ["\U0001f600", "\u4e2d", "\u0627", "\u0301", "\u2066", "\ufeff", "\x00", "\x1b", "a", " "],
)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("\u201cDon\u2019t\u201d \u2014 he said\u2026", '"Don\'t" - he said...'),
        ("naïve Müller Łódź", "naïve Müller Łódź"),
        ("\uff11\uff12 \ufb01ne \u1ea1", "12 fine a"),
        ("a\u0000b\tc\nd", "a b c d"),
        ("snow☃man 中 word", "snow man word"),
        ("yeeeeeeees!!!!!!", "yeeees!!!!"),
        ("₹5 and €6", "₹5 and €6"),
        ("'-\u094d.\u094d S\u093c 9\u200d", "'-. S 9"),
        ("\u0915\u093c\u093e\u0902\u094d\u200d\u094d", "\u0915\u093c\u093e\u0902"),
        ("ज़िन्दगी ॵ", "ज\u093cिन्दगी"),
        ("\u0972प", "\u0905\u0945प"),
    ],
)
def test_unknown_characters_are_spelt_plainly_or_left_out(text: str, plain: str) -> None:
    assert sanitized(text) == plain


@given(st.integers(min_value=0, max_value=10**16))
def test_a_figure_keeps_every_digit(figure: int) -> None:
    assert sanitized(f"It costs {figure} rupees.") == f"It costs {figure} rupees."


@pytest.mark.parametrize("figure", ["100000", "1000000", "१०००००", "PIN 000000", "id 11111"])
def test_equal_digits_are_kept(figure: str) -> None:
    assert sanitized(figure) == figure


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("½ cup", "1/2 cup"),
        ("1½ cups", "1 1/2 cups"),
        ("10² and 5 m²", "10 2 and 5 m 2"),
        ("x₂", "x 2"),
        ("5 ≠ 3, ≥ 10", "5 != 3, >= 10"),
        ("±5 and 6÷2", "+-5 and 6/2"),
        ("①②", "1 2"),
    ],
)
def test_a_character_made_of_others_keeps_its_value(text: str, plain: str) -> None:
    assert sanitized(text) == plain


@given(st.text(max_size=600))
def test_any_text_becomes_short_runs_of_known_characters(text: str) -> None:
    clean = sanitized(text)

    assert all(len(run) <= LONGEST_RUN for run in clean.split())
    assert sanitized(clean) == clean
    assert all(ord(character) < 0x20BA for character in clean)


@given(st.text(alphabet="abc .,;\u0964", max_size=2000))
def test_portions_are_short_and_lose_no_word(text: str) -> None:
    clean = sanitized(text)
    cut = portions(clean)

    assert " ".join(cut).split() == clean.split()
    assert all(0 < len(portion) <= LONGEST_PORTION for portion in cut)


def test_a_long_text_is_cut_at_the_last_clause_that_fits() -> None:
    first = "word " * 60 + "end,"
    cut = portions(f"{first} {'more ' * 60}stop.")

    assert cut[0] == first


def test_a_text_that_crashed_is_retried_as_words_alone() -> None:
    assert plain_words("U.S.A. [[x]] नमस्ते! " + "w" * 30) == "U S A x नमस्ते " + "w" * 20


@given(st.text(alphabet="a.-' 9\u0915\u093c\u093e\u094d\u0902\u200d", max_size=300))
def test_a_sign_always_follows_a_letter_of_its_script(text: str) -> None:
    clean = sanitized(text)

    assert (
        re.search(
            "(?<![\u0915\u093c\u093e\u094d\u0902\u200d])[\u093c\u093e\u094d\u0902\u200d]", clean
        )
        is None
    )
    assert sanitized(clean) == clean


@pytest.mark.long
async def test_no_random_text_crashes_a_worker(tmp_path: Path) -> None:
    dice = random.Random(20_261_120)
    worker = EspeakWorker(tmp_path / "w")
    await worker.start()
    pid = worker.pid
    try:
        for number in range(300):
            alphabet = dice.choice(ALPHABETS)
            text = "".join(dice.choices(alphabet, k=dice.choice((3, 20, 400))))
            for portion in portions(sanitized(text)):
                await worker.run(Order("hi" if number % 2 else "en-us", portion, rate=450))
        assert worker.pid == pid
    finally:
        await worker.stop()


@pytest.mark.parametrize(
    ("text", "letters"),
    [
        ("这是一个中文句子。", "the Chinese script"),
        ("これは日本語です。", "the Japanese script"),
        ("한국어 문장입니다.", "the Korean script"),
        ("Это русское предложение.", "the Cyrillic script"),
        ("هذه جملة.", "the Arabic script"),
        ("שלום עולם.", "the Hebrew script"),
        ("นี่คือประโยค", "the Thai script"),
        ("Αυτή είναι μια πρόταση.", "the Greek script"),
        ("இது ஒரு வாக்கியம்.", "the Tamil script"),
        ("\U00010300\U00010301", "the Old Italic script"),
        ("ə ʃ", "these letters"),
        ("Ƶ", "these letters"),
        ("µ", "these letters"),
        ("ॵ", "these letters"),
        ("\u02bb", "these letters"),
        ("这是 a.", None),
        ("Это 5.", None),
        ("naïve Ærø", None),
        ("यह हिंदी है।", None),
        ("ॲ", None),
        ("\uff28\uff49", None),
        ("... !", None),
    ],
)
def test_a_text_without_a_readable_letter_is_known_by_its_script(
    text: str, letters: str | None
) -> None:
    assert unread_letters(text) == letters
