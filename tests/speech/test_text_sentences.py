"""Sentences and clauses: where a text is cut, and that the cut does not depend on its delivery."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speech.text.script import Script, Sentence, sentences_of
from speech.text.sentences import SentenceSplitter, clauses, split
from speech.text.tags import NothingToSpeak, Pause, Text, characters, parse

CASES = [
    "Hello there.| How are you?| Fine!",
    "Dr. Smith met Mrs. Jones.| They paid $3.50 for it.",
    "J. K. Rowling wrote it.| She lives in the U.K. with others.",
    "See https://a.example/b?c=1.2 for more.| It is v2.0.1 now.",
    '"Yes," she said.| "Come in!"| He came in.',
    "Wait… what?| Nothing.",
    "It costs Rs. 500 today.| See Fig. 3 there.",
    "We came on Dec. 25 last year.| It snowed.",
    "He asked e.g. for tea.| I made some.",
    "We lost.| (It was bad.| Really bad.)| Then home.",
    "No. 5 is here.| No.| That is all.",
    "1. First item.| Second thing.\n|2. Next one.\n",
    "A title\n|And the text.",
    "नमस्ते।| आप कैसे हैं?| मैं ठीक हूँ॥| चलो।",
    "डॉ. शर्मा आए।| श्री. वर्मा गए।",
    "पहला।|दूसरा वाक्य है।",
    "mera naam Amit hai.| aap kaise hain?| theek.",
]


@pytest.mark.parametrize("marked", CASES)
def test_sentences_end_where_a_reader_ends_them(marked: str) -> None:
    expected = [sentence.strip() for sentence in marked.split("|")]
    assert [sentence.strip() for sentence in split(marked.replace("|", ""))] == expected


def test_a_sentence_is_given_when_one_further_word_is_complete() -> None:
    splitter = SentenceSplitter()
    assert splitter.feed("Hello there. How") == []
    assert splitter.feed(" are") == ["Hello there. "]
    assert splitter.feed(" you?\n") == ["How are you?\n"]
    assert splitter.flush() == []


def test_marks_without_words_are_no_sentence_of_their_own() -> None:
    assert all(any(map(str.isalnum, piece)) for piece in split("Hello. *** ... World is. ..."))
    assert split("Hello there.\n***\nWorld.") == ["Hello there.\n", "***\nWorld."]


TEXTS = st.lists(
    st.sampled_from(
        [
            "Hello", "Dr.", "U.S.", "a.", "3.5", "1.", "No.", "(", ")", '"', "'", "?!", "…", "।",
            "॥", "नमस्ते", "डॉ.", " ", " ", " ", "  ", "\n", "\r\n", "World", "he", "[pause]", "😀",
            "[laughs]", "\ue0f0", "\ue0f1", "e.g.", "[", "<break time=\"1s\"/>", "。",
        ]
    ),
    max_size=40,
).map("".join)  # fmt: skip


@given(text=TEXTS, cuts=st.lists(st.integers(0, 200), max_size=10))
def test_any_cutting_into_messages_gives_the_same_sentences(text: str, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    splitter = SentenceSplitter()
    given_sentences = [
        sentence for start, end in pairwise(edges) for sentence in splitter.feed(text[start:end])
    ]
    assert [*given_sentences, *splitter.flush()] == split(text)
    assert "".join(split(text)) == text


def script_of(text: str, size: int) -> list[Sentence]:
    script = Script()
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    return [s for piece in pieces for s in script.feed(piece)] + script.finish()


@given(text=TEXTS.filter(lambda text: text.count("[pause]") + text.count("<break") <= 20))
def test_sentences_with_tags_keep_every_character_and_tag(text: str) -> None:
    whole = script_of(text, max(1, len(text)))
    assert script_of(text, 1) == whole
    parts = [part for sentence in whole for part in sentence.parts]
    expected = parse(text + "[sigh]x")
    assert sum(sentence.characters for sentence in whole) == characters(expected) - 1
    assert [p for p in parts if not isinstance(p, Text)] == [
        p for p in expected if not isinstance(p, Text)
    ][:-1]
    assert all(sentence.has_words for sentence in whole[:-1])


def test_a_pause_stays_beside_its_words() -> None:
    assert sentences_of("Hello there. [pause] How are [pause:1s] you?") == [
        Sentence((Text("Hello there. "),)),
        Sentence((Pause(0.5), Text(" How are "), Pause(1.0), Text(" you?"))),
    ]


def test_only_tags_are_nothing_to_speak() -> None:
    with pytest.raises(NothingToSpeak):
        sentences_of("[pause] ... [laughs]")


@given(text=st.text(max_size=300), longest=st.integers(16, 60))
def test_clauses_are_short_and_lose_nothing(text: str, longest: int) -> None:
    pieces = clauses(text, longest)
    assert "".join(pieces) == text
    assert all(0 < len(piece) <= longest for piece in pieces)


def test_clauses_are_cut_after_punctuation_then_at_spaces() -> None:
    assert clauses("When it rains, we stay at home and read.", 24) == [
        "When it rains, ",
        "we stay at home and ",
        "read.",
    ]


def test_a_devanagari_syllable_is_not_torn() -> None:
    pieces = clauses("क्षि" * 20, 17)
    assert all(piece.startswith("क") and piece.endswith("ि") for piece in pieces)


@pytest.mark.parametrize("unit", ["(a. b. ", "a", "। ", "\n", "( ", '"A b. ', "[pause "])
def test_a_hostile_text_is_split_in_bounded_time(unit: str) -> None:
    text = (unit * 20_000)[:20_000]
    started = time.process_time()
    assert "".join(split(text)) == text
    assert time.process_time() - started < 5
