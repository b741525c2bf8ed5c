"""Which written words the spoken ones stand for."""

from __future__ import annotations

import time
from itertools import chain

import pytest

from speech.engines.word_times import words_of
from speech.synthesis.script import LONGEST_SENTENCE, ScriptReader
from speech.synthesis.word_spans import set_apart, spans, with_readings, written_words
from speech.text.language import Language
from speech.text.normalise.locale import Region
from speech.text.preparation import prepared

ALL_OF_A_SENTENCE = [
    ("We met at noon.", "We met at noon", "We met at noon"),
    (
        "I paid $3.50 and left.",
        "I paid three dollars and fifty cents and left",
        "I paid $3.50 $3.50 $3.50 $3.50 $3.50 and left",
    ),
    (
        "**Dr.** Smith's _well-known_ tea",
        "Doctor Smith's well known tea",
        "Dr Smith's well known tea",
    ),
    ("See [the docs](https://x.y/z) (now)!", "See the docs now", "See the docs now"),
    (
        "It is 10:30 now, e.g. here",
        "It is ten thirty now for example here",
        "It is 10:30 10:30 now e.g e.g here",
    ),
    ("5 kg of 20% salt", "five kilograms of twenty percent salt", "5 kg of 20% 20% salt"),
    ("Hi 😀 there — yes", "Hi there yes", "Hi there yes"),
    ("mujhe 3 chai chahiye", "मुझे तीन चाय चाहिए", "mujhe 3 chai chahiye"),
    ("यह 3 किताबें हैं", "यह तीन किताबें हैं", "यह 3 किताबें हैं"),
    ("7", "seven", "7"),
    ("...", "", ""),
]


@pytest.mark.parametrize(("written", "spoken", "stands_for"), ALL_OF_A_SENTENCE)
def test_a_spoken_word_stands_for_a_written_one(written: str, spoken: str, stands_for: str) -> None:
    found = spans(written_words(written), spoken.split())

    assert [written[start:end] for start, end in found] == stands_for.split()


@pytest.mark.parametrize(
    ("written", "region", "stands_for"),
    [
        ("I paid $3.50 and €20.", Region.US, "I paid 5*$3.50 and 2*€20"),
        ("$3.50 and $4.50 and left", Region.US, "5*$3.50 and 5*$4.50 and left"),
        ("£1,250 and 30p", Region.GB, "7*£1,250 and 2*30p"),
        ("It was 101 and then 7", Region.GB, "It was 4*101 and then 7"),
        ("3.5 point 2", Region.US, "3*3.5 point 2"),
        ("5-10 to 3", Region.US, "3*5-10 to 3"),
        ("3/4 of 1/2 cup", Region.US, "2*3/4 of 2*1/2 cup"),
        ("a.com dot me@b.org", Region.US, "3*a.com dot 5*me@b.org"),
        ("₹20 and 5 kg and 10%", Region.IN, "2*₹20 and 5 kg and 2*10%"),
        ("AT&amp;T &amp; me; you", Region.US, "3*AT&amp;T &amp; me you"),
        ("$2.50 million and €20", Region.US, "5*$2.50 million and 2*€20"),
    ],
)
def test_a_word_that_was_written_and_one_within_an_amount_are_told_apart(
    written: str, region: Region, stands_for: str
) -> None:
    def read(text: str) -> str:
        return prepared(text, Language.ENGLISH, region, only_clean=False)

    words = with_readings(written_words(written), read(set_apart(written_words(written))))
    found = spans(words, [word[0] for word in words_of(read(written))])

    expected: list[str] = []
    for each in stands_for.split():
        count, times, word = each.rpartition("*")
        expected += [word] * (int(count) if times else 1)
    assert [written[start:end] for start, end in found] == expected


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_words_are_found_again_behind_tags_and_in_pieces_of_text(step: int) -> None:
    text = "[pause]  One [laughs]two. [pause:500ms] Three[pause] four! <break time='1s'/> Five."
    words = ["One", "two", "Three", "four", "Five"]
    reader, found = ScriptReader(), []
    pieces = [reader.feed(text[at : at + step]) for at in range(0, len(text), step)]
    for sentence in chain(*pieces, reader.flush()):
        written = written_words(sentence.text)
        received = sentence.received((word.start, word.end) for word in written)
        found += [text[start:end] for start, end in received]

    assert found == words


@pytest.mark.parametrize("pattern", ["1 a ", "a b ", "$1.50,", "a", "1 and ", "&amp; "])
def test_the_worst_sentences_take_little_time(pattern: str) -> None:
    text = (pattern * LONGEST_SENTENCE)[:LONGEST_SENTENCE]
    spoken = prepared(text, Language.ENGLISH, Region.US, only_clean=False).split()
    alone = prepared(set_apart(written_words(text)), Language.ENGLISH, Region.US, only_clean=False)
    taken = []
    for _ in range(3):
        began = time.thread_time()
        spans(with_readings(written_words(text), alone), spoken)
        taken.append(time.thread_time() - began)

    assert min(taken) < 0.2
