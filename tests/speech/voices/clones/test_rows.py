"""Rows of clones under races, and their clips for engines."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import IntegrityError, connection

from accounts.models import Organization
from core.errors import ApiError
from core.ids import NIL_UUID
from speech.engines import EngineError
from speech.errors import CloneNotFound, NameTaken, TooManyClones
from speech.models import CloneAudio, CloneUpload, VoiceClone
from speech.names import name_key
from speech.voices.clones import rows
from speech.voices.clones.clips import cipher, clips
from speech.voices.clones.rows import NewClone
from tests.support.builders import speech_rows
from tests.support.servers.database_outage import database_outage

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("threads_end")]

CLIP = b"RIFF....WAVE the clip of a person"


def new(owner: Organization, name: str) -> NewClone:
    return NewClone(
        organization_id=str(owner.pk),
        api_key_id=str(NIL_UUID),
        name=name,
        name_key=name_key(name),
        reference_seconds=4.0,
        profile={},
        sealed=cipher().seal(CLIP),
    )


def outcomes(calls: list[Callable[[], Any]]) -> list[str]:
    """The result of each call, all of them started at once."""
    start = Barrier(len(calls))

    def run(call: Callable[[], Any]) -> str:
        try:
            start.wait(timeout=60)
            call()
        except ApiError as error:
            return type(error).__name__
        else:
            return "made"
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return sorted(pool.map(run, calls))


@pytest.mark.parametrize(("taken", "free"), [(8, 2), (0, 10)])
def test_concurrent_creations_take_each_free_slot_once(taken: int, free: int) -> None:
    owner = speech_rows.organization()
    for _ in range(taken):
        speech_rows.clone(owner)
    requests = [new(owner, f"voice {number}") for number in range(20)]

    found = outcomes([partial(rows.add, each, ()) for each in requests])

    assert found == ["TooManyClones"] * (20 - free) + ["made"] * free
    assert {row.slot for row in VoiceClone.objects.all()} == set(range(1, 11))
    assert CloneAudio.objects.count() == free


def test_of_concurrent_requests_one_takes_a_name_and_one_deletes() -> None:
    owner = speech_rows.organization()
    clone = speech_rows.clone(owner)

    assert outcomes([lambda: rows.add(new(owner, "Anna"), ())] * 10) == ["NameTaken"] * 9 + ["made"]
    found = outcomes([lambda: rows.delete(clone.pk, str(owner.pk))] * 8)
    assert found == ["CloneNotFound"] * 7 + ["made"]


def test_the_constraints_of_the_tables_hold() -> None:
    owner = speech_rows.organization()
    speech_rows.clone(owner, "Anna", slot=1)

    for broken in ({"slot": 1}, {"slot": 11}, {"slot": 0}, {"slot": None}, {"name_key": "anna"}):
        with pytest.raises(IntegrityError):
            speech_rows.clone(owner, **broken)


def test_a_reserved_name_and_a_full_account_are_different_errors() -> None:
    owner = speech_rows.organization()
    with pytest.raises(NameTaken):
        rows.require_room(str(owner.pk), "ava", {"ava"})
    for _ in range(10):
        speech_rows.clone(owner)
    with pytest.raises(TooManyClones):
        rows.require_room(str(owner.pk), "bea", {"ava"})


@pytest.mark.parametrize("clone_id", ["", "ava", "voice_\0", "voice_" + "0" * 32])
def test_an_id_of_no_clone_is_not_found(clone_id: str) -> None:
    with pytest.raises(CloneNotFound):
        rows.delete(clone_id, str(speech_rows.organization().pk))


# --- clips for engines


@pytest.fixture
async def owner() -> Organization:
    return await sync_to_async(speech_rows.organization)()


async def test_an_engine_gets_the_clip_until_the_deletion(
    owner: Organization, settings: Any
) -> None:
    clone = await sync_to_async(rows.add)(new(owner, "Anna"), ())
    assert await clips.clip(clone.pk) == CLIP
    # A clip of an old key opens after a new key is added.
    keys = settings.SVC_CLONE_KEYS
    settings.SVC_CLONE_KEYS = ["another", *keys]
    assert await clips.clip(clone.pk) == CLIP
    # A lost key is an engine error without secrets.
    settings.SVC_CLONE_KEYS = ["another"]
    with pytest.raises(EngineError, match="SVC_CLONE_KEYS"):
        await clips.clip(clone.pk)
    settings.SVC_CLONE_KEYS = keys

    await sync_to_async(rows.delete)(clone.pk, str(owner.pk))
    with pytest.raises(EngineError):
        await clips.clip(clone.pk)


async def test_an_upload_is_known_by_its_backend_until_the_deletion(owner: Organization) -> None:
    clone = await sync_to_async(speech_rows.clone)(owner)
    backend = await sync_to_async(speech_rows.cloning_backend)()
    other = await sync_to_async(speech_rows.backend)()
    assert await clips.upload_name(clone.pk, str(backend.pk)) is None

    await clips.uploaded(clone.pk, str(backend.pk), "random-1")
    await clips.uploaded(clone.pk, str(backend.pk), "random-2")

    assert await clips.upload_name(clone.pk, str(backend.pk)) == "random-1"
    assert await clips.upload_name(clone.pk, str(other.pk)) is None
    assert await CloneUpload.objects.filter(delete_after=None).acount() == 2

    await sync_to_async(rows.delete)(clone.pk, str(owner.pk))

    assert await clips.upload_name(clone.pk, str(backend.pk)) is None
    assert await CloneUpload.objects.exclude(delete_after=None).acount() == 2
    with pytest.raises(EngineError):
        await clips.uploaded(clone.pk, str(backend.pk), "random-3")


async def test_an_unreachable_database_is_an_engine_error() -> None:
    with database_outage(), pytest.raises(EngineError):
        await clips.clip("voice_" + "0" * 32)
