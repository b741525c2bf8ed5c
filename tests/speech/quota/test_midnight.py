"""Sessions over midnight UTC: their characters, their row and the limiter name the same day."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from core.limits.memory import MemoryLimiter
from speech.errors import QuotaExceeded
from speech.quota import day_counts
from tests.support.builders.quota_service import Service, caller
from tests.support.speech.sessions import DAY, Collaborators, Socket, session
from tests.support.speech.sessions import service as service_of

BEFORE = datetime(2026, 11, 20, 23, 59, 50, tzinfo=UTC)
AFTER = datetime(2026, 11, 21, 0, 0, 5, tzinfo=UTC)


async def test_sentences_after_midnight_count_against_the_sessions_day(service: Service) -> None:
    principal = caller(2000)
    service.now = BEFORE
    session = await service.quota.open_session(principal)
    await service.quota.charge(principal, 900, session.day)
    service.now = AFTER

    sentence = await service.quota.charge(principal, 800, session.day)

    assert sentence.day == session.day == DAY
    assert await service.left(principal) == 2000
    service.now = BEFORE
    assert await service.left(principal) == 300
    sentence.refund_characters()
    assert await service.left(principal) == 1100


async def test_a_restarted_store_has_the_same_rest_as_the_one_before_it() -> None:
    """The ledger has the characters on the day of the session's row."""
    principal = caller(1000)
    service = Service(MemoryLimiter())
    service.now = BEFORE
    session = await service.quota.open_session(principal)
    service.now = AFTER
    await service.quota.charge(principal, 800, session.day)
    left = await service.left(principal)

    restarted = Service(MemoryLimiter())
    restarted.now = AFTER
    restarted.ledger.spoken = {("org-1", session.day): 800}

    assert await restarted.left(principal) == left


async def test_a_quota_that_ended_says_to_open_another_session(service: Service) -> None:
    principal = caller(1000)
    service.now = BEFORE
    session = await service.quota.open_session(principal)
    await service.quota.charge(principal, 1000, session.day)
    service.now = AFTER

    with pytest.raises(QuotaExceeded) as refused:
        await service.quota.charge(principal, 1, session.day)

    assert refused.value.message == (
        "The organization's limit is 1000 characters a day (UTC), and it is reached: 1000 used, 1 "
        "needed. The session counts against 2026-11-20, when it was opened. Open another session."
    )
    assert refused.value.headers["retry-after"] == "1"
    await service.quota.charge(principal, 1000, (await service.quota.open_session(principal)).day)


async def test_a_session_of_days_still_counts(service: Service) -> None:
    """Longer than the store keeps a day's count: it begins from the ledger each time."""
    principal = caller(1000)
    service.ledger.spoken["org-1", DAY] = 900
    service.now = BEFORE + timedelta(days=4)

    assert (await service.quota.charge(principal, 100, DAY)).day == DAY


async def test_a_late_count_of_the_day_before_is_not_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(day_counts, "WAIT_SECONDS", 0.05)
    principal = caller(1000)
    service = Service(MemoryLimiter())
    service.now = BEFORE
    service.ledger.spoken["org-1", DAY] = 950
    service.ledger.answers.clear()
    await service.quota.charge(principal, 1, DAY)
    service.ledger.answers.set()
    await asyncio.sleep(0)
    service.now = AFTER
    await service.quota.reserve(principal, 1)

    with pytest.raises(QuotaExceeded, match="950 used, 51 needed"):
        await service.quota.charge(principal, 51, DAY)


async def test_a_session_that_speaks_after_midnight_uses_the_quota_of_its_rows_day() -> None:
    principal = caller(1000)
    limits = Service(MemoryLimiter())
    limits.ledger.spoken["org-1", DAY] = 1000
    limits.now = AFTER
    engines = SimpleNamespace(of=lambda _: None)
    speech = service_of(Collaborators(), quota=limits.quota, engines=engines)
    socket = Socket({"type": "text", "text": "Hello there.\n"})
    _, meter, running = session(speech, socket, principal)

    failure = await running

    assert isinstance(failure, QuotaExceeded)
    assert meter.receipt(failure, 101).day == DAY
