"""Copies of deleted clones are deleted at once, or retried until they are."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async

from core import clock
from speech.engines.http.backend import BackendRef
from speech.models import CloneUpload, SpeechBackend, VoiceClone
from speech.voices.clones import rows
from speech.voices.clones.outbox import RETRY_AFTER, Outbox
from tests.support.builders import speech_rows
from tests.support.until import until_async

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("threads_end")]


class Backends:
    """Fakes of the speech backends; ``failing`` makes them unreachable."""

    def __init__(self) -> None:
        self.failing = False
        self.deleted: list[tuple[str, str]] = []

    async def delete_upload(self, backend: BackendRef, name: str) -> None:
        if self.failing:
            raise ConnectionError("secret of the network")
        self.deleted.append((backend.name, name))


@pytest.fixture
def backends() -> Backends:
    return Backends()


@pytest.fixture
def outbox() -> Outbox:
    return Outbox()


def uploaded_clone(*names: str) -> VoiceClone:
    clone = speech_rows.clone(speech_rows.organization())
    backend = speech_rows.cloning_backend(name="neural")
    for name in names:
        CloneUpload.objects.create(clone=clone, backend=backend, upstream_name=name)
    return clone


def delete(clone: VoiceClone) -> None:
    rows.delete(clone.pk, str(clone.organization_id))


async def left() -> list[str]:
    return [row.upstream_name async for row in CloneUpload.objects.all()]


async def test_a_deletion_is_sent_to_the_backends(outbox: Outbox, backends: Backends) -> None:
    clone = await sync_to_async(uploaded_clone)("a", "b")
    outbox.start(backends.delete_upload)
    await outbox.delete_due()
    assert backends.deleted == []

    # Copies on a disabled backend are deleted too.
    await SpeechBackend.objects.aupdate(enabled=False)
    await sync_to_async(delete)(clone)
    await outbox.delete_due()

    assert sorted(backends.deleted) == [("neural", "a"), ("neural", "b")]
    assert await left() == []


async def test_a_nudge_from_any_thread_is_enough(outbox: Outbox, backends: Backends) -> None:
    clone = await sync_to_async(uploaded_clone)("a")
    outbox.start(backends.delete_upload)
    await sync_to_async(delete)(clone)

    await asyncio.to_thread(outbox.nudge)

    async def is_empty() -> bool:
        return not await left()

    await until_async(is_empty)
    assert backends.deleted == [("neural", "a")]


async def test_a_failed_deletion_is_retried(
    outbox: Outbox,
    backends: Backends,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clone = await sync_to_async(uploaded_clone)("a")
    outbox.start(backends.delete_upload)
    await sync_to_async(delete)(clone)
    backends.failing = True
    await outbox.delete_due()
    assert await left() == ["a"]
    assert "secret" not in caplog.text
    assert "neural keeps a deleted clone's clip for now: ConnectionError" in caplog.text

    backends.failing = False
    await outbox.delete_due()
    assert await left() == ["a"], "not before it is due again"

    later = clock.now() + RETRY_AFTER + timedelta(seconds=1)
    monkeypatch.setattr("speech.voices.clones.outbox.clock.now", lambda: later)
    await outbox.delete_due()
    assert backends.deleted == [("neural", "a")]
    assert await left() == []


async def test_two_workers_delete_a_copy_once(backends: Backends) -> None:
    clone = await sync_to_async(uploaded_clone)(*(f"copy {number}" for number in range(60)))
    workers = [Outbox(), Outbox()]
    for worker in workers:
        worker.start(backends.delete_upload)
    await sync_to_async(delete)(clone)

    await asyncio.gather(*(worker.delete_due() for worker in workers))

    assert len(backends.deleted) == len(set(backends.deleted)) == 60
    assert await left() == []


async def test_nothing_is_deleted_before_the_start_and_after_the_stop(
    outbox: Outbox, backends: Backends
) -> None:
    clone = await sync_to_async(uploaded_clone)("a")
    await sync_to_async(delete)(clone)
    outbox.nudge()
    await outbox.delete_due()
    outbox.start(backends.delete_upload)
    await outbox.stop()
    outbox.nudge()
    await outbox.delete_due()

    assert await left() == ["a"]
    assert backends.deleted == []
