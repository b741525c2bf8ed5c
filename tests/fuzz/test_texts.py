# ruff: noqa: RUF001  # letters that look alike are the point
"""Texts to be spoken, made of tokens of their grammars: nothing of them is lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from speech.synthesis.script import ScriptReader, Sentence
from speech.text.tags import TagError, TagReader, Text, characters, has_words
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
        *("\n", "\r\n", "\u2028", " ", "  ", "\t", "\u200d", "\u0301", "\ue0f0", "\ue0f1", "😀"),
        "\x00",
    ),
]
SPEECH = st.lists(
    st.sampled_from(TAGS) | st.sampled_from(NEARLY) | st.sampled_from(WORDS) | st.text(max_size=6),
    max_size=40,
).map("".join)
"""Texts with tags, sometimes with too many or too long ones."""


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
    assert "".join(split(text)) == text


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
