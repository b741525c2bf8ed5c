"""Reservations, refunds and messages of the speech limits, in memory and in Redis."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from math import ceil

import pytest
import redis.asyncio

from accounts.keys.principal import Principal
from core.limits.memory import MemoryLimiter
from core.limits.redis import RedisLimiter
from speech.errors import QuotaExceeded
from speech.quota import day_counts
from speech.quota.quota import Reserved, SpeechQuota
from tests.support.builders.quota_service import NOON, Service, caller
from tests.support.servers.redis_store import PATIENT, REDIS_URL
from tests.support.until import until_async


class Minutes(Service):
    """A service in memory, whose buckets refill with wall time."""

    def __init__(self, clones_per_hour: int | None = 60) -> None:
        super().__init__(MemoryLimiter(lambda: round(self.now.timestamp() * 1000)), clones_per_hour)


# --- what is counted ------------------------------------------------------------------------


async def test_parallel_requests_get_exactly_the_quota(service: Service) -> None:
    principal = caller(1000)
    outcomes = await asyncio.gather(
        *[service.quota.reserve(principal, 30) for _ in range(100)], return_exceptions=True
    )
    assert sum(isinstance(outcome, Reserved) for outcome in outcomes) == 33
    assert sum(isinstance(outcome, QuotaExceeded) for outcome in outcomes) == 67
    assert await service.left(principal) == 10
    assert service.ledger.questions == 1


async def test_a_session_takes_one_request_of_its_organization_and_its_sentences_characters(
    service: Service,
) -> None:
    principal = caller(100, requests=1)
    session = await service.quota.open_session(principal)
    assert session.day == "2026-11-20"
    for _ in range(4):
        await service.quota.charge(principal, 25)
    with pytest.raises(QuotaExceeded):
        await service.quota.charge(principal, 1)
    with pytest.raises(QuotaExceeded):
        await service.quota.open_session(principal)
    other = caller(100, 1, organization_id="org-2")
    await service.quota.open_session(other)
    await service.quota.charge(other, 100)
    session.refund()
    await service.quota.open_session(principal)


# --- the day --------------------------------------------------------------------------------


async def test_a_retry_after_the_given_wait_succeeds(service: Service) -> None:
    service.now = datetime(2026, 11, 20, 3, 4, 5, 678_901, tzinfo=UTC)
    await service.quota.reserve(caller(100), 100)
    error = await service.refused(caller(100), 100)
    service.now += timedelta(seconds=int(error.headers["retry-after"]))
    await service.quota.reserve(caller(100), 100)


# --- what was used before -------------------------------------------------------------------


async def test_a_day_begins_from_the_ledgers_count(service: Service) -> None:
    service.ledger.spoken["org-1", "2026-11-20"] = 940
    principal = caller(1000)
    assert "940 used, 61 needed" in (await service.refused(principal, 61)).message
    await service.quota.reserve(principal, 60)
    await service.refused(principal, 1)
    assert service.ledger.questions == 1
    service.now += timedelta(days=1)
    await service.quota.reserve(principal, 1000)
    assert service.ledger.questions == 2


async def test_a_failing_ledger_refuses_no_request_and_is_queried_again(
    service: Service, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    principal = caller(1000)
    service.ledger.spoken["org-1", "2026-11-20"] = 700
    service.ledger.error = OSError("no database")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            await service.quota.reserve(principal, 100)
    assert service.ledger.questions == 1
    assert caplog.text.count("the ledger did not return today's characters (OSError)") == 1
    service.ledger.error = None
    monkeypatch.setattr(day_counts, "RETRY_SECONDS", 0.0)
    await service.quota.charge(principal, 1)
    await asyncio.sleep(0)
    assert "700 used, 301 needed" in (await service.refused(principal, 301)).message
    assert service.ledger.questions == 2


async def test_a_hanging_ledger_delays_callers_once_and_counts_when_it_answers(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(day_counts, "WAIT_SECONDS", 0.2)
    principal = caller(1000)
    service.ledger.spoken["org-1", "2026-11-20"] = 950
    service.ledger.answers.clear()
    await asyncio.gather(*[service.quota.reserve(principal, 1) for _ in range(20)])
    for _ in range(20):
        await service.quota.reserve(principal, 1)
    assert service.ledger.questions == 1
    service.ledger.answers.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert "950 used" in (await service.refused(principal, 51)).message


async def test_a_cancelled_caller_does_not_cancel_the_shared_query(service: Service) -> None:
    service.ledger.answers.clear()
    principal = caller(100)
    impatient, patient = [
        asyncio.create_task(service.quota.reserve(principal, 60)) for _ in range(2)
    ]
    await until_async(lambda: service.ledger.questions)
    impatient.cancel()
    service.ledger.answers.set()
    assert (await patient).day == "2026-11-20"
    assert impatient.cancelled()
    assert await service.left(principal) == 40


# --- what a refusal says --------------------------------------------------------------------

CHARACTERS = {"x-quota-reason": "characters_per_day", "x-should-retry": "false"}
REFUSALS: dict[str, tuple[Principal, datetime, tuple[int, ...], str, dict[str, str]]] = {
    "a day that is used up": (
        *(caller(1000), datetime(2026, 12, 31, 21, 30, tzinfo=UTC), (990, 20)),
        "1000 characters a day (UTC), and it is reached: 990 used, 20 needed. "
        "It resets at 2027-01-01T00:00:00Z, in 2 h 30 min.",
        {**CHARACTERS, "retry-after": "9000"},
    ),
    "a text larger than the whole day": (
        *(caller(1000), NOON, (1001,)),
        "1000 characters a day (UTC): 0 used, 1001 needed. This text alone is larger than a whole "
        "day's quota, so waiting does not help. Shorten the text, or ask the operator for a larger "
        "quota.",
        {**CHARACTERS, "retry-after": "43200"},
    ),
    "a minute that is used up": (
        *(caller(1000, requests=120), NOON, (1,) * 121),
        "120 speech requests a minute, and it is reached: 120 used, 1 needed. Try again in 0.5 s.",
        {"retry-after": "1", "retry-after-ms": "500", "x-quota-reason": "requests_per_minute"},
    ),
    **{
        f"{words} until the reset": (
            *(caller(10), datetime(2026, 11, 21, tzinfo=UTC) - left, (10, 1)),
            "10 characters a day (UTC), and it is reached: 10 used, 1 needed. "
            f"It resets at 2026-11-21T00:00:00Z, in {words}.",
            {**CHARACTERS, "retry-after": str(ceil(left.total_seconds()))},
        )
        for left, words in (
            (timedelta(hours=24), "24 h 0 min"),
            (timedelta(minutes=59, seconds=1), "1 h 0 min"),
            (timedelta(minutes=59), "59 min"),
            (timedelta(seconds=60), "1 min"),
            (timedelta(seconds=58, milliseconds=1), "59 s"),
        )
    },
}
"""The caller, the time, the texts of which the last is refused, the end of the message, the headers."""


@pytest.mark.parametrize("case", REFUSALS)
async def test_a_refusal_has_its_limit_and_wait(case: str) -> None:
    principal, now, (*texts, last), message, headers = REFUSALS[case]
    service = Minutes()
    service.now = now
    for text in texts:
        await service.quota.reserve(principal, text)

    error = await service.refused(principal, last)

    assert error.status == 429
    assert error.message == f"The organization's limit is {message}"
    assert error.headers == headers


async def test_a_quota_of_nothing_refers_to_the_operator(service: Service) -> None:
    for principal in (caller(0), caller(100, requests=0)):
        error = await service.refused(principal, 1)
        assert error.message.endswith("Waiting does not help. Ask the operator for a higher limit.")
        assert error.headers["x-should-retry"] == "false"
        assert int(error.headers["retry-after"]) >= 1


async def test_when_both_limits_refuse_the_longer_wait_is_named() -> None:
    service = Minutes()
    principal = caller(100, requests=1)
    await service.quota.reserve(principal, 100)
    assert (await service.refused(principal, 1)).headers["x-quota-reason"] == "characters_per_day"
    service.now = datetime(2026, 11, 20, 23, 59, 50, tzinfo=UTC)
    await service.quota.open_session(principal)
    error = await service.refused(principal, 1)
    assert error.headers["x-quota-reason"] == "requests_per_minute"
    service.now += timedelta(milliseconds=int(error.headers["retry-after-ms"]))
    await service.quota.reserve(principal, 1)


async def test_clones_have_an_hourly_limit_of_their_own() -> None:
    service = Minutes(clones_per_hour=60)
    principal = caller(0, requests=0)
    for _ in range(60):
        await service.quota.clone_attempt(principal)
    with pytest.raises(QuotaExceeded) as refusal:
        await service.quota.clone_attempt(principal)
    assert refusal.value.message == (
        "The organization's limit is 60 voice clones an hour, and it is reached: 60 used, "
        "1 needed. Try again in 60 s."
    )
    assert refusal.value.headers == {"retry-after": "60", "x-quota-reason": "clones_per_hour"}
    await service.quota.clone_attempt(caller(organization_id="org-2"))
    service.now += timedelta(seconds=60)
    await service.quota.clone_attempt(principal)
    with pytest.raises(QuotaExceeded):
        await service.quota.clone_attempt(principal)


async def test_clones_can_be_unlimited_and_count_the_same_in_both_stores(service: Service) -> None:
    unlimited = SpeechQuota(service.limiter, service.ledger, clones_per_hour=None)
    few = SpeechQuota(service.limiter, service.ledger, clones_per_hour=3)
    principal = caller()
    for _ in range(3):
        await few.clone_attempt(principal)
    with pytest.raises(QuotaExceeded):
        await few.clone_attempt(principal)
    for _ in range(100):
        await unlimited.clone_attempt(principal)


# --- Redis ----------------------------------------------------------------------------------


@pytest.mark.redis
async def test_a_count_that_redis_lost_begins_again_from_the_ledger(prefix: str) -> None:
    limiter = RedisLimiter(REDIS_URL, prefix=prefix, timeout_seconds=PATIENT)
    service = Service(limiter)
    principal = caller(1000)
    running = await service.quota.reserve(principal, 500)
    client: redis.asyncio.Redis = redis.asyncio.from_url(REDIS_URL)
    key = f"{prefix}{{org-1}}:characters:2026-11-20"
    twelve_hours_to_midnight = 12 * 3_600_000
    kept = await client.pttl(key) - twelve_hours_to_midnight
    assert 47 * 3_600_000 < kept <= 48 * 3_600_000
    assert await client.get(key) == b"500"
    await client.delete(key)
    running.refund_characters()
    service.ledger.spoken["org-1", "2026-11-20"] = 300
    await service.quota.reserve(principal, 100)
    # Characters reserved in the lost count are not refunded to the new one.
    assert await client.get(key) == b"400"
    await client.aclose()
    await limiter.close()
