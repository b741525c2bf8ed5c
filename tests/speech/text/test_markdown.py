"""The spoken words of Markdown."""

from __future__ import annotations

import tomllib
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from speech.synthesis.script import ScriptReader, Sentence, read_script
from speech.text import markdown
from speech.text.tags import NothingToSpeak, TagError
from tests.support.fuzzing.mutations import within

PAIRS = tomllib.loads(Path(__file__).with_name("markdown.toml").read_text())["pair"]


def said(text: str) -> str:
    """The spoken words of one piece, without spaces around them."""
    return " ".join(markdown.read(text)[0].split())


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair["w"][:30])
def test_marks_are_not_spoken_and_their_words_are(pair: dict[str, str]) -> None:
    assert said(pair["w"]) == pair["s"]


def sentences_of(*pieces: str) -> list[Sentence]:
    reader = ScriptReader()
    found = [sentence for piece in pieces for sentence in reader.feed(piece)]
    return [*found, *reader.flush()]


def spoken(*pieces: str) -> list[str]:
    """The words of each sentence as an engine gets them, without spaces around them."""
    return [
        " ".join(markdown.read(sentence.text, sentence.place)[0].split())
        for sentence in sentences_of(*pieces)
    ]


ANSWER = """# Weather report

**Today. It rains.** Tomorrow, see [the map](https://a.example/map.html).

- *First* item
- Second item

| City | Rain |
|------|-----:|
| Pune | 5 mm |

```python
# The rain
print(rain_today)
```
1. **Done.** Bye[^1].

[^1]: From the *office*.
[map]: https://a.example
"""
SENTENCES = [
    *("Weather report", "Today.", "It rains.", "Tomorrow, see the map.", "First item"),
    *("Second item", "City, Rain", "Pune, 5 mm", "The rain", "print(rain today)", "1. Done."),
    *("Bye.", "From the office."),
]
LEADS = [0.0, 0.43, 0.23, 0.23, 0.43, 0.3, 0.43, 0.43, 0.43, 0.3, 0.43, 0.23, 0.43]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_an_answer_of_a_language_model_is_read_as_its_text(size: int) -> None:
    pieces = [ANSWER[at : at + size] for at in range(0, len(ANSWER), size)]

    assert spoken(*pieces) == SENTENCES
    assert [sentence.lead for sentence in sentences_of(*pieces)] == LEADS


async def test_every_code_point_of_the_text_as_received_is_metered() -> None:
    script = read_script(ANSWER)

    assert script.characters == len(ANSWER)
    met = sum(sentence.characters for sentence in script.sentences)
    assert met == len(ANSWER) - len("[map]: https://a.example\n")


@pytest.mark.parametrize(
    "text", ["```python\n```", "# ---", "[a1]: http://x.example", "**<b>**", "**```\n```**"]
)
async def test_a_text_of_marks_alone_is_refused(text: str) -> None:
    with pytest.raises(NothingToSpeak):
        read_script(text)


MARKS = st.lists(
    st.sampled_from(
        [
            "**", "*", "_", "__", "~~", "`", "```", "```py\n", "~~~\n", "\n", "\n\n", "\r\n", "# ", "- ",
            "> ", "1. ", "[x] ", "[", "](", ")", "http://a.b/c", "[^1]", "| ", " |", "|--|", "---\n",
            "\\", "<b>", "<br>", "<", "<!--", "[pause]", "[laughs]", "word", "One. ", "Two! ", "Dr. ",
            "3", " ", " ", "नमस्ते", "।", "अच्छा। ", "? ", "===\n", "[r]: /x\n", "(", "Mon. ",
        ]
    ),
    max_size=40,
).map("".join)  # fmt: skip


@example(text="3<!--# [^1]", cuts=[8])
@given(text=MARKS, cuts=st.lists(st.integers(0, 200), max_size=8))
def test_how_a_markdown_text_is_cut_into_messages_changes_nothing(
    text: str, cuts: list[int]
) -> None:
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    try:
        whole = sentences_of(text)
    except TagError:
        return
    assert sentences_of(*(text[start:end] for start, end in pairwise(edges))) == whole
    assert sentences_of(*text) == whole


@given(text=MARKS)
def test_every_letter_of_the_words_is_spoken_in_its_order(text: str) -> None:
    words, after = markdown.read(text)
    letters = iter(text)
    assert all(letter in letters for letter in words if letter.isalpha())
    assert markdown.read("", after) == ("", after)


HOSTILE = [
    "*", "**a", "_a", "`", "``a`", "[", "[a](", "[a](b", "](", "[a][", "![", "<b ", "<b a=", "<!--",
    "|", "| ", " |", "> ", "- ", "#", "# ", "\\", "\\*", "~", "[^", "[^a]", "1. ", "<", "<a@", "<a:",
    "((", '[a](b "', "a*", "*a ", "__", " ", "\t", "~~~", "```\n", "|a", "a|", "-", "[ ] ", "/*", ";:",
]  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_hostile_text_is_cut_into_sentences_in_bounded_time(unit: str) -> None:
    text = "Hello. " + (unit * 4096)[:4080] + " end"
    with within(1):
        sentences_of(text)
    with within(1):
        sentences_of(*text[:1000])
