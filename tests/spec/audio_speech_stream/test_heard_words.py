"""A session of an agent reports each written word once, when it was heard, on both engines.

The session is that of docs/examples/agents; agents that use it: ``tests/clients/test_voice_agents.py``.
"""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from typing import Any

import pytest

from speech.models import Voice
from tests.support.live import ROOT, Gateway
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import SpeechAccount
from tests.support.speech.neural import needs_neural

FOREIGN = "\u8fd9\u662f\u3002"
"""A sentence that no embedded voice can read."""
TEXTS = {
    "en": (
        "Your well-known 5 kg-bag costs $3.50\u2014really, [pause:100ms] all of it.",
        '**Bold** _words_ at localhost:8080, e.g. 10:15 (the 2nd) isn\'t "here"; go/no-go?',
        f"One two.\n{FOREIGN}\nThree SQL four.",
    ),
    "hi": ("मैं 5 बजे ₹250 लेकर आऊँगा, kal milte hain!", "वह धीरे-धीरे चला गया।"),
}
SSML = (
    (
        '<speak>Your code is <say-as interpret-as="digits">48 12</say-as>.<break time="100ms"/>Wait,'
        ' <prosody rate="slow">please</prosody>! <!-- a > b -->AT&amp;T\'s <sub alias="World Wide'
        ' Web">WWW</sub>: (<phoneme alphabet="ipa" ph="t\u0259\u02c8m\u0251\u02d0to\u028a">tomato</phoneme>)'
        " <p>No SQL</p></speak>",
        [
            "Your",
            "code",
            "is",
            "48 12.",
            "Wait,",
            "please!",
            "AT&T's",
            "WWW:",
            "(tomato)",
            "No",
            "SQL",
        ],
    ),
    (" <?xml version='1.0'?>\n<speak>With a declaration.</speak>", ["With", "a", "declaration."]),
    ("This is no document.", ["This", "is", "no", "document."]),
)
"""Each text of a session that takes SSML, with the words that a listener hears."""
NEURAL = {"en": ("heart", "af_heart"), "hi": ("kavya", "hf_alpha")}


async def heard(speech: SpeechAccount, voice: str, texts: tuple[str, ...]) -> None:
    """Speak ``texts``, an utterance each, all of them sent before the first was spoken; after them one
    that is interrupted, and the first again."""
    agents = importlib.import_module("svc_session")
    session = await agents.SvcSession.open(speech.url.replace("http", "ws"), speech.key, voice)
    for text in texts:
        await _said(session, text)
    events = session.events()
    for text in texts:
        await _is_heard(events, text)
    await session.say(f"{texts[0]}\n" * 15)
    assert isinstance(await anext(events), agents.Sound)
    await session.interrupt()
    await session.say(texts[0])
    await session.end()
    await _is_heard(events, texts[0])
    await session.close()


async def heard_in_ssml(speech: SpeechAccount) -> None:
    """Speak each document of ``SSML``, all of them sent before the first was spoken."""
    agents = importlib.import_module("svc_session")
    url = speech.url.replace("http", "ws")
    session = await agents.SvcSession.open(url, speech.key, "ava", ssml=True)
    for text, _ in SSML:
        await _said(session, text)
    events = session.events()
    for _, words in SSML:
        await _is_heard(events, words)
    await session.close()


async def _said(session: Any, text: str) -> None:
    for at in range(0, len(text), 7):
        await session.say(text[at : at + 7])
    await session.end()


async def _is_heard(events: AsyncIterator[Any], text: str | list[str]) -> None:
    words: list[Any] = []
    seconds = 0.0
    while hasattr(event := await anext(events), "pcm"):
        words += event.words
        seconds += len(event.pcm) / 48_000
    written = text if isinstance(text, list) else _written(text)
    assert [word.text for word in words] == written
    edges = [edge for word in words for edge in (word.start, word.end)]
    assert all(before <= after for before, after in pairwise([0.0, *edges, seconds + 0.01])), edges


def _written(text: str) -> list[str]:
    return [word for word in text.split() if word not in (FOREIGN, "[pause:100ms]")]


@pytest.fixture(autouse=True)
def examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs/examples/agents")


def respelt(gateway: Gateway) -> SpeechAccount:
    speech = speech_account(gateway)
    body = json.dumps({"word": "SQL", "pronunciation": "see quell"}).encode()
    assert speech.request("POST", "/v1/pronunciations", content=body).status_code == 201
    return speech


@pytest.mark.parametrize(("language", "voice"), [("en", "ava"), ("hi", "asha")])
def test_the_heard_words_are_the_written_ones(gateway: Gateway, language: str, voice: str) -> None:
    asyncio.run(heard(respelt(gateway), voice, TEXTS[language]))


def test_the_heard_words_of_ssml_are_the_written_ones_without_tags(gateway: Gateway) -> None:
    asyncio.run(heard_in_ssml(respelt(gateway)))


@pytest.mark.long
@needs_neural
def test_the_heard_words_of_a_neural_voice_are_the_written_ones(
    start_gateway: Callable[..., Gateway],
) -> None:
    for voice, engine_voice in NEURAL.values():
        language = "hi" if engine_voice.startswith("h") else "en"
        Voice.objects.create(
            id=voice, embedded_engine="kokoro", engine_voice=engine_voice, language=language
        )
    try:
        speech = respelt(start_gateway())
        for language, (voice, _) in NEURAL.items():
            asyncio.run(heard(speech, voice, TEXTS[language]))
    finally:
        Voice.objects.filter(embedded_engine="kokoro").delete()
