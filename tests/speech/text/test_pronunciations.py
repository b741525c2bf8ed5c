"""Which words of a text an account's pronunciations are for, and what is spoken for them."""

from __future__ import annotations

import time

import pytest

from speech.text.pronunciations import (
    MOST_STAND_INS,
    Alphabet,
    Growth,
    Lexicon,
    Pronunciation,
    StandIn,
)

LEXICON = Lexicon(
    [
        Pronunciation("IT", "eye tee", case_sensitive=True),
        Pronunciation("nginx", "engine x"),
        Pronunciation("C++", "see plus plus"),
        Pronunciation("New York", "Noo Yawk"),
        Pronunciation("new", "noo"),
        Pronunciation("can", "ken"),
        Pronunciation("ङी", "एन जी"),
        Pronunciation("café", "kaffay"),
        Pronunciation("911", "nine one one"),
        Pronunciation("3.5", "three and a half"),
    ]
)


def spoken(text: str) -> str:
    return LEXICON.replaced(text, [], Growth())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("NGINX and nginx's log", "engine x and engine x's log"),
        ("xnginx nginx2 nginx_conf", "xnginx nginx2 nginx_conf"),
        ("nginx-based, (nginx)", "engine x-based, (engine x)"),
        ("IT is it", "eye tee is it"),
        ("in new  york, New things", "in Noo Yawk, noo things"),
        ("C++ and C", "see plus plus and C"),
        ("I can't, can I? Can's", "I can't, ken I? ken's"),
        ("ङी ङीप", "एन जी ङीप"),
        ("cafe\u0301 caf\u00e9 cafe", "kaffay kaffay cafe"),
        ("911, or 911. $911", "nine one one, or nine one one. $nine one one"),
        ("1,911 911.50 9:911 911,000", "1,911 911.50 9:911 911,000"),
        ("3.5 and 3.55, 13.5 or 3.5.1", "three and a half and 3.55, 13.5 or 3.5.1"),
        ("nothing of it", "nothing of it"),
        ("", ""),
    ],
)
def test_whole_words_are_replaced_whatever_their_case(text: str, expected: str) -> None:
    assert spoken(text) == expected


def test_a_word_of_ipa_has_a_stand_in_of_its_own() -> None:
    lexicon = Lexicon([Pronunciation("kubectl", "kub", Alphabet.IPA), Pronunciation("a", "ah")])
    stand_ins: list[StandIn] = []

    text = lexicon.replaced("Kubectl, a kubectl.", stand_ins, Growth())

    names = [each.stand_in for each in stand_ins]
    assert text == f"{names[0]}, ah {names[1]}."
    assert [(each.word, each.ipa) for each in stand_ins] == [
        ("Kubectl", "kub"),
        ("kubectl", "kub"),
    ]
    assert len(set(names)) == 2


def test_words_for_which_there_are_no_more_stand_ins_are_as_written() -> None:
    lexicon = Lexicon([Pronunciation("cat", "kat", Alphabet.IPA)])
    stand_ins: list[StandIn] = []

    text = lexicon.replaced("cat " * (MOST_STAND_INS + 2), stand_ins, Growth())

    assert text.endswith("Qzxzz cat cat ")
    assert len(stand_ins) == MOST_STAND_INS


def test_a_short_text_does_not_become_a_long_one() -> None:
    lexicon = Lexicon([Pronunciation("a", "b" * 100)])

    def spoken(*sentences: str) -> int:
        growth = Growth()
        total = 0
        for sentence in sentences:
            growth.begin(len(sentence))
            total += len(lexicon.replaced(sentence, [], growth))
        return total

    assert spoken("a") == 100
    assert spoken("a " * 2000) <= 3 * 4000 + 100
    assert spoken(*["a."] * 2000) <= 3 * 4000 + 100


def test_a_hostile_text_is_searched_in_linear_time() -> None:
    lexicon = Lexicon(Pronunciation("a " * words + "b", "c") for words in range(1, 49))
    began = time.thread_time()

    lexicon.replaced("a " * 20_000, [], Growth())
    lexicon.replaced("'a" * 20_000, [], Growth())

    assert time.thread_time() - began < 5.0
