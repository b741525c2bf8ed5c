"""Any order of requests, refunds, limit changes and days, against a simple model."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass, field
from datetime import timedelta
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.limits.memory import MemoryLimiter
from core.limits.redis import RedisLimiter
from speech.errors import QuotaExceeded
from speech.quota.quota import Reserved
from tests.support.builders.quota_service import Service, caller
from tests.support.servers.redis_store import PATIENT, REDIS_URL

SEED = 30
"""Characters that the ledger has of every day."""

PER_MINUTE = 6


@dataclass
class Taken:
    """A reservation that was made: the model's view of it and the real one."""

    real: Reserved
    day: str
    characters: int
    is_request: bool
    is_open: bool = True


@dataclass
class Model:
    """The expected counts, beside the service that they are compared with."""

    service: Service
    counts_requests: bool
    limit: int | None = 100
    used: dict[str, int] = field(default_factory=dict)
    requests: Fraction = Fraction(0)
    taken: list[Taken] = field(default_factory=list)

    @property
    def day(self) -> str:
        return self.service.now.date().isoformat()

    async def take(self, characters: int, *, is_request: bool) -> None:
        principal = caller(self.limit, PER_MINUTE if self.counts_requests else None)
        quota = self.service.quota
        used = self.used.setdefault(self.day, SEED)
        fits = self.limit is None or used + characters <= self.limit
        if is_request and self.counts_requests:
            fits = fits and self.requests + 1 <= PER_MINUTE
        try:
            real = await (quota.reserve if is_request else quota.charge)(principal, characters)
        except QuotaExceeded:
            assert not fits
            return
        assert fits
        assert real.day == self.day
        self.used[self.day] += characters
        self.requests += is_request
        self.taken.append(Taken(real, self.day, characters, is_request))

    def end(self, choice: int, *, with_request: bool) -> None:
        """Refund a reservation, perhaps one that was refunded before."""
        if not self.taken:
            return
        taken = self.taken[choice % len(self.taken)]
        if with_request:
            taken.real.refund()
        else:
            taken.real.refund_characters()
        if taken.is_open:
            taken.is_open = False
            self.used[taken.day] -= taken.characters
            if with_request and taken.is_request:
                self.requests = max(Fraction(0), self.requests - 1)

    def wait(self, seconds: int) -> None:
        self.service.now += timedelta(seconds=seconds)
        self.requests = max(Fraction(0), self.requests - Fraction(seconds * PER_MINUTE, 60))

    async def compare(self) -> None:
        """Reserve one more than the rest, then exactly the rest."""
        used = self.used.setdefault(self.day, SEED)
        quota, principal = self.service.quota, caller(used + 50)
        with pytest.raises(QuotaExceeded, match=f" {used} used, 51 needed"):
            await quota.charge(principal, 51)
        (await quota.charge(principal, 50)).refund_characters()


seconds = st.one_of(st.integers(0, 90), st.integers(0, 100_000))
steps = st.lists(
    st.one_of(
        st.tuples(st.just("request"), st.integers(1, 60)),
        st.tuples(st.just("sentence"), st.integers(1, 60)),
        st.tuples(st.just("give back"), st.integers(0, 50)),
        st.tuples(st.just("cancel"), st.integers(0, 50)),
        st.tuples(st.just("limit"), st.none() | st.integers(0, 200)),
        st.tuples(st.just("wait"), seconds),
    ),
    max_size=40,
)


async def run(model: Model, steps: list[tuple[str, int | None]]) -> None:
    for name, figure in steps:
        if name == "limit":
            model.limit = figure
            continue
        assert figure is not None
        if name in {"request", "sentence"}:
            await model.take(figure, is_request=name == "request")
        elif name == "wait":
            model.wait(figure)
        else:
            model.end(figure, with_request=name == "cancel")
        await model.compare()


def _service(limiter: MemoryLimiter | RedisLimiter) -> Service:
    service = Service(limiter)
    service.ledger.default = SEED
    return service


@settings(max_examples=200)
@given(steps=steps)
def test_memory_counts_like_the_model(steps: list[tuple[str, int | None]]) -> None:
    limiter = MemoryLimiter(lambda: round(service.now.timestamp() * 1000))
    service = _service(limiter)
    asyncio.run(run(Model(service, counts_requests=True), steps))


@pytest.mark.redis
@settings(max_examples=40)
@given(steps=steps)
def test_redis_counts_like_the_model(steps: list[tuple[str, int | None]]) -> None:
    asyncio.run(_run_on_redis(steps))


async def _run_on_redis(steps: list[tuple[str, int | None]]) -> None:
    prefix = f"svc-test:{uuid.uuid4().hex}:"
    limiter = RedisLimiter(REDIS_URL, prefix=prefix, timeout_seconds=PATIENT)
    # Buckets refill by Redis's own clock, so only characters are compared.
    model = Model(_service(limiter), counts_requests=False)
    await run(model, steps)
    assert limiter.is_shared
    await limiter.close()
