"""SSML: what is spoken of it, what is charged for it, and what is refused."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speech.synthesis.script import Sentence, metered_characters, read_script
from speech.text.language import Language
from speech.text.normalise.locale import Region
from speech.text.normalise.sentence import normalised
from speech.text.ssml import DEEPEST, parse
from speech.text.ssml_beginning import is_ssml
from speech.text.ssml_elements import InvalidSsml
from speech.text.tags import (
    Part,
    Pause,
    PauseTooLong,
    Phonemes,
    Rate,
    TagError,
    Text,
    TooManyPauses,
)
from speech.wire import LONGEST_INPUT
from tests.support.fuzzing.mutations import within


def spoken(content: str, region: Region = Region.US) -> str:
    """The words of ``<speak>content</speak>``."""
    sentences = read_script(f"<speak>{content}</speak>").sentences
    words = (normalised(sentence.text, Language.ENGLISH, region) for sentence in sentences)
    return " ".join(" ".join(words).split())


def say_as(kind: str, text: str, form: str = "") -> str:
    return f'<say-as interpret-as="{kind}" format="{form}">{text}</say-as>'


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("Hello <emphasis level='strong'>there</emphasis>.", "Hello there."),
        ("<amazon:effect name='x'>Hush</amazon:effect><mark name='a'/><!-- <p> -->", "Hush"),
        ("The <sub alias='World Wide Web'>WWW <b>x</b></sub> is old.", "The World Wide Web is old."),
        ("<phoneme alphabet='ipa' ph='təmato'>tomato</phoneme>", "tomato"),
        ("AT&amp;T, caf&#233;", "AT and T, café"),
        (say_as("characters", "SKU-42_a"), "S K U dash four two underscore A"),
        (say_as("digits", "Room 4812"), "Room four eight one two"),
        (say_as("telephone", "+1 (415) 555-0132"), "plus one, four one five, five five five, zero one three two"),
        (say_as("telephone", "1-800-FLOWERS"), "one, eight zero zero, FLOWERS"),
        (say_as("telephone", "555-0132 ext. 12"), "five five five, zero one three two, extension one two"),
        (say_as("telephone", "(415) 555-0132 x9"), "four one five, five five five, zero one three two, extension nine"),
        (say_as("telephone", "*67, #12"), "star six seven, hash one two"),
        (say_as("date", "3/4/2026", "dmy"), "April third, twenty twenty six"),
        (say_as("date", "20260403", "ymd"), "April third, twenty twenty six"),
        (say_as("date", "12/25", "md"), "December twenty fifth"),
        (say_as("date", "13/13/26", "mdy"), "thirteen slash thirteen slash twenty six"),
        (say_as("time", "1430"), "fourteen thirty"),
        (say_as("time", "2:30pm", "hms12"), "two thirty P M"),
        (say_as("cardinal", "12"), "twelve"),
        (say_as("ordinal", " 22 "), "twenty second"),
        (f"{say_as('ordinal', '11')} {say_as('ordinal', 'x3')}", "eleventh x three"),
        (say_as("verbatim", "ab1"), "A B one"),
        ("<p>One\n two.</p><p><s>Three</s><s>four</s></p>", "One two. Three four"),
    ],
)  # fmt: skip
def test_each_element_is_spoken_as_it_asks_and_no_name_is(content: str, words: str) -> None:
    assert spoken(content) == words


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("a<break time='1.5s'/>b", [Text("a"), Pause(1.5), Text("b")]),
        ("a<break strength='none'/><break/>b", [Text("a"), Pause(0.5), Text("b")]),
        ("a[pause]b", [Text("a"), Pause(0.5), Text("b")]),
        ("&lt;break time='1s'/&gt;a", [Text("&lt;break time='1s'/&gt;a")]),
        ("<prosody rate='slow'>a</prosody>b", [Rate(0.75), Text("a"), Rate(1.0), Text("b")]),
        ("<prosody rate='150%'><prosody rate='+100%'>a</prosody></prosody>", [Rate(1.5), Rate(3.0), Text("a"), Rate(1.5), Rate(1.0)]),
        ("<prosody rate='9'>a</prosody>", [Rate(4.0), Text("a"), Rate(1.0)]),
        ("<prosody pitch='high'>a</prosody>", [Text("a")]),
        ("<s>a</s>", [Text("\n"), Text("a"), Text("\n")]),
        ("<phoneme alphabet='ipa' ph='b&#x259;'>a<b> [pause]</b></phoneme>", [Phonemes("bə", 9), Text("a [pause]")]),
        ("<phoneme ph='a'>b<break/></phoneme>", [Phonemes("a", 1), Text("b")]),
    ],
)  # fmt: skip
def test_breaks_pace_and_boundaries_become_the_parts_of_a_script(
    content: str, parts: list[Part]
) -> None:
    found = parse(f"<speak version='1.1'>{content}</speak>")

    assert [Text(part.text) if isinstance(part, Text) else part for part in found] == parts


def test_each_text_knows_its_place_in_the_document() -> None:
    text = (
        "<speak><p>Hi  [pause] <b>dear</b>\n you.</p> The <sub alias='World  Wide'>WWW</sub> of"
        " &amp; <say-as interpret-as='digits'>4<b>8</b></say-as><s>Bye</s></speak>"
    )
    [first, *rest] = read_script(text).sentences

    def received(sentence: Sentence, word: str) -> str:
        start = sentence.text.index(word)
        [(since, until)] = sentence.received([(start, start + len(word))])
        return text[since:until]

    assert [received(first, word) for word in ("Hi", "dear", "you")] == ["Hi", "dear", "you"]
    second, third = rest
    words = ("The", "World", "Wide", "of", "&amp;", "4", "8")
    assert [received(second, word) for word in words] == [*words[:5], *["4<b>8"] * 2]
    assert received(third, "Bye") == "Bye"


def test_signs_that_are_spoken_as_far_more_than_is_metered_are_refused() -> None:
    assert "exclamation mark" in spoken(say_as("characters", "a+b!" * 5))
    with pytest.raises(InvalidSsml, match="Send fewer signs"):
        spoken(say_as("characters", "!" * 20))
    # A document has its 100 once, however many elements the signs are in.
    with pytest.raises(InvalidSsml, match="Send fewer signs"):
        spoken(say_as("characters", "!" * 5) * 3)
    assert "exclamation mark" in spoken(("An honest text. " + say_as("characters", "a!")) * 20)


@pytest.mark.parametrize(
    ("content", "characters"),
    [
        ("Hi <b>you</b>", 6),
        ("A &amp; B", 9),
        ("<sub alias='long alias'>x</sub>", 10),
        ("<p>Hi</p>\n<!-- no -->", 3),
        ("<say-as interpret-as='characters'>SKU</say-as>", 3),
        ("Hi[pause]", 2),
    ],
)
def test_characters_are_the_text_as_received_without_tags(content: str, characters: int) -> None:
    assert metered_characters(f"<speak>{content}</speak>") == characters
    assert read_script(f"<speak>{content}</speak>").characters == characters


@pytest.mark.parametrize(
    "text",
    [
        "<speak>a", "<speak>a</p></speak>", "<speak><p>a</speak></p>", "<speak>a</speak>b",
        "<speak>a</speak><speak>b</speak>", "<speak>a & b</speak>", "<speak>a &nbsp; b</speak>",
        "<speak>a < b</speak>", "<speak>a<break</speak>", "<speak>a<break time=1s/></speak>",
        "<speak>a<!-- b </speak>", "<speak>a<![CDATA[b]]></speak>", "<speak>a<?b?></speak>",
        "<speak><!DOCTYPE a [<!ENTITY b 'c'>]>a</speak>", "<speak a='1' a='2'>b</speak>",
        "<speak a='&b;'>c</speak>", "<speak><break time='1m'/>a</speak>",
        "<speak><break strength='huge'/>a</speak>", "<speak><sub>a</sub></speak>",
        "<speak><say-as>a</say-as></speak>", "<speak><prosody rate='+1'>a</prosody></speak>",
        "<speak><phoneme>a</phoneme></speak>", "<speak><phoneme ph='a'/></speak>",
        "<speak><phoneme ph='a'> ! </phoneme></speak>", "<speak><phoneme ph=''>a</phoneme></speak>",
        f"<speak><phoneme ph='{'a' * 101}'>a</phoneme></speak>",
        "<speak>" + "<p>" * DEEPEST + "a" + "</p>" * DEEPEST + "</speak>",
    ],
)  # fmt: skip
def test_what_is_broken_is_refused(text: str) -> None:
    with pytest.raises(InvalidSsml):
        parse(text)


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ("alphabet='x-sampa' ph='a'", "at character 8: 'alphabet' of <phoneme> must be ipa"),
        ("ph='to%'", "at character 21: 'ph' of <phoneme>: '%' (U+0025) is no symbol of the IPA"),
        ('ph="\'"', "'ph' of <phoneme>: there is no sound of the IPA in it"),
    ],
)
def test_unknown_sounds_are_refused_by_the_name_of_the_attribute(
    attributes: str, said: str
) -> None:
    with pytest.raises(InvalidSsml, match=re.escape(said)):
        parse(f"<speak><phoneme {attributes}>tomato</phoneme></speak>")


def test_pauses_are_bounded_as_those_of_tags_are() -> None:
    with pytest.raises(PauseTooLong):
        parse("<speak>a<break time='6s'/></speak>")
    with pytest.raises(TooManyPauses):
        parse(f"<speak>a{'<break/>[pause]' * 11}</speak>")


@pytest.mark.parametrize(
    "before",
    [
        "\ufeff",
        "<?xml version='1.0' encoding=\"UTF-8\"?>",
        " \ufeff\n<?xml version='1.0'?>\r\n",
        "\n",
    ],
)
def test_what_xml_writes_before_the_document_is_neither_spoken_nor_charged(before: str) -> None:
    text = f"{before}<speak>Hello <b>you</b>.</speak>"

    [sentence] = read_script(text).sentences

    assert (sentence.text, metered_characters(text)) == ("Hello you.", 10)
    assert sentence.received([(0, 5)]) == [(len(before) + 7, len(before) + 12)]


@pytest.mark.parametrize(
    "text",
    [
        "<!DOCTYPE speak [<!ENTITY a 'b'>]><speak>&a;</speak>",
        "<?xml version='1.0'?>\n<!DOCTYPE speak PUBLIC '-//W3C//DTD SYNTHESIS 1.0//EN' ''><speak>a</speak>",
        "<speak>a<![CDATA[b]]></speak>", "<speak>a<?b?></speak>",
    ],
)  # fmt: skip
def test_what_declares_something_is_refused_by_its_name(text: str) -> None:
    with pytest.raises(InvalidSsml, match="CDATA"):
        read_script(text)


@pytest.mark.parametrize(
    "text",
    [
        "<speaker>a</speaker>", "Say <speak>a</speak>", "<speaking", "<b>a", "<?xml?> a", "<?xml a",
        "<?xml version='1.0'?><speaker>", "\ufeff Hello",
        "<?xml?><speak>a</speak>", "<?xml version='1.0'?><?xml version='1.0'?><speak>a</speak>",
    ],
)  # fmt: skip
def test_any_other_text_is_no_ssml(text: str) -> None:
    assert not is_ssml(text)


@given(st.lists(st.sampled_from(["<p>", "</p>", "<s/>", "a", " ", "&lt;", "<sub alias='b'>", "</sub>", "<", ">", "&", "<!--", "-->", "[pause]", "<say-as interpret-as='digits'>", "</say-as>", "7"])).map("".join))  # fmt: skip
def test_any_text_is_a_script_or_refused(content: str) -> None:
    try:
        script = read_script(f"<speak>{content}</speak>")
    except TagError:
        return
    assert 0 < script.characters <= len(content)


@pytest.mark.parametrize(
    "piece", ["<p>", "<p/>", "<!--", "&lt;", "<a b='", " ", "<break ", "</p>", "<s>a</s>", "<sub alias='a'/>"]
)  # fmt: skip
def test_a_hostile_document_takes_no_longer_than_a_plain_one(piece: str) -> None:
    text = ("<speak>" + piece * LONGEST_INPUT)[:LONGEST_INPUT]
    with within(0.5), suppress(TagError):
        parse(text)
