"""Words whose sounds are given in IPA, and how espeak-ng is told them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import pairwise

import pytest

from speech.audio.pcm import duration
from speech.engines import SpokenWord, Utterance
from speech.engines.espeak.engine import Espeak
from speech.engines.espeak.mnemonics import MOST_MNEMONICS, mnemonics
from speech.engines.espeak.pool import Order
from speech.engines.espeak.worker import WithSounds
from speech.engines.kokoro.phonemes import english, hindi, tokens
from speech.text.ipa import LETTERS, UnknownPhonemes, written_ipa
from speech.text.pronunciations import StandIn, stand_in

SOUNDS = (("Qzxaa", "Kubectl", "k|j|u:"), ("Qzxab", "AT & T", "'E|n"))


@pytest.fixture
async def engine() -> AsyncIterator[Espeak]:
    engine = Espeak(workers=1)
    yield engine
    await engine.close()


def utterance(text: str, language: str = "en", **sounds: str) -> Utterance:
    voice = {"en": "en-us", "hi": "hi"}[language]
    stand_ins = tuple(StandIn(name, f"{name}?", ipa) for name, ipa in sounds.items())
    return Utterance(text, language, voice, stand_ins=stand_ins)


async def spoken(engine: Espeak, said: Utterance) -> tuple[bytes, list[SpokenWord]]:
    pieces = [piece async for piece in engine.speak_timed(said)]
    sound = b"".join(piece for piece in pieces if isinstance(piece, bytes))
    return sound, [piece for piece in pieces if isinstance(piece, SpokenWord)]


@pytest.mark.parametrize(
    ("ipa", "of_english", "of_hindi"),
    [
        ("təˈmɑːtoʊ", "t|@|'|m|A:|t|oU", "t|@|'|m|a:|t|oU"),
        ("/ˈbʌt͡ʃɝ/", "'|b|V|tS|3:|r", "'|b|V|tS|@:|r"),
        ("a.ɪ", "a|I", "a|I"),
        ("ˈlɪtl̩ ˈbʌtn̩", "'|l|I|t|@L| |'|b|V|t|n-", "'|l|I|t|@L| |'|b|V|t|n-"),
        ("bʰaʈʰ", "b|a|t.", "b#|a|t.#"),
        ("ʁɛ̃", "R|E", "R|E"),
        ("ç'é", "C|'|e", "C|'|e"),
    ],
)
def test_ipa_is_written_in_the_names_of_the_engine(
    ipa: str, of_english: str, of_hindi: str
) -> None:
    assert mnemonics(ipa, "en") == of_english
    assert mnemonics(ipa, "hi") == of_hindi


@pytest.mark.parametrize("ipa", ["x~", "T", "a1", "ˈ", "", "a]][[b", "a;b", "中"])
def test_what_is_no_ipa_is_refused(ipa: str) -> None:
    if ipa == "a]][[b":  # brackets mean nothing in it
        assert written_ipa(ipa) == "ab"
        return
    with pytest.raises(UnknownPhonemes):
        written_ipa(ipa)


def test_each_symbol_has_a_sound_in_both_engines() -> None:
    for symbol in LETTERS:
        assert all(mnemonics(symbol, language) for language in ("en", "hi")), symbol
        spelt = "b" + written_ipa(symbol) if symbol == "ʲ" else written_ipa(symbol)
        assert tokens(english(spelt)), symbol
        assert tokens(hindi(spelt)), symbol


async def test_ipa_sounds_as_the_word_that_has_its_sounds(engine: Espeak) -> None:
    word, _ = await spoken(engine, utterance("I say hello, my friend."))
    ipa, words = await spoken(engine, utterance("I say Qzxaa, my friend.", Qzxaa="həlˈoʊ"))
    other, _ = await spoken(engine, utterance("I say Qzxaa, my friend.", Qzxaa="haɪ"))

    assert abs(duration(ipa) - duration(word)) < 0.03
    assert duration(other) < duration(word) - 0.1
    assert [each.text for each in words] == ["I", "say", "Qzxaa?", "my", "friend"]
    assert all(before.end <= after.start for before, after in pairwise(words))
    assert words[2].end - words[2].start > 0.25


async def test_hindi_and_a_word_of_several_have_their_sounds(engine: Espeak) -> None:
    said = utterance("यह Qzxaa है Qzxab", "hi", Qzxaa="bʰaːʂaː", Qzxab="ˈɛndʒɪn ˈɛks")
    sound, words = await spoken(engine, said)

    assert duration(sound) > 1.0
    assert [each.text for each in words] == ["यह", "Qzxaa?", "है", "Qzxab?"]


def test_brackets_of_a_text_are_no_phonemes() -> None:
    text = WithSounds("Say [[x]] Qzxaa's [[[ and Qzxab.", SOUNDS)

    assert text.text == "Say [ [x]] [[k|j|u:]]'s [ [ [ and [['E|n]]."
    for word in ("Say", "x]]", "and"):
        assert text.ordered[text.offset(text.text.index(word)) :].startswith(word)
    assert text.ordered[text.offset(text.text.index("j|u:")) :].startswith("Qzxaa")
    assert text.ordered[text.offset(text.text.index("'E|n")) :].startswith("Qzxab.")
    assert WithSounds("Say [[x]]", SOUNDS).text == "Say [[x]]"


def test_a_word_has_no_more_sounds_than_the_engine_has_room_for() -> None:
    assert mnemonics("ɝ" * 100, "en").count("|") == MOST_MNEMONICS - 1


def test_in_a_clause_that_grows_too_long_words_are_as_written() -> None:
    sounds = [(stand_in(number), f"[[word {number}]]", "a|" * 99 + "a") for number in range(6)]
    a, b, c, d, e, f = (name for name, *_ in sounds)
    ordered = f"{a} {b} {c} {d} now, {e} {'क' * 200} {f}."
    text = WithSounds(ordered, sounds)

    ipa = f"[[{sounds[0][2]}]]"
    assert text.text == f"{ipa} {ipa} {ipa} word 3 now, {ipa} {'क' * 200} word 5."
    for said, of in (("word 3", d), ("3 now", d), ("now", "now"), ("word 5", f), ("क", "क")):
        at = text.offset(text.text.index(said))
        start = ordered.index(of)
        assert start <= at < start + len(of)


def test_a_text_that_crashed_the_engine_is_retried_with_the_words() -> None:
    order = Order("en-us", "Say Qzxaa and Qzxab.", sounds=SOUNDS)

    assert order.plainer() == Order("en-us", "Say Kubectl and AT T")
