"""The hub of one process, with the channel layer in memory."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from channels.layers import InMemoryChannelLayer
from django.db import transaction

from accounts.models import Organization
from tests.support.builders.receipts import receipt
from tests.support.until import until_async
from usage.console.live import hub as module
from usage.console.live.hub import LiveHub
from usage.ledger import rows
from usage.ledger.announcements import announcements
from usage.receipts import AnyReceipt

OURS = "00000000-0000-4000-8000-000000000001"
THEIRS = "00000000-0000-4000-8000-000000000002"


@pytest.fixture
def layer(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemoryChannelLayer]:
    layer = InMemoryChannelLayer()
    monkeypatch.setattr(module, "get_channel_layer", lambda: layer)
    monkeypatch.setattr(module, "GATHER_SECONDS", 0.02)
    monkeypatch.setattr(module, "ROUND_SECONDS", 0.05)
    yield layer
    announcements.listen(None)


@pytest_asyncio.fixture
async def hub(layer: InMemoryChannelLayer) -> AsyncIterator[LiveHub]:
    hub = LiveHub()
    hub.start()
    yield hub
    await hub.close()


async def _write(*receipts: AnyReceipt) -> None:
    """Announce as the writer does, in a thread."""

    def announce() -> None:
        with pytest.MonkeyPatch.context() as patch:
            # These tests have no database; tests below have.
            patch.setattr(transaction, "on_commit", lambda call, robust: call())
            if announcements.organizations:
                announcements.announce(receipts)

    await asyncio.to_thread(announce)


async def joined(hub: LiveHub, layer: InMemoryChannelLayer) -> None:
    """Wait until the hub gets the announcements of all processes."""
    await until_async(lambda: hub._channel and hub._channel in layer.groups.get("svc.live", {}))


async def test_nothing_is_published_while_nobody_watches(
    hub: LiveHub, layer: InMemoryChannelLayer
) -> None:
    await joined(hub, layer)
    await _write(receipt(organization_id=OURS))
    assert announcements.organizations == frozenset()

    watcher = hub.enter(OURS, is_speech=False)
    await until_async(lambda: OURS in announcements.organizations)
    watcher.news.clear()
    await _write(receipt(organization_id=OURS))
    await asyncio.wait_for(watcher.news.wait(), 60)
    assert hub.published == 1


async def test_an_organization_is_forgotten_when_its_watchers_are_gone(
    hub: LiveHub, layer: InMemoryChannelLayer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "EXPIRY_SECONDS", 2.0)
    sends, rounds = layer.group_send, 0

    async def counted(group: str, message: dict[str, object]) -> None:
        nonlocal rounds
        rounds += message["type"] == "watched"
        await sends(group, message)

    monkeypatch.setattr(layer, "group_send", counted)
    watcher = hub.enter(OURS, is_speech=False)
    await until_async(lambda: OURS in announcements.organizations)
    again = rounds + 3
    await until_async(lambda: rounds >= again)  # it is announced again and again

    hub.leave(watcher)

    await until_async(lambda: not announcements.organizations)


async def test_another_process_is_bounded_and_forgotten_when_it_dies(
    hub: LiveHub, layer: InMemoryChannelLayer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "EXPIRY_SECONDS", 2.0)
    monkeypatch.setattr(module, "MOST_WATCHED", 3)
    await joined(hub, layer)
    many = [str(uuid.uuid4()) for _ in range(10)]
    await layer.group_send("svc.live", {"type": "watched", "organizations": many})

    await until_async(lambda: announcements.organizations)
    assert len(announcements.organizations) == 3
    await until_async(lambda: not announcements.organizations)


async def test_a_layer_that_fails_is_tried_again(
    hub: LiveHub, layer: InMemoryChannelLayer, monkeypatch: pytest.MonkeyPatch
) -> None:
    sends = layer.group_send
    watcher = hub.enter(OURS, is_speech=False)
    await until_async(lambda: OURS in announcements.organizations)

    async def fail(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(layer, "group_send", fail)
    await until_async(lambda: not hub.sees_all_rows)
    monkeypatch.setattr(layer, "group_send", sends)
    watcher.news.clear()

    async def is_told() -> bool:
        await _write(receipt(organization_id=OURS))
        return watcher.news.is_set()

    await until_async(is_told)


@pytest.mark.django_db(transaction=True)
def test_rows_are_announced_once_they_are_committed() -> None:
    organization = Organization.objects.create(name="Northwind")
    heard: list[frozenset[object]] = []
    announcements.organizations = frozenset({str(organization.pk)})
    announcements.listen(heard.append)
    try:
        with transaction.atomic():
            rows.insert([receipt(organization_id=str(organization.pk))])
            assert heard == []
        assert heard == [{(str(organization.pk), False)}]

        rows.insert([receipt(organization_id=THEIRS)])
        with transaction.atomic():
            rows.insert([receipt(organization_id=str(organization.pk))])
            transaction.set_rollback(True)
        assert len(heard) == 1
    finally:
        announcements.listen(None)


@pytest.mark.django_db
def test_a_listener_that_fails_does_not_fail_the_write() -> None:
    organization = Organization.objects.create(name="Northwind")

    def fail(_: object) -> None:
        raise ValueError

    announcements.organizations = frozenset({str(organization.pk)})
    announcements.listen(fail)
    try:
        assert rows.insert([receipt(organization_id=str(organization.pk))]) == 1
    finally:
        announcements.listen(None)


async def test_a_lost_cancellation_does_not_keep_the_server_from_stopping(
    hub: LiveHub, layer: InMemoryChannelLayer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code with a timeout of its own can take a cancellation for it; Python 3.11's ``wait_for`` does."""
    waits, lost = asyncio.Event(), asyncio.Event()

    async def receive(_channel: str) -> dict[str, object]:
        waits.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if lost.is_set():
                raise
            lost.set()
        return {"type": "watched", "organizations": []}

    monkeypatch.setattr(layer, "receive", receive)
    await hub.close()
    other = LiveHub()
    other.start()

    async with asyncio.timeout(60):
        await waits.wait()
        await other.close()
    assert lost.is_set()
