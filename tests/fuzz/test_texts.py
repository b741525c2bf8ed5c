# ruff: noqa: RUF001  # letters that look alike are the point
"""Texts to be spoken, made of tokens of their grammars: no text is lost, and none takes long."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from speech.synthesis.script import ScriptReader, Sentence
from speech.text.hindi.detect import prepare, transliterate
from speech.text.sentences import clauses
from speech.text.tags import TagError, TagReader, Text, characters, has_words
from speech.wire import LONGEST_INPUT
from tests.support.fuzzing.mutations import within
from tests.support.texts.splitting import split

TAGS = [
    *("[pause]", "[short pause]", "[LONG PAUSE]", "[pause:1.5s]", "[pause:500ms]", "[Laughs]"),
    *('<break time="1s"/>', "<break time='20ms' />", "[sigh]", "[clear throat]", "[whispers]"),
]
NEARLY = [
    *("[", "]", "<", "/>", "[pause", "[pause:", "[pause:1.5", "[pause:99s]", "[[pause]]", "<break"),
    *('<break time="', "[laughs", "[laughs ]", "[pausé]", "[pause:１s]", "[pause:1e9s]"),
]
WORDS = [
    *("Hello", "Dr.", "U.S.", "3.14", "e.g.", "मैं", "घर", "नमस्ते", "mujhe", "chai", "nahi", "why"),
    *("https://a.example/b?c=1.2", "J. K.", "Rs. 500", "…", "?!", "।", "॥", '"', "”", ")", "***"),
    *(
        "\n",
        "\r\n",
        "\u2028",
        " ",
        "  ",
        "\t",
        "\u200d",
        "\u0301",
        "\ue0f0",
        "\ue0f1",
        "😀",
        "\x00",
    ),
]
SPEECH = st.lists(
    st.sampled_from(TAGS) | st.sampled_from(NEARLY) | st.sampled_from(WORDS) | st.text(max_size=6),
    max_size=40,
).map("".join)
"""Texts with tags, sometimes with too many or too long ones."""


@pytest.fixture(scope="module", autouse=True)
def lexicons() -> None:
    """Load the lexicons before anything is timed, as a worker does when it starts."""
    prepare()


def cut(text: str, places: list[int]) -> list[str]:
    ends = [0, *sorted(min(place, len(text)) for place in places), len(text)]
    return [text[start:end] for start, end in pairwise(ends)]


CUTS = st.lists(st.integers(0, 300), max_size=10)


def script(pieces: list[str]) -> list[Sentence] | str:
    """Return the sentences, or the error in the tags."""
    reader = ScriptReader()
    try:
        found = [sentence for piece in pieces for sentence in reader.feed(piece)]
        return [*found, *reader.flush()]
    except TagError as error:
        return type(error).__name__


@given(text=SPEECH)
def test_tags_and_texts_are_the_whole_text(text: str) -> None:
    reader = TagReader()
    try:
        parts = [*reader.feed(text), *reader.finish()]
    except TagError:
        return
    between = [part.text for part in parts if isinstance(part, Text)]
    position = 0
    for piece in between:
        position = text.index(piece, position) + len(piece)
    assert characters(parts) == sum(map(len, between)) <= len(text)
    assert "".join(between) == text or len(parts) > len(between)


@given(text=SPEECH)
def test_sentences_joined_are_the_text(text: str) -> None:
    with within(1):
        assert "".join(split(text)) == text


@given(text=SPEECH, places=CUTS)
def test_the_cuts_between_messages_change_nothing(text: str, places: list[int]) -> None:
    with within(1):
        whole = script([text])
    assert script(cut(text, places)) == whole
    assert script(list(text)) == whole


@given(text=SPEECH)
def test_every_word_is_in_a_sentence(text: str) -> None:
    found = script([text])
    if isinstance(found, str):
        return
    parts = (reader := TagReader()).feed(text) + reader.finish()
    words = "".join(part.text for part in parts if isinstance(part, Text))
    spoken = "".join(sentence.text for sentence in found)
    assert _letters(spoken) == _letters(words)
    assert all(has_words(sentence.text) for sentence in found)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


@given(text=SPEECH, longest=st.integers(16, 80))
def test_clauses_joined_are_the_sentence(text: str, longest: int) -> None:
    pieces = clauses(text, longest)
    assert "".join(pieces) == text
    assert all(len(piece) <= longest for piece in pieces)


HINDI = st.lists(
    st.sampled_from(
        [*WORDS, "namaste", "kya", "hai", "ka", "don't", "API", "a1", "x" * 41, "https://"]
    )
    | st.text("aeiouknrth'’ .@", max_size=12)
    | st.text(max_size=5),
    max_size=30,
).map("".join)


@example(text="nn")
@given(text=HINDI)
def test_transliteration_changes_latin_words_only(text: str) -> None:
    with within(1):
        changed = transliterate(text)
    between = re.split("[A-Za-z]+", text)
    position = 0
    for piece in between:
        found = changed.find(piece, position)
        assert found >= 0
        position = found + len(piece)
    assert has_words(changed) == has_words(text)
    assert transliterate(changed) == transliterate(transliterate(changed))
    assert unicodedata.is_normalized("NFC", changed) or not unicodedata.is_normalized("NFC", text)


PATTERNS = [
    *("[", "<", "[pause", "<break time=", '<break time="1', "[[", "]", ".", "a.", "a. ", "A. "),
    *(
        '"',
        ' "',
        "”",
        ") ",
        "Dr.",
        "Dr. ",
        "1. ",
        "…",
        "?!",
        "। ",
        "\n",
        "\r",
        " ",
        "\u0301",
        "\u200d",
    ),
    *(
        "www.",
        "a@",
        "://",
        "a'",
        "a’",
        "x",
        "kya ",
        "Rs.",
        "Fig. ",
        "e.g. ",
        "U.",
        "***",
        "1,",
        "१",
    ),
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_hostile_text_takes_no_longer_than_another(pattern: str) -> None:
    text = "Hello " + (pattern * LONGEST_INPUT)[: LONGEST_INPUT - 12] + " end."
    with within(1):
        script([text])
    with within(1):
        script(list(text[:1000]))
    with within(1):
        transliterate(text)
    with within(1):
        clauses(text, 300)
