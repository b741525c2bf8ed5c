"""Common speech clients, unmodified, against a live gateway: each gets the whole sound."""

from __future__ import annotations

import asyncio
import io
import json
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
import soundfile
from openai import AsyncOpenAI

from speech.audio.pcm import SAMPLE_RATE
from speech.models import Voice
from tests.support.clients.javascript import node
from tests.support.clients.separate_environment import program
from tests.support.live import ROOT, Gateway, output_of, run
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import SENTENCE, SpeechAccount
from tests.support.until import until

# The first test may install the packages of npm.
pytestmark = pytest.mark.timeout(300)

FORMATS: tuple[Literal["wav", "mp3", "pcm", "opus", "flac"], ...] = (
    *("wav", "mp3", "pcm", "opus", "flac"),
)
VOICE = "alloy"
"""A voice name of OpenAI: some clients refuse any other before they send a request."""


@pytest.fixture
def speech(gateway: Gateway) -> Iterator[SpeechAccount]:
    """Create an account that has ``VOICE``."""
    account = speech_account(gateway)
    Voice.objects.get_or_create(id=VOICE, defaults={"engine_voice": "en-us+f2"})
    until(lambda: VOICE in account.voices())
    yield account
    Voice.objects.filter(id=VOICE).delete()
    until(lambda: VOICE not in account.voices())


@pytest.fixture
def usual(speech: SpeechAccount) -> float:
    """Return the length of the sentence in seconds."""
    return length("pcm", speech.speak(SENTENCE, VOICE, response_format="pcm").content)


def length(name: str, content: bytes) -> float:
    """Return the seconds of sound in an answer of the format ``name``."""
    if name == "pcm":
        return len(content) / 2 / SAMPLE_RATE
    with soundfile.SoundFile(io.BytesIO(content)) as clip:
        assert clip.format == {"mp3": "MP3", "opus": "OGG"}.get(name, name.upper())
        return len(clip.read()) / float(clip.samplerate)


def script(speech: SpeechAccount) -> str:
    return json.dumps(
        {"base_url": f"{speech.url}/v1", "api_key": speech.key, "voice": VOICE, "text": SENTENCE}
    )


def assert_metered(speech: SpeechAccount, requests: int) -> None:
    rows = speech.rows()
    assert [(row.outcome, row.characters) for row in rows] == [
        ("success", len(SENTENCE))
    ] * requests


@pytest.mark.walk
def test_openai_python(speech: SpeechAccount, usual: float, tmp_path: Path) -> None:
    with speech.openai() as sdk:
        request: dict[str, Any] = {"model": "tts-1", "voice": VOICE, "input": SENTENCE}
        for name in FORMATS:
            answer = sdk.audio.speech.create(**request, response_format=name)
            assert length(name, answer.read()) == pytest.approx(usual, abs=0.1), name
        fast = sdk.audio.speech.create(**request, speed=2, instructions="Speak clearly.")
        assert length("wav", fast.read()) == pytest.approx(usual / 2, rel=0.15)
        with sdk.audio.speech.with_streaming_response.create(
            **request, response_format="mp3"
        ) as streamed:
            streamed.stream_to_file(tmp_path / "speech.mp3")
        written = (tmp_path / "speech.mp3").read_bytes()
        assert length("mp3", written) == pytest.approx(usual, abs=0.1)
    assert_metered(speech, 8)


def test_openai_python_asynchronously(speech: SpeechAccount, usual: float) -> None:
    async def speak() -> dict[str, bytes]:
        async with AsyncOpenAI(base_url=f"{speech.url}/v1", api_key=speech.key) as sdk:
            found: dict[str, bytes] = {}
            for name in FORMATS:
                async with sdk.audio.speech.with_streaming_response.create(
                    model="tts-1", voice=VOICE, input=SENTENCE, response_format=name
                ) as answer:
                    found[name] = b"".join([piece async for piece in answer.iter_bytes()])
            return found

    for name, content in asyncio.run(speak()).items():
        assert length(name, content) == pytest.approx(usual, abs=0.1), name
    assert_metered(speech, 6)


@pytest.mark.parametrize(("client", "requests"), [("openai", 8), ("ai-sdk", 5)])
def test_clients_of_npm(speech: SpeechAccount, usual: float, client: str, requests: int) -> None:
    told: dict[str, Any] = json.loads(node("speech.mjs", client, stdin=script(speech)))

    for name, seen in told["files"].items():
        assert length(name, b64decode(seen["content"])) == pytest.approx(usual, abs=0.1), name
    fast = b64decode(told["fast"]["content"])
    assert length("wav", fast) == pytest.approx(usual / 2, rel=0.15)
    if client == "openai":
        assert told["voice"] == VOICE
        assert told["pieces"] > 1
    assert_metered(speech, requests)


def agent(speech: SpeechAccount, client: str) -> dict[str, float]:
    """Run one client of ``speech_agents.py``, and return its output."""
    module = ROOT / "tests/support/clients/speech_agents.py"
    printed = output_of(run(program("python"), module, client, input=script(speech)))
    found: dict[str, float] = json.loads(printed.splitlines()[-1])
    return found


@pytest.mark.walk
def test_livekit_agents(speech: SpeechAccount, usual: float) -> None:
    found = agent(speech, "livekit")

    assert set(found) == set(FORMATS)
    # Its own decoder of FLAC drops the last block.
    for name, seconds in found.items():
        assert seconds == pytest.approx(usual, abs=0.3), name
    assert_metered(speech, 6)


@pytest.mark.walk
def test_pipecat(speech: SpeechAccount, usual: float) -> None:
    found = agent(speech, "pipecat")

    assert found["usual"] == pytest.approx(usual, abs=0.1)
    assert found["fast"] == pytest.approx(usual / 2, rel=0.15)
    assert_metered(speech, 3)
