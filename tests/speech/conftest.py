"""Fixtures of the speech tests: the live surface, and one espeak-ng subprocess."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from asgiref.sync import SyncToAsync
from django.db import connections

from accounts.keyring import keyring
from accounts.keys import mint
from accounts.models import Organization, Plan, Scope
from speech.database import threads
from speech.models import SpeechBackend, Voice
from tests.live import Gateway, eventually
from tests.speech.caller import SpeechAccount
from tests.speech.espeak_voice import EspeakVoice
from tests.speech.speech_server import PROFILES, SpeechServer, running_speech_server


@pytest.fixture(scope="session")
def espeak_voice() -> Iterator[EspeakVoice]:
    voice = EspeakVoice()
    yield voice
    voice.close()


@pytest.fixture(scope="session")
def speech_server() -> Iterator[SpeechServer]:
    """The simulated speech server; texts such as ``[[sim pace:1]] Hello.`` direct it."""
    with running_speech_server() as running:
        yield running


@pytest.fixture
def remote(speech: SpeechAccount, speech_server: SpeechServer) -> dict[str, str]:
    """Voices that the simulated speech server speaks, by how it delivers; served from now on."""
    names = {}
    for profile, columns in PROFILES.items():
        backend, _ = SpeechBackend.objects.get_or_create(
            name=f"simulated-{profile}",
            defaults={
                "base_url": f"{speech_server.url}/v1",
                "model": "simulated",
                "first_byte_seconds": 1.0,
                "total_seconds": 8.0,
                "sounds": {"laughs": "(laugh)"},
                "normalizes_text": True,
                **columns,
            },
        )
        voice, _ = Voice.objects.get_or_create(
            id=f"remote-{profile}", defaults={"backend": backend, "engine_voice": "noah"}
        )
        names[profile] = voice.pk
    eventually(lambda: all(name in speech.voices() for name in names.values()))
    return names


@pytest.fixture
def speech(gateway: Gateway) -> SpeechAccount:
    """An enterprise account without limits, on the live gateway."""
    return speech_account(gateway)


def speech_account(gateway: Gateway, plan: Plan = Plan.ENTERPRISE, **limits: int) -> SpeechAccount:
    """Another account of a gateway."""
    unlimited = {"speech_requests_per_minute": None, "speech_characters_per_day": None}
    organization = Organization.objects.create(
        name=f"speech {uuid.uuid4()}", plan=plan, **{**unlimited, **limits}
    )
    minted = mint(organization, Scope.SPEECH, "test")
    return SpeechAccount(gateway, organization, minted.api_key, minted.secret)


@pytest.fixture
def threads_end() -> Iterator[None]:
    """Ends what an asynchronous test had asked the database with, so that it can be dropped."""
    yield
    threads.close()
    keyring.close()
    SyncToAsync.single_thread_executor.submit(connections.close_all).result()
