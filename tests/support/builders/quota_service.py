"""A quota for tests, with a fake ledger and wall time that tests set."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from accounts.keys.principal import Principal, RateLimits, SpeechLimits
from accounts.models import Scope
from core.limits.buckets import Limiter
from speech.errors import QuotaExceeded
from speech.quota.quota import SpeechQuota

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def caller(
    characters: int | None = 1000, requests: int | None = None, organization_id: str = "org-1"
) -> Principal:
    nothing = RateLimits(None, None)
    return Principal(
        organization_id=organization_id,
        api_key_id="key-1",
        scope=Scope.SPEECH,
        plan="standard",
        organization_limits=nothing,
        key_limits=nothing,
        speech_limits=SpeechLimits(requests, characters),
    )


class Ledger:
    """A fake ledger: spoken characters by organization and day, and failures to raise."""

    def __init__(self) -> None:
        self.spoken: dict[tuple[str, str], int] = {}
        self.default = 0
        self.questions = 0
        self.error: Exception | None = None
        self.answers = asyncio.Event()
        self.answers.set()

    async def __call__(self, organization_id: str, day: str) -> int:
        self.questions += 1
        await self.answers.wait()
        if self.error is not None:
            raise self.error
        return self.spoken.get((organization_id, day), self.default)


class Service:
    """A quota on a store, with wall time that passes only when a test moves it."""

    def __init__(self, limiter: Limiter, clones_per_hour: int | None = 60) -> None:
        self.now = NOON
        self.ledger = Ledger()
        self.limiter = limiter
        self.quota = SpeechQuota(
            limiter, self.ledger, clones_per_hour=clones_per_hour, now=lambda: self.now
        )

    async def refused(self, principal: Principal, characters: int) -> QuotaExceeded:
        with pytest.raises(QuotaExceeded) as refusal:
            await self.quota.reserve(principal, characters)
        return refusal.value

    async def left(self, principal: Principal) -> int:
        """The remaining characters of the day's quota."""
        limit = principal.speech_limits.characters_per_day
        assert limit is not None
        low, high = 0, limit
        while low < high:
            middle = (low + high + 1) // 2
            try:
                reserved = await self.quota.charge(principal, middle)
            except QuotaExceeded:
                high = middle - 1
            else:
                reserved.refund()
                low = middle
        return low
