"""Inline audio tags: what is a tag, what is text, and what is refused."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speech.text.tags import (
    NothingToSpeak,
    Part,
    Pause,
    PauseTooLong,
    Sound,
    SoundName,
    TagReader,
    Text,
    TooManyPauses,
    characters,
    parse,
)


@pytest.mark.parametrize(
    ("tag", "seconds"),
    [
        ("[pause]", 0.5),
        ("[short pause]", 0.25),
        ("[Long Pause]", 1.0),
        ("[pause:1.5s]", 1.5),
        ("[pause:500ms]", 0.5),
        ("[PAUSE:5S]", 5.0),
        ('<break time="1s"/>', 1.0),
        ("<BREAK time='250ms' />", 0.25),
    ],
)
def test_a_pause_tag_is_silence_of_its_length(tag: str, seconds: float) -> None:
    assert parse(f"a{tag}b") == [Text("a"), Pause(seconds), Text("b", 1 + len(tag))]


@pytest.mark.parametrize("name", list(SoundName))
def test_a_sound_is_known_in_both_spellings(name: SoundName) -> None:
    singular = {"clears throat": "clear throat"}.get(name, name.removesuffix("s"))
    for spelling in (name, singular, name.upper()):
        assert parse(f"[{spelling}] Hi") == [Sound(name), Text(" Hi", len(spelling) + 2)]


@pytest.mark.parametrize(
    "text",
    [
        "[applause]", "[pause:]", "[pause:s]", "[pause:1m]", "[pause 1s]", "[pause", "pause]",
        "[1]", "<b>bold</b>", "<break/>", "[pause:-1s]", "[pause:१s]", "array[0] < 3",
    ],
)  # fmt: skip
def test_any_other_bracket_is_text(text: str) -> None:
    assert parse(f"say {text} now") == [Text(f"say {text} now")]


def test_a_pause_over_five_seconds_is_refused_by_name() -> None:
    with pytest.raises(PauseTooLong, match=r"\[pause:5001ms\].*at most 5 seconds"):
        parse("a [pause:5001ms] b")


def test_the_twenty_first_pause_is_refused() -> None:
    assert len(parse("a" + "[pause]" * 20)) == 21
    with pytest.raises(TooManyPauses, match="more than 20"):
        parse("a" + "[pause]" * 21)


@pytest.mark.parametrize(
    "text", ["[pause]", "[laughs] [pause:1s]!", "", "  \n", "...", "👍 [sigh]"]
)
def test_a_text_without_words_is_refused(text: str) -> None:
    with pytest.raises(NothingToSpeak, match="no words"):
        parse(text)


def test_characters_are_code_points_without_tags() -> None:
    assert characters(parse("नमस्ते [pause]👋🏽 [nope]")) == len("नमस्ते 👋🏽 [nope]")


PIECES = st.lists(
    st.sampled_from(["[pause]", "[pau", "se]", '<break time="1s"/>', "<br", "[", "]", "a. ", "हाँ"]),
    max_size=15,
).map("".join)


def joined(parts: list[Part]) -> list[Part]:
    result: list[Part] = []
    for part in parts:
        if result and isinstance(part, Text) and isinstance(result[-1], Text):
            result[-1] = Text(result[-1].text + part.text, result[-1].at)
        else:
            result.append(part)
    return result


@given(text=PIECES, cuts=st.lists(st.integers(0, 80), max_size=8))
def test_a_tag_split_over_messages_is_still_a_tag(text: str, cuts: list[int]) -> None:
    whole, split = TagReader(), TagReader()
    expected = [*whole.feed(text), *whole.finish()]
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    parts = [part for a, b in pairwise(edges) for part in split.feed(text[a:b])]
    assert joined([*parts, *split.finish()]) == joined(expected)
