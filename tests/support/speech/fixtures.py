"""Fixtures of the speech tests: the live surface, and a voice without an event loop."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from asgiref.sync import SyncToAsync
from django.db import connections

from accounts.keys.keyring import keyring
from core.database.threads import threads
from speech.models import SpeechBackend, Voice
from tests.support.live import Gateway
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import SpeechAccount
from tests.support.speech.espeak_voice import EspeakVoice
from tests.support.speech.speech_server import PROFILES, SpeechServer, running_speech_server
from tests.support.until import until


@pytest.fixture(scope="module")
def espeak_voice() -> Iterator[EspeakVoice]:
    """It ends with the module, because some tests look at the processes of all engines."""
    voice = EspeakVoice()
    yield voice
    voice.close()


@pytest.fixture(scope="session")
def speech_server() -> Iterator[SpeechServer]:
    """The simulated speech server, controlled by texts such as ``[[sim pace:1]] Hello.``."""
    with running_speech_server() as running:
        yield running


@pytest.fixture
def remote(speech: SpeechAccount, speech_server: SpeechServer) -> dict[str, str]:
    """Voices of the simulated speech server, by delivery; they are served from now on."""
    names = {}
    for profile, columns in PROFILES.items():
        backend, _ = SpeechBackend.objects.get_or_create(
            name=f"simulated-{profile}",
            defaults={
                "base_url": f"{speech_server.url}/v1",
                "model": "simulated",
                "first_byte_seconds": 30.0,
                "total_seconds": 60.0,
                "sounds": {"laughs": "(laugh)"},
                "normalizes_text": True,
                **columns,
            },
        )
        voice, _ = Voice.objects.get_or_create(
            id=f"remote-{profile}", defaults={"backend": backend, "engine_voice": "noah"}
        )
        names[profile] = voice.pk
    until(lambda: all(name in speech.voices() for name in names.values()))
    return names


@pytest.fixture
def speech(gateway: Gateway) -> SpeechAccount:
    """An enterprise account without limits, on the live gateway."""
    return speech_account(gateway)


@pytest.fixture
def threads_end() -> Iterator[None]:
    """End the database threads of an asynchronous test, so that the database can be dropped."""
    yield
    threads.close()
    keyring.close()
    SyncToAsync.single_thread_executor.submit(connections.close_all).result()
