"""Agents of LiveKit and Pipecat that are interrupted know, to the word, what was heard.

They speak through the adapters of docs/examples/agents, in one session of a live gateway each.
"""

from __future__ import annotations

import json

import pytest

from tests.support.clients.separate_environment import program
from tests.support.live import ROOT, Gateway, output_of, run
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import SpeechAccount
from tests.support.until import until

pytestmark = pytest.mark.timeout(300)

SENTENCE = "Your ticket costs $3.50 from platform 4. "
BEGUN = "The train leaves at 10:15, and it"
"""Is not spoken: its sentence is not complete when the agent is interrupted."""
ANSWER = "All right, I am listening."
HEARD = "Your ticket costs $3.50"
SECONDS = 1.8
""""$3.50" is spoken from 1.0 to 2.7 s."""


@pytest.fixture
def speech(gateway: Gateway) -> SpeechAccount:
    return speech_account(gateway)


@pytest.mark.parametrize("framework", ["livekit", "pipecat"])
def test_an_interrupted_agent_knows_what_was_heard(speech: SpeechAccount, framework: str) -> None:
    script = {
        "url": speech.url.replace("http", "ws"),
        "api_key": speech.key,
        "voice": "ava",
        "texts": [SENTENCE + BEGUN, ANSWER],
        "seconds": SECONDS,
    }
    ran = run(
        *(program("python"), ROOT / "tests/support/clients/voice_agents.py", framework),
        input=json.dumps(script),
        timeout=240,
        environment={"PYTHONPATH": str(ROOT / "docs/examples/agents")},
    )
    history = json.loads(output_of(ran).splitlines()[-1])
    assert [said.strip() for said in history] == [HEARD, ANSWER]

    until(speech.rows)
    [row] = speech.rows()
    assert (row.outcome, row.transport) == ("success", "websocket")
    assert row.characters == len(SENTENCE + ANSWER)
