"""A voice on several speech servers goes on speaking when one of them dies, on a live gateway."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

from core.ids import uuid7_hex
from speech.models import SpeechBackend, Voice, VoiceServer
from tests.support.metrics import metrics
from tests.support.speech.caller import SpeechAccount
from tests.support.speech.speech_server import PROFILES, SpeechServer
from tests.support.until import until

NOBODY = "http://127.0.0.1:1/v1"


def backend(name: str, base_url: str, **columns: Any) -> SpeechBackend:
    figures = {"model": "simulated", "normalizes_text": True, **PROFILES["pcm"]}
    return SpeechBackend.objects.create(name=name, base_url=base_url, **{**figures, **columns})


@pytest.fixture
def voice(speech: SpeechAccount, speech_server: SpeechServer) -> str:
    """A voice of a dead server with nearly all of the weight, and of one that speaks."""
    name = f"several-{uuid7_hex()}"
    dead = backend(f"{name}-dead", NOBODY)
    alive = backend(f"{name}-alive", f"{speech_server.url}/v1")
    with transaction.atomic():
        row = Voice.objects.create(id=name, backend=dead, engine_voice="noah", weight=10_000)
        VoiceServer.objects.create(voice=row, backend=alive, engine_voice="emma", weight=1)
    until(lambda: speech.speak(voice=name).status_code == 200)
    return name


def test_another_server_speaks_and_the_dead_one_is_ejected(
    speech: SpeechAccount, voice: str, speech_server: SpeechServer
) -> None:
    marker = "Orchard of the several servers"
    for name in ("wav", "pcm", "mp3", "wav"):
        answer = speech.speak(f"{marker}.", voice, response_format=name)
        assert answer.status_code == 200, answer.text
    with speech.session(voice) as session:
        session.text(f"{marker}. {marker} again.")
        session.done()
        *frames, done = session.rest()

    assert [type(frame) for frame in frames] == [bytes, bytes]
    assert done == {"type": "session.done"}
    assert {each["body"]["voice"] for each in speech_server.requests_with(marker)} == {"emma"}
    assert {row.outcome for row in speech.rows_when(6)} == {"success"}
    seen = metrics(speech.gateway)
    of = {"backend": f"{voice}-dead"}
    assert seen.sum("svc_speech_backend_takeovers_total", **of) >= 3
    assert seen.sum("svc_speech_backend_failures_total", **of) >= 3
    assert seen.sum("svc_speech_backend_ejections_total", **of) == 1
    assert seen.sum("svc_speech_backend_ejected", backend=f"{voice}-alive") == 0


def test_the_voice_is_served_while_one_of_its_servers_is_on(
    speech: SpeechAccount, voice: str
) -> None:
    SpeechBackend.objects.filter(name=f"{voice}-dead").update(enabled=False)
    assert speech.speak(voice=voice).status_code == 200
    assert voice in speech.voices()

    SpeechBackend.objects.filter(name=f"{voice}-alive").update(enabled=False)
    until(lambda: voice not in speech.voices())
