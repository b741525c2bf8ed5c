# ruff: noqa: RUF001  # signs that look like others are the point
"""A figure sounds like its words, from the text to espeak-ng's phonemes."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speech.engines import Engine
from speech.engines.sanitize import sanitized
from speech.synthesis.sentence import Speaker
from speech.synthesis.sentence import prepared as prepared_for
from speech.synthesis.text_process import TextProcess
from speech.text.language import Language
from speech.text.normalise.locale import region_of
from speech.text.preparation import prepared
from speech.voices.snapshot import VoiceRef
from tests.support.speech.espeak_voice import EspeakVoice
from tests.support.speech.speech_server import described

AMERICAN = VoiceRef("ava", "en", "en-us+f3", None)
BRITISH = VoiceRef("emma", "en", "en-gb-x-rp+f2", None)
HINDI = VoiceRef("asha", "hi", "hi+f2", None)


def heard(text: str, voice: VoiceRef, espeak_voice: EspeakVoice) -> str:
    language = Language(voice.language)
    region = region_of(voice.engine_voice, language)
    words = prepared(text, language, region, only_clean=False)
    return espeak_voice.phonemes(sanitized(words), voice.engine_voice.partition("+")[0])


@pytest.mark.parametrize(
    ("voice", "figure", "words"),
    [
        (AMERICAN, "1,000,000 people", "one million people"),
        (AMERICAN, "1000000 people", "one million people"),
        (AMERICAN, "1 000 000 people", "one million people"),
        (AMERICAN, "100000", "one hundred thousand"),
        (AMERICAN, "1,00,000", "one lakh"),
        (AMERICAN, "10,00,00,000", "ten crore"),
        (AMERICAN, "$2,500,000", "two million five hundred thousand dollars"),
        (AMERICAN, "½ cup", "half a cup"),
        (AMERICAN, "10²", "ten squared"),
        (AMERICAN, "5 ≠ 3", "five not equal to three"),
        (AMERICAN, "in 1984", "in nineteen eighty four"),
        (AMERICAN, "12/05/2024", "December fifth, twenty twenty four"),
        (AMERICAN, "**5 > 3**", "five greater than three"),
        (AMERICAN, "AT&amp;T", "AT and T"),
        (BRITISH, "12/05/2024", "the twelfth of May twenty twenty four"),
        (BRITISH, "101", "one hundred and one"),
        (HINDI, "₹1,00,000", "एक लाख रुपये"),
        (HINDI, "१,००,०००", "एक लाख"),
        (HINDI, "1000000", "दस लाख"),
        (HINDI, "½ किलो", "आधा किलो"),
        (HINDI, "10:30 बजे", "साढ़े दस बजे"),
        (HINDI, "mujhe 500 rupaye do", "mujhe पाँच सौ rupaye do"),
    ],
)
def test_a_figure_sounds_like_its_words(
    voice: VoiceRef, figure: str, words: str, espeak_voice: EspeakVoice
) -> None:
    said = heard(figure, voice, espeak_voice)
    assert said
    assert said == heard(words, voice, espeak_voice)


@given(number=st.integers(0, 10**15).filter(lambda number: len(str(number)) not in (4, 10)))
def test_grouping_changes_no_sound(number: int, espeak_voice: EspeakVoice) -> None:
    plain = heard(str(number), AMERICAN, espeak_voice)
    assert plain == heard(f"{number:,}", AMERICAN, espeak_voice)
    assert heard(str(number), HINDI, espeak_voice) == heard(f"{number:,}", HINDI, espeak_voice)


async def test_a_server_that_reads_figures_itself_gets_them_as_written() -> None:
    voice = VoiceRef("x", "en", "noah", described("http://127.0.0.1", normalizes_text=True))
    text = "10m users paid $3.50 &amp; left 😀"
    speaker = Speaker(voice, cast(Engine, None), TextProcess(), "organization")
    assert (await prepared_for(text, speaker)).strip() == "10m users paid $3.50 & left"
