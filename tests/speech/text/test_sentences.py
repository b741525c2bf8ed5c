"""Sentences and clauses: where a text is cut, and that the cut does not depend on its delivery."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speech.text.sentences import SentenceSplitter, clauses
from tests.support.fuzzing.mutations import within
from tests.support.texts.splitting import split

CASES = [
    "Hello there.| How are you?| Fine!",
    "Really?!| I cannot believe it.",
    "Wait!!| I said no.| Stop?!!| Now.",
    "Hm... I see.| Well… I do.",
    "Give it to me.| Stop!| It is OK.| I am ill.| Go away.",
    "We know 5! = 120.| So n! = n here.| Good.",
    "Run ./x.sh in ../y now.| I use .NET here.| It is .5 of it.",
    "Take Rte. 66.| The mgr. is in.| He is the mgr.| Go.",
    "Flat no. B-204 is here.| See no. VII too.",
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
    "On Mon. we met.| Then Tue. came.| We left on Wed.| He stayed.",
    "He came on Sat. June 5, etc. and left.| I love the sun.| It shines.",
    "Acme Inc. was here.| It sat.| He sat.| We met in Dec.| It snowed.",
    "“Yes.”| (Maybe.)| (No.)| Done.| He (Dr. X.) came.",
    "**One.**| Two is here.| *Three.*| `Four.`| ~~Five.~~| **Six. |Seven.**",
    "See **Dr.** Smith.| A note.[^1]| Then [a. b](http://x.y/z.html).| End.",
    "1. **First.**| Go on.",
    "नमस्ते।| आप कैसे हैं?| मैं ठीक हूँ॥| चलो।",
    "डॉ. शर्मा आए।| श्री. वर्मा गए।",
    "पहला।|दूसरा वाक्य है।",
    "mera naam Amit hai.| aap kaise hain?| theek.",
]


@pytest.mark.parametrize("marked", CASES)
def test_sentences_end_where_a_reader_would_end_them(marked: str) -> None:
    expected = [sentence.strip() for sentence in marked.split("|")]
    assert [sentence.strip() for sentence in split(marked.replace("|", ""))] == expected


MARKS = [
    "!", "?", "!!", "??", "?!", "!?", "!!!", "?!!", "⁉", "‽", "!...", "...?", "…!", "?..", "।",
    "।।", "?।", "!”", "?!”", "!!)", "?!**", ".",
]  # fmt: skip
NEXT = (
    "He left.", "I left.", "I'm here.", "A man left.", "X is it.", "Now.", "5 men left.", "no way.",
    "iPhone it is.", "“No.”", "(He left.)", "*I* left.", "Éva left.", "मैं नहीं।",
)  # fmt: skip


@pytest.mark.parametrize("mark", MARKS)
def test_whatever_word_follows_a_mark_begins_a_sentence(mark: str) -> None:
    texts = [(f"It was so{mark} ", following) for following in NEXT]
    assert [split(before + following) for before, following in texts] == [*map(list, texts)]


def test_marks_inside_a_word_end_no_sentence() -> None:
    for text in ("What?!he said.", "See a.example/??q=1 now.", "Wait...what is it?"):
        assert split(text) == [text]


def test_a_sentence_is_returned_when_one_further_word_is_complete() -> None:
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
            "[laughs]", "\ue0f0", "\ue0f1", "e.g.", "[", "5!", "=", "./x", "..", "<break time=\"1s\"/>", "。",
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


@given(text=st.text(max_size=300), longest=st.integers(16, 60))
def test_clauses_are_short_and_lose_nothing(text: str, longest: int) -> None:
    pieces = clauses(text, longest)
    assert "".join(pieces) == text
    assert all(0 < len(piece) <= longest for piece in pieces)


@pytest.mark.parametrize(
    ("longest", "marked"),
    [
        (24, "When it rains, |we stay at home |and read."),
        (30, "We took the old road |because the bridge was closed."),
        (26, "We carried the old table |into the large garden."),
        (32, "The man said to his brother |that he would come to dinner."),
        (30, "one two three four five six |seven eight nine ten"),
        (30, "हम कल शाम बाज़ार गए थे |और फल लेकर आए"),
        (30, "उसने मुझसे कल कहा था |कि वह नहीं आएगा"),
        (26, "हमारे बड़े पुराने घर में |बहुत लोग रहते"),
    ],
)
def test_clauses_are_cut_where_a_reader_pauses(longest: int, marked: str) -> None:
    assert clauses(marked.replace("|", ""), longest) == marked.split("|")


def test_a_devanagari_syllable_is_not_cut() -> None:
    pieces = clauses("क्षि" * 20, 17)
    assert all(piece.startswith("क") and piece.endswith("ि") for piece in pieces)


@pytest.mark.parametrize("unit", ["(a. b. ", "a", "। ", "\n", "( ", '"A b. ', "[pause "])
def test_a_hostile_text_is_split_in_bounded_time(unit: str) -> None:
    text = (unit * 20_000)[:20_000]
    with within(5):
        assert "".join(split(text)) == text
