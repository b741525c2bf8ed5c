"""A creation that a limit or the engine refuses stores nothing and counts as a refused request."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncGenerator

import pytest
from asgiref.sync import sync_to_async

from accounts.changes import ChangeWatcher
from accounts.keys.principal import Principal
from accounts.models import Organization
from core.errors import ApiError, InvalidField
from speech.engines import Engine, EngineError, EngineFull, EngineTimeout, Utterance
from speech.errors import (
    NameTaken,
    QuotaExceeded,
    SpeechFailed,
    SpeechFull,
    SpeechTimedOut,
    TooManyClones,
)
from speech.models import VoiceClone
from speech.voices.clones import creation as creations
from speech.voices.clones.creation import CloneCreation
from speech.voices.clones.wire import CloneRequest
from speech.voices.voices import Voices
from tests.support.builders import speech_rows
from tests.support.speech.caller import CLIP

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("threads_end")]


class Failing(Engine):
    """An engine that raises a given error, or speaks a second of silence."""

    def __init__(self, error: EngineError | None = None) -> None:
        self.error = error
        self.spoken = 0

    async def speak(self, utterance: Utterance) -> AsyncGenerator[bytes, None]:
        self.spoken += 1
        if self.error is not None:
            raise self.error
        yield bytes(48_000)

    async def close(self) -> None:
        pass


class Attempts:
    """A limit of ``allowed`` creations."""

    def __init__(self, allowed: int = 100) -> None:
        self.allowed = allowed
        self.counted = 0

    async def __call__(self, principal: Principal) -> None:
        if self.counted == self.allowed:
            raise QuotaExceeded("No more this hour.")
        self.counted += 1


class Refusals:
    """Records the bytes of refused requests; ``are_too_many`` when they are."""

    error = QuotaExceeded

    def __init__(self) -> None:
        self.are_too_many = False
        self.counted: list[int] = []

    def check_refused(self, principal: Principal) -> None:
        if self.are_too_many:
            raise QuotaExceeded("Too many were refused.")

    def count_refused(self, principal: Principal, error: ApiError, body_bytes: int = 0) -> None:
        self.counted.append(body_bytes)


@pytest.fixture
async def owner() -> Organization:
    return await sync_to_async(speech_rows.organization)()


def creation(engine: Engine, attempts: Attempts, refusals: Refusals | None = None) -> CloneCreation:
    return CloneCreation(Voices(ChangeWatcher()), engine, attempts, refusals or Refusals())


def body(name: str = "Anna", audio: str = CLIP) -> bytes:
    return json.dumps({"name": name, "audio_b64": audio, "consent": True}).encode()


async def test_a_clip_without_a_voice_gives_the_base_voice(owner: Organization) -> None:
    made = await creation(Failing(), Attempts()).create(body(), speech_rows.principal(owner))

    assert made.name == "Anna"
    assert await VoiceClone.objects.acount() == 1


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (EngineError("it died"), SpeechFailed),
        (EngineFull("no place"), SpeechFull),
        (EngineTimeout("too slow"), SpeechTimedOut),
    ],
)
async def test_a_failing_engine_is_reported_as_such(
    owner: Organization, error: EngineError, expected: type[ApiError]
) -> None:
    with pytest.raises(expected):
        await creation(Failing(error), Attempts()).create(body(), speech_rows.principal(owner))

    assert await VoiceClone.objects.acount() == 0


async def test_the_hourly_limit_comes_before_the_work(owner: Organization) -> None:
    engine = Failing()
    with pytest.raises(QuotaExceeded):
        await creation(engine, Attempts(0)).create(body(), speech_rows.principal(owner))

    assert engine.spoken == 0
    assert await VoiceClone.objects.acount() == 0


async def test_a_request_refused_before_the_limit_does_not_count(owner: Organization) -> None:
    attempts, refusals = Attempts(), Refusals()
    making_one = creation(Failing(), attempts, refusals)
    principal = speech_rows.principal(owner)
    for _ in range(9):
        await sync_to_async(speech_rows.clone)(owner)
    await making_one.create(body(), principal)

    for refused, expected in (
        (body("anna"), NameTaken),
        (body("Bea"), TooManyClones),
        (body("Bea", "#"), InvalidField),
        (b"[]", InvalidField),
    ):
        with pytest.raises(expected):
            await making_one.create(refused, principal)

    assert attempts.counted == 1
    assert refusals.counted == [len(body("anna")), len(body("Bea")), len(body("Bea", "#")), 2]


async def test_a_body_that_arrived_meanwhile_is_not_parsed() -> None:
    refusals = Refusals()
    making = creation(Failing(), Attempts(), refusals)
    principal = speech_rows.principal(Organization(name="Acme"))
    refusals.are_too_many = True
    with pytest.raises(refusals.error):
        await making.create(b"not even JSON", principal)
    assert refusals.counted == []


async def test_organizations_take_turns_at_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[bytes] = []
    goes_on = threading.Event()

    def read(body: bytes) -> CloneRequest:
        begun.append(body)
        goes_on.wait(60)
        raise InvalidField("no")

    monkeypatch.setattr(creations, "read_request", read)
    refusals = Refusals()
    making = creation(Failing(), Attempts(), refusals)
    flood, other = (speech_rows.principal(Organization(name=name)) for name in ("flood", "other"))
    tasks = [
        asyncio.ensure_future(making.create(body, principal))
        for principal, body in [(flood, b"f0"), (flood, b"f1"), (flood, b"f2"), (other, b"o")]
    ]
    await asyncio.sleep(0)
    goes_on.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert begun == [b"f0", b"f1", b"o", b"f2"]
    assert refusals.counted == [2, 2, 1, 2]
