"""From a sentence to the utterances of an engine, and back to one sound."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from core.errors import ApiError
from speech.audio.pcm import EDGE_SECONDS, SAMPLE_RATE, duration, pcm_bytes, samples, silence
from speech.engines import (
    Engine,
    EngineError,
    EngineFull,
    EngineProtocolError,
    EngineTimeout,
    Utterance,
)
from speech.errors import SpeechFailed, SpeechFull, SpeechTimedOut, UnknownVoice, UnreadableText
from speech.requests.meter import outcome_of
from speech.synthesis import sentence as sentence_module
from speech.synthesis.prefetch import prefetch
from speech.synthesis.script import Sentence, read_script
from speech.synthesis.sentence import LONGEST_UTTERANCE, EngineClock, Speaker, speak_sentence
from speech.synthesis.text_process import TextProcess
from speech.voices.snapshot import CloneRef, VoiceRef
from tests.support.speech.listening import silences, steepest_step
from tests.support.speech.sessions import Collaborators, Socket, service, session
from tests.support.speech.speech_server import described

LOUD = pcm_bytes(np.full(SAMPLE_RATE // 10, 9000, dtype=np.int16))
"""A tenth of a second that begins and ends in the middle of a sound."""


class Echo(Engine):
    """An engine that speaks ``LOUD`` with ``stillness`` seconds around it for each utterance, or fails."""

    def __init__(self, failure: EngineError | None = None, stillness: float = 0.0) -> None:
        self.asked: list[Utterance] = []
        self.failure = failure
        self.still = silence(stillness)

    async def speak(self, utterance: Utterance) -> AsyncGenerator[bytes, None]:
        self.asked.append(utterance)
        yield self.still + LOUD[:100]
        if self.failure is not None:
            raise self.failure
        yield LOUD[100:] + self.still

    async def close(self) -> None:
        pass


class Mute(Echo):
    """An engine whose sound is 20 ms of silence for ``words``."""

    def __init__(self, words: str) -> None:
        super().__init__()
        self.words = words

    async def speak(self, utterance: Utterance) -> AsyncGenerator[bytes, None]:
        yield silence(0.02) if utterance.text == self.words else LOUD


def voice(**changes: Any) -> VoiceRef:
    columns = {"id": "ava", "language": "en", "engine_voice": "en-us", "backend": None}
    return VoiceRef(**{**columns, **changes})


async def spoken(text: str, engine: Engine, **changes: Any) -> bytes:
    script = read_script(text)
    texts = TextProcess()
    speaker = Speaker(voice(**changes), engine, texts, "organization")
    try:
        return b"".join(
            [
                piece
                for sentence in script.sentences
                async for piece in speak_sentence(sentence, speaker, EngineClock())
            ]
        )
    finally:
        await texts.close()


async def asked(text: str, **changes: Any) -> list[str]:
    engine = Echo()
    await spoken(text, engine, **changes)
    return [utterance.text for utterance in engine.asked]


async def test_a_pause_separates_the_words_and_no_edge_clicks() -> None:
    engine = Echo()
    pcm = await spoken("One [pause:250ms] two.", engine)

    assert [utterance.text for utterance in engine.asked] == ["One", "two."]
    assert len(pcm) == 2 * len(LOUD) + len(silence(0.25))
    assert not samples(pcm)[len(LOUD) // 2 : len(LOUD) // 2 + SAMPLE_RATE // 4].any()
    assert steepest_step(pcm) < 300


async def test_the_pace_of_ssml_holds_over_sentences() -> None:
    engine = Echo()
    await spoken(
        "<speak>First. <prosody rate='slow'>Slow now. As <prosody rate='200%'>this</prosody>."
        "</prosody> Last.</speak>",
        engine,
    )

    said = [(utterance.text, utterance.rate) for utterance in engine.asked]
    assert said == [
        ("First.", 1.0), ("Slow now.", 0.75), ("As", 0.75), ("this", 1.5), ("Last.", 1.0),
    ]  # fmt: skip


@pytest.mark.parametrize("stillness", [0.0, 0.05, 0.8])
@pytest.mark.parametrize(
    ("text", "pauses"),
    [
        ("One. Two.", [0.23]),
        ("One\nTwo", [0.3]),
        ("# One\nTwo. Three.\n\nFour.", [0.43, 0.23, 0.43]),
        ("One. [pause:1.5s] Two. Three.", [1.5, 0.23]),
        ("One.[pause:1s][pause:1s]\n\nTwo.", [2.0]),
        ("One [pause:100ms] two. Three. [pause:3s]", [0.1, 0.23, 3.0]),
        ("[pause] One. [laughs] Two.", [0.5, 0.23]),
        ("One. [laughs] [pause] Two.", [0.5]),
    ],
)
async def test_pauses_are_equally_long_on_every_engine(
    text: str, pauses: list[float], stillness: float
) -> None:
    engine = Echo(stillness=stillness)
    pcm = await spoken(text, engine)

    kept = min(stillness, EDGE_SECONDS)
    sound = len(engine.asked) * (duration(LOUD) + 2 * kept)
    assert duration(pcm) == pytest.approx(sound + sum(pauses))
    assert silences(pcm + LOUD, 0.09)[-1] >= pauses[-1]


async def test_a_wrapped_sentence_has_no_pause_at_the_line_break() -> None:
    wrapped = "We walked along the old river until the sun went down\nbehind the far hills."
    verse = "The sun went down\nbehind the hills"

    assert [sentence.lead for sentence in (read_script(wrapped)).sentences] == [0.0, 0.0]
    assert [sentence.lead for sentence in (read_script(verse)).sentences] == [0.0, 0.3]


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("**One. Two [pause] *three*.**", "en", ["One.", "Two", "three."]),
        (
            "## `$3.50` for [**it**](https://a.example)",
            "en",
            ["three dollars and fifty cents for it"],
        ),
        (
            "- [pause] One.\n  - [laughs] Two.\n---[pause]\n  **[sad]Three**.",
            "en",
            ["One.", "Two.", "Three."],
        ),
        ("Well [laughs] now [sighs] go.", "en", ["Well  now  go."]),
        ("It costs $3.50.", "en", ["It costs three dollars and fifty cents."]),
        ("₹500 का", "hi", ["पाँच सौ रुपये का"]),
        ("namaste aap kaise hain", "hi", ["नमस्ते आप कैसे हैं"]),
        ("namaste aap kaise hain", "en", ["namaste aap kaise hain"]),
    ],
)
async def test_an_engine_gets_words_without_markdown_sounds_figures_and_romanized_hindi(
    text: str, language: str, expected: list[str]
) -> None:
    assert await asked(text, language=language) == expected


async def test_sounds_are_in_the_backends_spelling() -> None:
    backend = described("http://127.0.0.1:9", sounds={"laughs": "<laugh>"})

    [text] = await asked("Well [laugh] now [sighs] go.", backend=backend)
    assert " ".join(text.split()) == "Well <laugh> now go."


async def test_a_very_long_sentence_is_cut_for_the_engine() -> None:
    text = "one word after the other, " * 60

    pieces = await asked(text)

    assert len(pieces) > 3
    assert all(len(piece) <= LONGEST_UTTERANCE for piece in pieces)
    assert "".join(pieces).replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize(
    ("failure", "told", "outcome"),
    [
        (EngineError("x"), SpeechFailed, "backend_error"),
        (EngineProtocolError("x"), SpeechFailed, "backend_protocol_error"),
        (EngineTimeout("x"), SpeechTimedOut, "backend_timeout"),
        (EngineFull("x"), SpeechFull, "backend_unavailable"),
    ],
)
async def test_an_engines_failure_is_reported_and_recorded(
    failure: EngineError, told: type[ApiError], outcome: str
) -> None:
    with pytest.raises(told) as failed:
        await spoken("One.", Echo(failure))

    assert outcome_of(failed.value) == outcome


def test_overlapping_engine_time_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, at = EngineClock(), [0.0]
    monkeypatch.setattr(sentence_module, "time", SimpleNamespace(perf_counter=lambda: at[0]))
    with clock.running():
        at[0] = 1.0
        with clock.running():
            at[0] = 2.0
        at[0] = 3.0
    at[0] = 5.0

    assert clock.total == 3.0


async def test_prefetching_is_bounded_and_keeps_the_order() -> None:
    made: list[int] = []

    async def numbers() -> AsyncGenerator[int, None]:
        for number in range(10):
            made.append(number)
            yield number

    async with aclosing(prefetch(numbers(), 2)) as items:
        assert await anext(items) == 0
        for _ in range(100):
            await asyncio.sleep(0)
        assert len(made) <= 4
        assert [item async for item in items] == list(range(1, 10))


async def test_prefetched_items_come_before_the_failure_and_closing_closes_the_source() -> None:
    closed = asyncio.Event()

    async def failing() -> AsyncGenerator[int, None]:
        try:
            yield 1
            yield 2
            raise SpeechFailed
        finally:
            closed.set()

    async with aclosing(prefetch(failing(), 1)) as items:
        assert await anext(items) == 1
    assert closed.is_set()

    items = prefetch(failing(), 2)
    assert [await anext(items), await anext(items)] == [1, 2]
    with pytest.raises(SpeechFailed):
        await anext(items)


async def test_a_mark_beyond_the_words_is_spoken_last() -> None:
    sentence = Sentence("Hi", ((9, (read_script("a[pause:1s]")).sentences[0].marks[0][1]),))
    speaker = Speaker(voice(), Echo(), TextProcess(), "organization")

    pieces = [piece async for piece in speak_sentence(sentence, speaker, EngineClock())]

    assert pieces[-1] == silence(1.0)


@pytest.mark.parametrize("backend", [None, described("")], ids=["embedded", "server"])
async def test_a_sentence_without_any_sound_is_an_error_before_its_pauses(backend: Any) -> None:
    [sentence] = read_script("[pause:2s] Shh [pause:2s]").sentences
    speaker = Speaker(voice(backend=backend), Mute("Shh"), TextProcess(), "organization")
    sound = speak_sentence(sentence, speaker, clock := EngineClock())

    with pytest.raises(UnreadableText):
        await anext(sound)
    assert clock.first_audio is None


async def test_a_silent_part_of_a_sentence_is_left_out() -> None:
    text = "[pause:1s] Shh [pause:2s] yes [pause:1s]"
    assert len(await spoken(text, Mute("Shh"))) == len(silence(4.0) + LOUD)


CLONE = voice(id="voice_1", clone=CloneRef("voice_1", "organization", None))


class Shelf(Collaborators):
    """One clone, until it is deleted, and a quota that counts."""

    deleted = False
    charged = refunded = 0

    def __init__(self) -> None:
        super().__init__()
        self.engine, self.charged_twice = Echo(), asyncio.Event()

    async def resolve(self, *_: Any) -> VoiceRef:
        if self.deleted:
            raise UnknownVoice
        return CLONE

    def of(self, _: Any) -> Echo:
        return self.engine

    async def charge(self, *_: Any) -> Any:
        self.charged += 1
        if self.charged == 2:
            self.charged_twice.set()
        return SimpleNamespace(refund_characters=self._refund)

    def _refund(self) -> None:
        self.refunded += 1


async def test_prefetched_sentences_of_a_deleted_clone_are_not_sent() -> None:
    shelf = Shelf()
    text = "One sentence is here. Two sentences are here. Three of them are here."
    socket = Socket({"type": "text", "text": text}, {"type": "done"})
    socket.reads.clear()
    _, meter, running = session(service(shelf), socket, voice=CLONE)
    async with asyncio.timeout(60):
        await shelf.charged_twice.wait()
        await socket.is_sent_one.wait()
    shelf.deleted = True
    socket.reads.set()

    assert isinstance(await running, UnknownVoice)
    assert len(socket.frames) == 1
    assert (meter.sentences, meter.characters) == (1, len("One sentence is here. "))
    assert shelf.refunded == shelf.charged - 1
