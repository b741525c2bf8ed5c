"""Sentences with their tags in place, whole or in pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speech.synthesis.script import LONGEST_SENTENCE, ScriptReader, Sentence, read_script
from speech.text.tags import NothingToSpeak, Pause, Sound, SoundName, TooManyPauses


async def test_a_script_has_its_sentences_and_its_metered_characters() -> None:
    script = read_script("Hello. [pause] World [laughs] now! [long pause]")

    assert [sentence.text for sentence in script.sentences] == ["Hello.  ", "World  now! "]
    assert script.sentences[0].marks == ((7, Pause(0.5)),)
    assert script.sentences[1].marks == ((6, Sound(SoundName.LAUGHS)), (12, Pause(1.0)))
    assert script.characters == sum(sentence.characters for sentence in script.sentences) == 20


async def test_marks_before_and_after_all_words_are_kept() -> None:
    script = read_script("[pause]Hi.\n[pause:2s]")

    assert script.sentences == (Sentence("Hi.\n", ((0, Pause(0.5)), (4, Pause(2.0)))),)


@pytest.mark.parametrize("text", ["[pause]", "... !", "[laughs] [pause:1s]\n"])
async def test_a_text_without_words_is_refused(text: str) -> None:
    with pytest.raises(NothingToSpeak):
        read_script(text)


async def test_too_many_pauses_are_refused() -> None:
    with pytest.raises(TooManyPauses):
        read_script("Hi " + "[pause]" * 21)


async def test_a_very_long_sentence_becomes_several() -> None:
    reader = ScriptReader()
    for _ in range(20):
        assert reader.feed("word " * 200) == []
    sentences = reader.flush()

    assert len(sentences) == 5
    assert all(sentence.characters <= LONGEST_SENTENCE for sentence in sentences)
    assert "".join(sentence.text for sentence in sentences) == "word " * 4000


def test_a_flush_returns_the_rest_and_keeps_marks_without_words() -> None:
    reader = ScriptReader()

    assert reader.feed("Half a sent") == []
    assert reader.flush() == [Sentence("Half a sent")]
    assert reader.feed("[pause]") == []
    assert reader.flush() == []
    assert reader.feed("More words") == []
    [sentence] = reader.flush()
    assert (sentence.text, sentence.marks) == ("More words", ((0, Pause(0.5)),))


@given(
    st.lists(
        st.sampled_from(
            ["Hello there. ", "One [pause] two ", "[laughs]", "Dr. Smith\n", "अच्छा। ", "? "]
        ),
        max_size=12,
    ).map("".join),
    st.integers(1, 9),
)
def test_how_a_text_is_cut_into_messages_changes_nothing(text: str, size: int) -> None:
    whole, pieces = ScriptReader(), ScriptReader()
    one = [*whole.feed(text), *whole.flush()]
    many = [
        sentence
        for at in range(0, len(text), size)
        for sentence in pieces.feed(text[at : at + size])
    ]
    many += pieces.flush()

    assert many == one
