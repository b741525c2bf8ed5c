"""Copies of deleted clones: forgotten at once, or again and again until they are."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async

from speech.clones import registry
from speech.clones.outbox import RETRY_AFTER, Outbox
from speech.models import CloneUpload, SpeechBackend, VoiceClone
from speech.snapshot import BackendRef
from svc_project.lib import clock
from tests.speech import making

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("threads_end")]


class Backends:
    """Stands for the speech backends; ``failing`` makes them unreachable."""

    def __init__(self) -> None:
        self.failing = False
        self.forgotten: list[tuple[str, str]] = []
        self.asked = asyncio.Event()

    async def forget(self, backend: BackendRef, name: str) -> None:
        self.asked.set()
        if self.failing:
            raise ConnectionError("secret of the network")
        self.forgotten.append((backend.name, name))


@pytest.fixture
def backends() -> Backends:
    return Backends()


@pytest.fixture
def outbox(backends: Backends) -> Outbox:
    return Outbox()


def uploaded_clone(*names: str) -> VoiceClone:
    clone = making.clone(making.organization())
    backend = making.cloning_backend(name="neural")
    for name in names:
        CloneUpload.objects.create(clone=clone, backend=backend, upstream_name=name)
    return clone


def delete(clone: VoiceClone) -> None:
    registry.delete(clone.pk, str(clone.organization_id))


async def left() -> list[str]:
    return [row.upstream_name async for row in CloneUpload.objects.all()]


async def test_a_deletion_is_carried_to_the_backends(outbox: Outbox, backends: Backends) -> None:
    clone = await sync_to_async(uploaded_clone)("a", "b")
    outbox.start(backends.forget)
    await outbox.forget_due()
    assert backends.forgotten == []

    await sync_to_async(delete)(clone)
    await outbox.forget_due()

    assert sorted(backends.forgotten) == [("neural", "a"), ("neural", "b")]
    assert await left() == []


async def test_a_nudge_from_any_thread_is_enough(outbox: Outbox, backends: Backends) -> None:
    clone = await sync_to_async(uploaded_clone)("a")
    outbox.start(backends.forget)
    await sync_to_async(delete)(clone)

    await asyncio.to_thread(outbox.nudge)
    await asyncio.wait_for(backends.asked.wait(), 10)
    await outbox.forget_due()

    async with asyncio.timeout(10):
        while await left():  # noqa: ASYNC110  # the row goes in another task
            await asyncio.sleep(0.01)
    assert backends.forgotten == [("neural", "a")]


async def test_a_backend_that_fails_is_asked_again(
    outbox: Outbox,
    backends: Backends,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clone = await sync_to_async(uploaded_clone)("a")
    outbox.start(backends.forget)
    await sync_to_async(delete)(clone)
    backends.failing = True
    await outbox.forget_due()
    assert await left() == ["a"]
    assert "secret" not in caplog.text
    assert "neural keeps a deleted clone's clip for now: ConnectionError" in caplog.text

    backends.failing = False
    await outbox.forget_due()
    assert await left() == ["a"], "not before it is due again"

    later = clock.now() + RETRY_AFTER + timedelta(seconds=1)
    monkeypatch.setattr("speech.clones.outbox.clock.now", lambda: later)
    await outbox.forget_due()
    assert backends.forgotten == [("neural", "a")]
    assert await left() == []


async def test_a_backend_that_is_switched_off_is_asked_too(
    outbox: Outbox, backends: Backends
) -> None:
    clone = await sync_to_async(uploaded_clone)("a")
    outbox.start(backends.forget)
    await SpeechBackend.objects.aupdate(enabled=False)
    await sync_to_async(delete)(clone)

    await outbox.forget_due()

    assert await left() == []


async def test_two_workers_do_not_ask_twice(backends: Backends) -> None:
    clone = await sync_to_async(uploaded_clone)(*(f"copy {number}" for number in range(60)))
    workers = [Outbox(), Outbox()]
    for worker in workers:
        worker.start(backends.forget)
    await sync_to_async(delete)(clone)

    await asyncio.gather(*(worker.forget_due() for worker in workers))

    assert len(backends.forgotten) == len(set(backends.forgotten)) == 60
    assert await left() == []


async def test_nothing_is_asked_before_the_start_and_after_the_stop(
    outbox: Outbox, backends: Backends
) -> None:
    clone = await sync_to_async(uploaded_clone)("a")
    await sync_to_async(delete)(clone)
    outbox.nudge()
    await outbox.forget_due()
    outbox.start(backends.forget)
    await outbox.stop()
    outbox.nudge()
    await outbox.forget_due()

    assert await left() == ["a"]
    assert backends.forgotten == []
