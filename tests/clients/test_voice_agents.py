"""Agents of LiveKit and Pipecat that are interrupted know, to the word, what was heard.

They speak through the adapters of docs/examples/agents, in one session of a live gateway each.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from speech.models import Voice
from tests.support.clients.separate_environment import program
from tests.support.live import ROOT, Gateway, output_of, run
from tests.support.metrics import metrics
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import SpeechAccount
from tests.support.speech.neural import needs_neural
from tests.support.until import until

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.parametrize("framework", ["livekit", "pipecat"]),
]


@dataclass(frozen=True)
class Talk:
    """An agent says ``sentence``, and has ``begun`` another one that is not complete when a person
    interrupts it amid the last word of ``heard``; then it says ``answer``.

    That word is a long one, a price, so that the moment need not be exact.
    """

    sentence: str
    heard: str
    begun: str
    answer: str


ENGLISH = Talk(
    "Your ticket costs $3.50 from platform 4. ",
    "Your ticket costs $3.50",
    "The train leaves at 10:15, and it",
    "All right, I am listening.",
)
HINDI = Talk("आपका टिकट ₹3,250 का है। ", "आपका टिकट ₹3,250", "गाड़ी सवा दस बजे", "ठीक है, मैं सुन रही हूँ।")

DOCUMENT = (
    '<speak>Your code is <say-as interpret-as="digits">48127395</say-as>.<break time="100ms"/>'
    ' AT&amp;T says <sub alias="World Wide Web">WWW</sub>.</speak>'
)
HEARD_OF_IT = {
    "livekit": ["Your code is 48127395.", "Your code is 48127395. AT&T says WWW."],
    "pipecat": [
        "<speak>Your code is <say-as>48127395</say-as>.",
        "<speak>Your code is <say-as>48127395</say-as>. <break/> AT&amp;T says <sub>WWW</sub>.",
    ],
}
"""What the history has after an interruption within the digits, and after the whole. LiveKit keeps the words,
Pipecat what the model wrote up to the last heard word; attributes of tags are left out of the comparison."""

EMBEDDED = {"ava": ENGLISH, "asha": HINDI}
NEURAL = {"heart": ENGLISH, "kavya": HINDI}


@pytest.fixture
def neural(start_gateway: Callable[..., Gateway]) -> Iterator[Gateway]:
    for voice, engine_voice, language in (("heart", "af_heart", "en"), ("kavya", "hf_alpha", "hi")):
        Voice.objects.create(
            id=voice, embedded_engine="kokoro", engine_voice=engine_voice, language=language
        )
    gateway = start_gateway()
    # A loaded machine takes its time to start the engine and to measure it.
    until(lambda: metrics(gateway).sum("svc_speech_neural_real_time_factor"), 240.0)
    yield gateway
    Voice.objects.filter(id__in=NEURAL).delete()


def test_an_interrupted_agent_knows_what_was_heard(gateway: Gateway, framework: str) -> None:
    assert_heard_to_the_word(gateway, framework, EMBEDDED)


def test_an_agent_that_writes_ssml_knows_what_was_heard(gateway: Gateway, framework: str) -> None:
    speech = speech_account(gateway)
    turns = [{"text": DOCUMENT, "seconds": 2.0}, {"text": DOCUMENT, "seconds": None}]
    conversation = {"voice": "ava", "turns": turns, "ssml": True}
    [history] = spoken_by(framework, speech, [conversation])
    plain = [re.sub(r"(<[\w-]+) [^>]*?(/?>)", r"\1\2", text).strip() for text in history]
    assert [text.removesuffix("</speak>") for text in plain] == HEARD_OF_IT[framework]


@needs_neural
def test_an_interrupted_agent_with_a_neural_voice_knows_what_was_heard(
    neural: Gateway, framework: str
) -> None:
    assert_heard_to_the_word(neural, framework, NEURAL)


def assert_heard_to_the_word(gateway: Gateway, framework: str, talks: dict[str, Talk]) -> None:
    """Talk with each voice, and compare what the agents and the ledger know of it."""
    conversations = [
        {
            "voice": voice,
            "turns": [
                {
                    "text": talk.sentence + talk.begun,
                    "seconds": _amid_the_last_heard(gateway, voice, talk),
                },
                {"text": talk.answer, "seconds": None},
            ],
        }
        for voice, talk in talks.items()
    ]
    speech = speech_account(gateway)
    histories = spoken_by(framework, speech, conversations)
    said = [[text.strip() for text in history] for history in histories]
    assert said == [[talk.heard, talk.answer] for talk in talks.values()]

    rows = {row.voice: row for row in speech.rows_when(len(talks))}
    for voice, talk in talks.items():
        assert (rows[voice].outcome, rows[voice].transport) == ("success", "websocket")
        assert rows[voice].characters == len(talk.sentence + talk.answer)


def spoken_by(
    framework: str, speech: SpeechAccount, conversations: list[dict[str, Any]]
) -> list[list[str]]:
    """What the histories of an agent of ``framework`` have after the ``conversations``."""
    ran = run(
        *(program("python"), ROOT / "tests/support/clients/voice_agents.py", framework),
        input=json.dumps(
            {
                "url": speech.url.replace("http", "ws"),
                "api_key": speech.key,
                "conversations": conversations,
            }
        ),
        timeout=240,
        environment={"PYTHONPATH": str(ROOT / "docs/examples/agents")},
    )
    histories: list[list[str]] = json.loads(output_of(ran).splitlines()[-1])
    return histories


def _amid_the_last_heard(gateway: Gateway, voice: str, talk: Talk) -> float:
    """Return after how many seconds the last heard word is being spoken.

    Another account measures it, because the neural engine keeps an account's sentences in memory.
    """
    listener = speech_account(gateway)
    begin, end = talk.heard.rindex(" ") + 1, len(talk.heard)
    with listener.session(voice, keep_open=True, timestamps="word") as session:
        session.text(talk.sentence + talk.begun)
        told = session.receive(120.0)
    assert told["type"] == "timestamps", told
    words = [word for word in told["words"] if begin <= word["from"] and word["to"] <= end]
    start, stop = words[0]["start"], words[-1]["end"]
    assert stop - start > 1.0, "a long word, so that the moment need not be exact"
    return float(start + 0.6 * (stop - start))
