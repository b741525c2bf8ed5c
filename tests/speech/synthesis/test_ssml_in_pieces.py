"""SSML that arrives in pieces: the same sentences, charges, places and mistakes as of a whole document."""

from __future__ import annotations

import time

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from speech.synthesis.script import (
    MOST_MARKUP,
    ScriptReader,
    Sentence,
    metered_characters,
    read_script,
)
from speech.synthesis.word_spans import written_words
from speech.text.ssml_elements import InvalidSsml
from speech.text.tags import TagError
from speech.wire import LONGEST_SESSION

DOCUMENT = (
    " \n<speak version='1.1'><p>Hi  [pause] <b>dear</b>\n you. Tom &amp; I</p> <!-- a <p> --> The"
    " <sub alias='World > Wide'>WWW</sub> of <say-as interpret-as='digits'>48\n12</say-as>."
    " <prosody rate='slow'>I like <phoneme alphabet='ipa' ph='təmatə'>tomato</phoneme> soup"
    "</prosody> [laughs] now.<s>Bye[pau</s>se] all.</speak> "
)


def in_pieces(text: str, step: int) -> tuple[list[Sentence], ScriptReader]:
    reader = ScriptReader.of_session(takes_ssml=True)
    found: list[Sentence] = []
    for at in range(0, len(text), step):
        # As it is sent to the text process and back.
        reader = msgspec.json.decode(msgspec.json.encode(reader), type=ScriptReader)
        found += reader.feed(text[at : at + step])
    return [*found, *reader.end()], reader


def described(sentence: Sentence, text: str) -> tuple[object, ...]:
    words = written_words(sentence.text)
    places = sentence.received((word.start, word.end) for word in words)
    return (
        sentence.text,
        sentence.marks,
        sentence.lead,
        sentence.rate,
        sentence.metered_text,
        [text[start:end] for start, end in places],
    )


@pytest.mark.parametrize("step", [1, 2, 3, 7, 50, 1000])
def test_a_document_in_pieces_has_the_sentences_of_a_whole_one(step: int) -> None:
    whole = read_script(DOCUMENT).sentences
    found, _ = in_pieces(DOCUMENT, step)

    assert [described(each, DOCUMENT) for each in found] == [
        described(each, DOCUMENT) for each in whole
    ]


@pytest.mark.parametrize("step", [1, 5, 1000])
def test_what_is_metered_is_the_text_as_received(step: int) -> None:
    found, _ = in_pieces(DOCUMENT, step)

    assert "".join(each.metered_text for each in found) == (
        "Hi   dear  you. Tom &amp; I  The World > Wide of 48\n12. I like tomato soup  now."
        "Bye[pause] all."
    )
    assert sum(each.characters for each in found) == metered_characters(DOCUMENT)


SAID = "中。 Hello there my friend. This is spoken for nothing. A third one."
SAY_AS, PHONEME = "<say-as interpret-as='{}'>{}</say-as>", "<phoneme ph='a'>{}</phoneme>"


@pytest.mark.parametrize("step", [1, 7, 1000])
@pytest.mark.parametrize(
    ("content", "metered"),
    [
        (SAY_AS.format("x", SAID), ["中。 ", "Hello there my friend. ", "This is spoken for nothing. ", "A third one."]),
        (f"Hi. {PHONEME.format('Oh. What')} now?", ["Hi. ", "Oh. ", "What now?"]),
        (SAY_AS.format("x", "One.[pause] <b>Two.</b> Three"), ["One.[p", "ause] Tw", "o. Three"]),
        (SAY_AS.format("characters", "ab.") + "<p>So</p>", ["ab.", "So"]),
        (SAY_AS.format("telephone", "12") + SAY_AS.format("x", "One. Two"), ["12One. ", "Two"]),
    ],
)  # fmt: skip
def test_each_sentence_has_its_share_of_a_text_that_is_changed_as_a_whole(
    content: str, metered: list[str], step: int
) -> None:
    text = f"<speak>{content}</speak>"
    found, reader = in_pieces(text, step)

    assert [each.metered_text for each in found] == metered
    assert sum(map(len, metered)) == metered_characters(text)
    spoken = sum(each.received_characters for each in found) + reader.markup_after
    assert spoken == len(text)


TEXTS = st.lists(
    st.sampled_from(["Hi. ", "a", "7 ", "&amp;", "<b>x</b>", "[pause]", "So!\n", "中。 "])
)
KINDS = st.sampled_from(
    [SAY_AS.format("x", "{}"), SAY_AS.format("digits", "{}"), "<s>{}</s>", "{}"]
)


@given(st.lists(st.tuples(KINDS, TEXTS.map("".join)), max_size=6), st.integers(1, 99))
def test_the_sentences_of_a_session_are_metered_as_http_meters_them(
    said: list[tuple[str, str]], step: int
) -> None:
    content = "".join(kind.format(f"{text} a") for kind, text in said)
    text = f"<speak>{content} End.</speak>"
    try:
        charged = metered_characters(text)
    except TagError:
        return

    assert sum(each.characters for each in in_pieces(text, step)[0]) == charged


def test_a_sentence_comes_before_the_document_ends() -> None:
    reader = ScriptReader.of_session(takes_ssml=True)

    assert [each.text for each in reader.feed("<speak>One. Two three <b")] == ["One. "]
    assert [each.text for each in reader.feed(">four</b>. Five six<break time='1")] == [
        "Two three four. "
    ]
    assert reader.feed("s'/> and &a") == []
    assert [each.text for each in reader.flush()] == ["Five six and "]
    assert [each.text for each in reader.feed("mp; <s>four</s>")] == ["&amp; \n", "four\n"]
    assert reader.feed("</speak>") == reader.end() == []


@pytest.mark.parametrize(
    "begin", ["", "  ", "Say <speak>", "<speaker>", "<spe", "\ufeff", "<?xml", "<?xml a?>", "<!DOC"]
)
def test_any_other_text_is_read_as_without_ssml(begin: str) -> None:
    text = f"{begin} Hello <b>you</b>. [pause] AT&T"
    plain = ScriptReader()

    assert in_pieces(text, 1)[0] == [*plain.feed(text), *plain.flush()]


@pytest.mark.parametrize("step", [1, 5, 1000])
def test_a_declaration_of_xml_may_be_cut_anywhere(step: int) -> None:
    text = f"\ufeff<?xml version='1.0'?>\n{DOCUMENT}"
    found, _ = in_pieces(text, step)

    assert [described(each, text) for each in found] == [
        described(each, DOCUMENT) for each in read_script(DOCUMENT).sentences
    ]


def test_a_declaration_that_never_ends_is_text() -> None:
    reader = ScriptReader.of_session(takes_ssml=True)

    assert reader.feed("<?xml " + "a" * 50) == []
    assert reader.feed("b" * 300 + ". One two ")
    assert reader.held == 0


def test_what_is_no_ssml_without_the_choice_is_as_before() -> None:
    reader = ScriptReader.of_session(takes_ssml=False)
    [sentence] = [*reader.feed("<speak>Hi</speak>"), *reader.end()]

    assert sentence == Sentence("<speak>Hi</speak>")


def mistake(text: str, step: int) -> str | None:
    try:
        in_pieces(text, step)
    except TagError as error:
        return str(error)
    return None


PIECES = [
    "<p>", "</p>", "<s/>", "a", " ", "&lt;", "&", "amp;", "<sub alias='b>'>", "</sub>", "<", ">",
    "<!--", "-->", "[pause]", "[pau", "<say-as interpret-as='digits'>", "</say-as>", "7. ", "'",
    "<phoneme ph='a'>", "</phoneme>", "</speak>", "\n",
]  # fmt: skip


@example(content="</speak> a", step=1, is_ended=False)
@example(content="</speak>a&", step=1, is_ended=False)
@given(st.lists(st.sampled_from(PIECES)).map("".join), st.integers(1, 9), st.booleans())
def test_any_mistake_is_found_at_the_same_place(content: str, step: int, is_ended: bool) -> None:
    text = f"<speak>{content}" + "</speak>" * is_ended

    assert mistake(text, step) == mistake(text, len(text))


SAID_BOUND = "the text of <say-as> has at most 1000 characters"
TAG_BOUND = "a tag or comment has at most 4096 characters"


@pytest.mark.parametrize("step", [1, 13, 4096, 10_000])
@pytest.mark.parametrize(
    ("content", "found"),
    [
        (SAY_AS.format("digits", "a" * 1000), None),
        (SAY_AS.format("digits", "a" * 1001), SAID_BOUND),
        (SAY_AS.format("digits", "a<b>b</b>" * 501), SAID_BOUND),
        (SAY_AS.format("digits", "a" * 998 + "&amp;"), SAID_BOUND),
        (SAY_AS.format("digits", "a" * 999 + "& "), "& begins no entity"),
        (SAY_AS.format("digits", "a" * 1000 + "& "), SAID_BOUND),
        (SAY_AS.format("digits", "a" * 600) * 2, None),
        (f"<b a='{'a' * 4088}'>b</b>", None),
        (f"<b a='{'a' * 4089}'>b</b>", TAG_BOUND),
        (f"<b {'a' * 5000}", TAG_BOUND),
        (f"<b {'a' * 4092}<", "the tag is not complete"),
        (f"<b {'a' * 4093}<", TAG_BOUND),
        (f"<!--{'a' * 4089}-->b", None),
        (f"<!--{'a' * 4090}-->b", TAG_BOUND),
    ],
)  # fmt: skip
def test_what_is_held_until_its_end_is_bounded(content: str, found: str | None, step: int) -> None:
    told = mistake(f"<speak>{content}</speak>", step)

    assert found in told if found and told else told == found


@pytest.mark.parametrize(
    ("text", "held"),
    [
        (" " * 600, 600),
        ("<speak " + "a" * 600, 607),
        ("<speak>" + SAY_AS.split("{")[0] + "a'>" + "b" * 600 + "<b", 602),
        ("<speak>" + SAY_AS.format("a", "b" * 600) + "c" * 600, 0),
        ("c" * 600, 0),
    ],
)
def test_what_is_read_again_with_the_next_text_is_counted(text: str, held: int) -> None:
    reader = ScriptReader.of_session(takes_ssml=True)
    reader.feed(text)

    assert reader.held == held


def test_a_mistake_is_found_as_soon_as_it_is_there() -> None:
    for text in ("<speak>a & b", "<speak>a < b", "<speak><p></s>", "<speak>a<!D", "<speak>a <b <"):
        with pytest.raises(InvalidSsml):
            ScriptReader.of_session(takes_ssml=True).feed(text)


def test_tags_count_as_spoken_with_their_sentence() -> None:
    text = "<speak><p>One <b>two</b></p><p>three</p></speak>"
    found, reader = in_pieces(text, 4)

    spoken = sum(each.received_characters for each in found) + reader.markup_after
    assert spoken == len(text)
    many = "<speak>" + "<b></b>" * 1000 + "a</speak>"
    found, reader = in_pieces(many, 1000)
    assert [each.received_characters for each in found] == [1 + MOST_MARKUP]
    assert in_pieces("<speak> </speak>", 9)[1].markup_after == 0


@pytest.mark.parametrize(
    "piece", ["<p>", "<!-- ", "&lt;", "<a b='", " ", "[", "<b>a</b>", "<sub alias='"]
)
def test_a_hostile_document_in_small_pieces_takes_little_time(piece: str) -> None:
    text = ("<speak>" + piece * LONGEST_SESSION)[:LONGEST_SESSION]
    reader = ScriptReader.of_session(takes_ssml=True)
    began = time.thread_time()
    try:
        for at in range(0, len(text), 16):
            reader.feed(text[at : at + 16])
    except TagError:
        pass

    assert time.thread_time() - began < 1.0
