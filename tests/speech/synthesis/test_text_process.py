"""Texts are read and prepared in a process as they are in this one, and its failures are errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.errors import ApiError, InternalError, ServerOverloaded
from speech.synthesis.script import ScriptReader, Sentence, read_script
from speech.synthesis.text_process import TextProcess
from speech.text.language import Language
from speech.text.normalise.locale import Region
from speech.text.preparation import prepared
from speech.text.tags import TagError
from speech.wire import LONGEST_INPUT
from tests.support.servers.engine_processes import worker_pids

MODULE = "speech.synthesis.text_worker"

UNITS = [
    "a. b ", "1 !", "1 <", "e.g. ", "a\n", "# A\n", "a[sigh] ", "**One. Two.** `code` ",
    "```\nx = 1.5\n```\nIt cost $3.50 on 12/05/2024. ", "\u0000\u001fx\U0001f600 \ue0f0.\u2028",
    "नमस्ते। मुझे ₹1,00,000 दो। ", "Mujhe 500 rupaye do. Kal 10:30 baje aana! ",
    "The train was late. [clears throat] We walked on, e.g. to Dr. Rao's. ",
]  # fmt: skip
TEXTS = [
    *((unit * LONGEST_INPUT)[:LONGEST_INPUT] for unit in UNITS),
    "[pause] One [pause:1.25s] two.\n\nThree <break time='20ms'/> four. [laughs] [long pause]",
    "Hi.",
    "no end",
]
WRONG = {
    "PauseTooLong": "Wait [pause:9s] here.",
    "TooManyPauses": "One [pause] " * 21,
    "NothingToSpeak": "<!-- hidden -->",
}


@pytest.fixture
async def texts() -> AsyncIterator[TextProcess]:
    texts = TextProcess(most_waiting=3, wait_seconds=60.0, order_seconds=60.0)
    await texts.start(hindi=True)
    yield texts
    await texts.close()


async def test_a_script_is_the_one_that_is_read_here(texts: TextProcess) -> None:
    for text in TEXTS:
        assert await texts.read_script(text, "organization") == read_script(text)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pieces=st.lists(
        st.one_of(
            st.text(max_size=12),
            st.sampled_from(
                ["[pa", "use] ", "[sigh]", "a. ", "Dr. ", "\n", "# ", "```\n", " **b**"]
            ),
        ),
        max_size=8,
    )
)
async def test_a_reader_is_fed_in_pieces_as_it_is_here(
    pieces: list[str], texts: TextProcess
) -> None:
    here, there = ScriptReader(), ScriptReader()
    for piece in pieces:
        expected = here.feed(piece)
        there, sentences = await texts.feed(there, piece, "organization")
        assert sentences == expected
        assert there == here
    assert there.flush() == here.flush()


async def test_a_session_may_be_fed_here_and_there_in_turns(texts: TextProcess) -> None:
    for text in TEXTS:
        here, there = ScriptReader(), ScriptReader()
        expected: list[Sentence] = []
        found: list[Sentence] = []
        for start in range(0, len(text), 700):
            expected += here.feed(text[start : start + 700])
            there, sentences = await texts.feed(there, text[start : start + 650], "organization")
            found += sentences
            found += there.feed(text[start + 650 : start + 700])
        assert [*found, *there.flush()] == [*expected, *here.flush()]


@pytest.mark.long
@pytest.mark.parametrize("only_clean", [False, True])
@pytest.mark.parametrize(
    ("language", "region"),
    [(Language.ENGLISH, Region.US), (Language.ENGLISH, Region.GB), (Language.HINDI, Region.IN)],
)
async def test_words_are_prepared_as_they_are_here(
    language: Language, region: Region, only_clean: bool, texts: TextProcess
) -> None:
    for text in (text[:1000] for text in TEXTS):
        words = await texts.prepare(
            text, language, region, only_clean=only_clean, organization_id="organization"
        )
        assert words == prepared(text, language, region, only_clean=only_clean)


@pytest.mark.parametrize("kind", WRONG)
async def test_wrong_tags_raise_the_same_error(kind: str, texts: TextProcess) -> None:
    with pytest.raises(TagError) as here:
        read_script(WRONG[kind])
    with pytest.raises(TagError) as there:
        await texts.read_script(WRONG[kind], "organization")

    assert type(there.value) is type(here.value)
    assert type(there.value).__name__ == kind
    assert (str(there.value), there.value.args) == (str(here.value), here.value.args)


async def test_a_reader_that_is_fed_wrong_tags_raises_the_same_error(texts: TextProcess) -> None:
    reader = ScriptReader()
    for _ in range(10):
        reader, _ = await texts.feed(reader, "One [pause] two [pause].", "organization")
    with pytest.raises(TagError, match="more than 20 pauses"):
        await texts.feed(reader, "Three [pause]", "organization")


async def test_of_one_organizations_texts_read_in_turn_none_is_refused() -> None:
    few = TextProcess(most_waiting=2, wait_seconds=60.0, order_seconds=60.0)
    words = "The morning train was late again. "
    try:
        read = [few.feed_in_turn(ScriptReader(), words, "org-1") for _ in range(40)]
        answers = await asyncio.gather(*read)
        plain = [few.feed(ScriptReader(), words, "org-1") for _ in range(40)]
        refused = await asyncio.gather(*plain, return_exceptions=True)
    finally:
        await few.close()

    assert answers == [answers[0]] * 40
    assert sum(isinstance(answer, ServerOverloaded) for answer in refused) == 37


async def test_a_failure_within_the_process_is_an_internal_error(texts: TextProcess) -> None:
    (pid,) = worker_pids(MODULE)
    unknown: Language = "fr"  # type: ignore[assignment]  # an order that the process cannot read
    with pytest.raises(InternalError) as caught:
        await texts.prepare(
            "Bonjour.", unknown, Region.US, only_clean=False, organization_id="organization"
        )

    assert isinstance(caught.value, ApiError)
    assert worker_pids(MODULE) == [pid], "the process goes on"
