"""Which words of SSML's ``phoneme`` an engine gets in their place."""

from __future__ import annotations

from typing import cast

import pytest

from speech.engines import Engine
from speech.synthesis.script import read_script
from speech.synthesis.sentence import LONGEST_UTTERANCE, Speaker, Words, read_sentence
from speech.synthesis.stand_ins import stood_in
from speech.synthesis.text_process import TextProcess
from speech.text.pronunciations import MOST_GROWTH, MOST_STAND_INS, STAND_IN, Growth
from speech.text.tags import Pause, Phonemes
from speech.voices.snapshot import VoiceRef

A = "<phoneme ph='a'>"
END = "</phoneme>"


@pytest.mark.parametrize(
    ("content", "text", "words"),
    [
        (f"I say {A}tomato{END}, you {A}to&amp;{END}.", "I say Qzxaa, you Qzxab.", ["tomato", "to&"]),
        (f"a{A} b {END}c, 5{A}d{END}'s", "a Qzxaa c, 5 Qzxab's", ["b", "d"]),
        (f"{A}b{END}{A}c{END}", "Qzxaa Qzxab", ["b", "c"]),
        ("no sounds", "no sounds", []),
    ],
)  # fmt: skip
def test_each_word_has_a_stand_in(content: str, text: str, words: list[str]) -> None:
    [sentence] = read_script(f"<speak>{content}</speak>").sentences

    changed, stand_ins = stood_in(sentence, Growth(), takes_ipa=True)
    assert (changed.text, [each.word for each in stand_ins]) == (text, words)
    as_written, none = stood_in(sentence, Growth(), takes_ipa=False)
    assert (as_written.text, none) == (sentence.text, [])
    assert not any(isinstance(mark, Phonemes) for _, mark in (*changed.marks, *as_written.marks))


def test_other_marks_stay_between_the_same_words() -> None:
    text = f"<speak>One {A}two{END}[pause] three {A}four{END}<break/></speak>"
    [sentence] = read_script(text).sentences

    changed, _ = stood_in(sentence, Growth(), takes_ipa=True)

    assert changed.text == "One Qzxaa three Qzxab"
    assert changed.marks == ((9, Pause(0.5)), (21, Pause(0.5)))


def test_a_word_in_two_sentences_and_one_that_makes_the_text_too_long_are_as_written() -> None:
    first, second = read_script(f"<speak>{A}Oh. What{END} now?</speak>").sentences
    assert stood_in(first, Growth(), takes_ipa=True)[0].text == "Oh. "
    assert stood_in(second, Growth(), takes_ipa=True)[0].text == "What now?"

    long = f"<phoneme ph='{'a' * 90}'>b</phoneme> "
    [sentence] = read_script(f"<speak>{long * 20}</speak>").sentences
    changed, stand_ins = stood_in(sentence, Growth(), takes_ipa=True)
    assert len(stand_ins) == MOST_GROWTH[1] // 89
    assert changed.text.endswith("b b ")


def test_no_stand_in_stands_for_two_words() -> None:
    text = "<speak>" + f"{A}b{END} " * (MOST_STAND_INS + 2) + "</speak>"
    [sentence] = read_script(text).sentences

    changed, stand_ins = stood_in(sentence, Growth(), takes_ipa=True)

    assert len({each.stand_in for each in stand_ins}) == len(stand_ins) == MOST_STAND_INS
    assert changed.text.endswith("Qzxzz b b ")


async def test_an_engine_gets_only_the_stand_ins_of_its_part() -> None:
    between = "and so on, " * (LONGEST_UTTERANCE // 8)
    [sentence] = read_script(f"<speak>{A}one{END} {between}{A}two{END}</speak>").sentences
    voice = VoiceRef("ava", "en", "en-us", None)
    speaker = Speaker(voice, cast(Engine, None), TextProcess(), "organization")

    parts = [part for part in await read_sentence(sentence, speaker) if isinstance(part, Words)]

    assert len(parts) > 1
    for part in parts:
        assert [each.stand_in for each in part.stand_ins] == STAND_IN.findall(part.text)
