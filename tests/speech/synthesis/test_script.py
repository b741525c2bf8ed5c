"""Sentences with their tags in place, whole or in pieces."""

from __future__ import annotations

from speech.synthesis.script import LONGEST_SENTENCE, ScriptReader, Sentence, read_script
from speech.text.tags import Pause, Sound, SoundName


async def test_a_script_has_its_sentences_and_its_metered_characters() -> None:
    script = read_script("Hello. [pause] World [laughs] now! [long pause]")

    assert [sentence.text for sentence in script.sentences] == ["Hello.  ", "World  now! "]
    assert script.sentences[0].marks == ((7, Pause(0.5)),)
    assert script.sentences[1].marks == ((6, Sound(SoundName.LAUGHS)), (12, Pause(1.0)))
    assert script.characters == sum(sentence.characters for sentence in script.sentences) == 20


async def test_marks_before_and_after_all_words_are_kept() -> None:
    [sentence] = read_script("[pause]Hi.\n[pause:2s]").sentences

    assert sentence.text == "Hi.\n"
    assert sentence.marks == ((0, Pause(0.5)), (4, Pause(2.0)))


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
