"""The input of the neural engine (clauses, symbols, runs), and time stretching."""

from __future__ import annotations

import time

import numpy as np
import pytest

from speech.audio.pcm import SAMPLE_RATE, samples
from speech.engines.espeak.engine import Espeak
from speech.engines.kokoro.engine import stretched
from speech.engines.kokoro.files import VOICES, UnknownKokoroVoice, parse_voice
from speech.engines.kokoro.phonemes import english, hindi, tokens
from speech.engines.kokoro.runs import (
    FIRST_MOST,
    INTERACTIVE_MOST,
    LATER_MOST,
    Clause,
    clauses,
    runs,
)
from speech.engines.sanitize import sanitized
from tests.support.speech.listening import median_pitch


def of(text: str) -> list[tuple[str, str]]:
    return [(clause.words, clause.mark) for clause in clauses(sanitized(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello there.", [("Hello there", ".")]),
        ("Well, yes!", [("Well", ","), ("yes", "!")]),
        ("Dr. Smith left.", [("Dr. Smith left", ".")]),
        ("It is 3.5 at 10:30, ok?", [("It is 3.5 at 10:30", ","), ("ok", "?")]),
        ("She said “no.” Then she left.", [('She said "no', "."), ("Then she left", ".")]),
        ("Wait… what — now", [("Wait", "…"), ("what", "—"), ("now", "")]),
        ("One (or two) of them", [("One", ","), ("or two", ","), ("of them", "")]),
        ("नमस्ते, आप कैसे हैं?", [("नमस्ते", ","), ("आप कैसे हैं", "?")]),
        ("मैं घर जा रहा हूँ।", [("मैं घर जा रहा हूँ", ".")]),
        ("a well-known e-mail", [("a well-known e-mail", "")]),
        ("?!", []),
        ("", []),
    ],
)
def test_clauses_end_where_a_reader_pauses(text: str, expected: list[tuple[str, str]]) -> None:
    assert of(text) == expected


def test_hostile_text_is_cut_in_linear_time() -> None:
    began = time.thread_time()
    for hostile in ("( " * 20_000, "." * 40_000, " -" * 20_000, '") ' * 13_000, "a" * 40_000):
        clauses(sanitized(hostile))
    assert time.thread_time() - began < 5.0


def test_diphthongs_and_affricates_are_one_symbol() -> None:
    assert english("həlˈo^ʊ ðˈɛɹ") == "həlˈO ðˈɛɹ"
    assert english("d^ʒˈʌmpɪŋ t^ʃˈiːz bˈʌʔn\u0329") == "ʤˈʌmpɪŋ ʧˈiz bˈʌtᵊn"
    assert english("ɡˌə^ʊ", british=True) == "ɡˌQ"
    assert hindi("(^e^n)wɒts ˈap(^h^i) pˈʌɾ") == "wɒts ˈap pˈʌɾ"


def test_symbols_that_the_model_does_not_know_are_left_out() -> None:
    assert tokens("a\u4e00b\x00") == tokens("ab") == [43, 44]
    assert tokens("ẽ") == [47, 17]
    assert tokens("\u4e00") == []


async def test_espeak_makes_phonemes_that_the_model_knows() -> None:
    espeak = Espeak(workers=1)
    try:
        american, british, mixed = [
            (await espeak.phonemes(voice, (text,), ""))[0]
            for voice, text in (
                ("en-us", "Please jump over the old boat now"),
                ("en", "Please jump over the old boat now"),
                ("hi", "आज मौसम बहुत अच्छा है और हम WhatsApp पर बात करेंगे"),
            )
        ]
    finally:
        await espeak.close()

    assert english(american) == "plˈiz ʤˈʌmp ˌOvəɹ ðɪ ˈOld bˈOt nˈW"
    for symbols in (english(american), english(british, british=True), hindi(mixed)):
        assert len(tokens(symbols)) >= len(symbols) - 2, symbols


def test_a_short_text_is_one_run() -> None:
    spoken = [Clause("ɡʊd mˈɔɹnɪŋ", ","), Clause("hˌW ɑɹ ju", "?")]

    assert [run.symbols for run in runs(spoken)] == ["ɡʊd mˈɔɹnɪŋ, hˌW ɑɹ ju?"]


def test_the_first_run_of_a_long_text_is_short_and_all_are_bounded() -> None:
    spoken = [Clause("wˈʌn tˈu θɹˈi fˈɔɹ", ",")] * 20 + [Clause("ˈAt nˈIn " * 60, ".")]
    made = runs(spoken)

    assert len(made[0].symbols) <= FIRST_MOST
    assert made[0].pause > 0.1
    assert max(len(run.symbols) for run in made) <= max(LATER_MOST)
    assert "".join("".join(run.symbols.split()) for run in made) == "".join(
        "".join((clause.words + clause.mark).split()) for clause in spoken
    )


def test_a_very_long_word_is_bounded() -> None:
    assert max(len(run.symbols) for run in runs([Clause("a" * 5000, ".")])) <= max(LATER_MOST)


def test_every_run_of_an_interactive_text_is_short() -> None:
    spoken = [Clause(" ".join(["ˈɔlwAz"] * count), ",") for count in (2, 30, 7, 9, 1, 12)]
    lengths = [len(run.symbols) for run in runs(spoken, is_interactive=True)]

    assert max(lengths) <= INTERACTIVE_MOST
    assert min(lengths[1:-1]) >= 40


def test_only_voices_of_the_list_are_known() -> None:
    assert {parse_voice(name).language for name in VOICES} == {"en", "hi"}
    assert (parse_voice("bf_emma").espeak_voice, parse_voice("hm_psi").espeak_voice) == ("en", "hi")
    for name in ("", "af_", "../af_heart", "af_heart\n", "ef_dora"):
        with pytest.raises(UnknownKokoroVoice, match="no voice"):
            parse_voice(name)


@pytest.mark.parametrize("factor", [0.36, 0.5, 1.5, 2.67])
def test_stretched_speech_has_its_length_and_keeps_its_pitch(factor: float) -> None:
    at = np.arange(2 * SAMPLE_RATE) / SAMPLE_RATE
    tone = sum(np.sin(2 * np.pi * 150 * n * at) / n for n in range(1, 6))
    sound = np.rint(6000 * np.asarray(tone)).astype(np.int16)

    changed = stretched(sound, factor)

    assert len(changed) == pytest.approx(len(sound) / factor, rel=0.02)
    assert median_pitch(changed.tobytes()) == pytest.approx(150, rel=0.03)
    assert np.abs(samples(changed.tobytes()).astype(int)).max() < 20_000
