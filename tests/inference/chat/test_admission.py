"""What a chat request reserves, what it is refunded, and the 429 when a limit refuses it."""

from __future__ import annotations

import re
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounts.keys.principal import Principal, RateLimits, SpeechLimits
from accounts.models import Scope
from core.errors import RateLimitExceeded
from core.limits.memory import MemoryLimiter
from inference.catalog.snapshot import PublishedModel
from inference.chat.admission import Reservation, charges_for, duration, estimate_prompt, reserve

UNLIMITED = RateLimits(None, None)


def caller(
    organization_limits: RateLimits = UNLIMITED,
    key_limits: RateLimits = UNLIMITED,
    organization_id: str = "org-1",
) -> Principal:
    return Principal(
        organization_id=organization_id,
        api_key_id="key-1",
        scope=Scope.INFERENCE,
        plan="standard",
        organization_limits=organization_limits,
        key_limits=key_limits,
        speech_limits=SpeechLimits(None, None),
    )


def published(
    limits: dict[str, RateLimits] | None = None,
    context_length: int = 32_768,
    default_max_output_tokens: int = 2_048,
) -> PublishedModel:
    return PublishedModel(
        id="acme/demo-8b",
        model_id="",
        model_version_id="",
        context_length=context_length,
        max_request_bytes=1_000_000,
        default_max_output_tokens=default_max_output_tokens,
        tool_calling=True,
        structured_output=True,
        tokenizer="",
        created=0,
        superseded_by=None,
        shutdown_at=None,
        shutdown_epoch=inf,
        prices=(),
        deployments=(),
        limits=limits or {},
    )


class Service:
    """A limiter with its own clock, and one caller of one model."""

    def __init__(self, principal: Principal, model: PublishedModel | None = None) -> None:
        self.now = 0
        self.limiter = MemoryLimiter(lambda: self.now)
        self.principal = principal
        self.model = model or published()

    async def ask(self, prompt: int = 0, cap: int | None = None) -> Reservation:
        charges = charges_for(self.principal, self.model, prompt, cap)
        return await reserve(self.limiter, self.model.id, charges)

    async def refused(self, prompt: int = 0, cap: int | None = None) -> RateLimitExceeded:
        with pytest.raises(RateLimitExceeded) as refusal:
            await self.ask(prompt, cap)
        return refusal.value


def amounts(principal: Principal, model: PublishedModel, prompt: int, cap: int | None) -> list[int]:
    return [c.amount for c in charges_for(principal, model, prompt, cap) if c.scope == "tokens"]


def test_a_prompt_is_estimated_at_four_bytes_a_token_rounded_up() -> None:
    assert [estimate_prompt(size) for size in (0, 1, 4, 5, 1_000_000)] == [0, 1, 1, 2, 250_000]


def test_every_limit_that_is_set_is_charged_on_its_own_bucket() -> None:
    principal = caller(organization_limits=RateLimits(60, 1000), key_limits=RateLimits(6, 500))
    model = published(limits={"org-1": RateLimits(3, None), "org-2": RateLimits(1, 1)})
    charges = charges_for(principal, model, 10, 20)
    assert [(c.bucket, c.limit, c.amount) for c in charges] == [
        ("{org-1}:requests", 60, 1),
        ("{org-1}:tokens", 1000, 30),
        ("{org-1}:key:key-1:requests", 6, 1),
        ("{org-1}:key:key-1:tokens", 500, 30),
        ("{org-1}:model:acme/demo-8b:requests", 3, 1),
    ]


async def test_without_limits_nothing_is_charged_and_everything_is_admitted() -> None:
    service = Service(caller())
    assert charges_for(service.principal, service.model, 10**9, None) == ()
    reservation = await service.ask(10**9)
    reservation.settle(5)
    assert len(service.limiter) == 0


def test_the_cap_of_the_request_or_the_default_ceiling_is_reserved_within_the_context() -> None:
    principal = caller(organization_limits=RateLimits(None, 10**6))
    model = published(context_length=4096, default_max_output_tokens=1024)
    assert amounts(principal, model, 100, 50) == [150]
    assert amounts(principal, model, 100, None) == [1124]
    assert amounts(principal, model, 100, 10**9) == [4096]
    assert amounts(principal, model, 4000, None) == [4096]


async def test_a_limit_below_the_default_ceiling_still_serves_one_request() -> None:
    service = Service(
        caller(organization_limits=RateLimits(None, 100), key_limits=RateLimits(None, 10))
    )
    assert amounts(service.principal, service.model, 30, None) == [100, 10]
    (await service.ask(30)).settle(8)
    service.now += 60_000
    await service.ask(30)


async def test_a_request_larger_than_the_whole_limit_gets_should_retry_false() -> None:
    service = Service(caller(organization_limits=RateLimits(10, 1000)))
    error = await service.refused(prompt=1, cap=1000)
    assert error.message == (
        "Request too large for acme/demo-8b on tokens per min (TPM): Limit 1000, Requested 1001. "
        "The limit is set on the organization. Lower max_completion_tokens or shorten the messages."
    )
    assert error.headers["x-should-retry"] == "false"
    assert error.headers["retry-after"] == "1"
    await service.ask(prompt=0, cap=1000)


async def test_a_refusal_on_tokens_has_exactly_this_message_and_these_headers() -> None:
    service = Service(
        caller(organization_limits=RateLimits(60, 60_000)), published(context_length=100_000)
    )
    await service.ask(prompt=59_000, cap=881)
    service.now += 1
    error = await service.refused(prompt=2000, cap=295)
    assert (error.status, error.type, error.param, error.code) == (
        429,
        "rate_limit_error",
        None,
        "rate_limit_exceeded",
    )
    assert error.limit_scope == "tokens"
    assert error.message == (
        "Rate limit reached for acme/demo-8b on tokens per min (TPM): Limit 60000, Used 59880, "
        "Requested 2295. Please try again in 2.175s. The limit is set on the organization."
    )
    assert error.headers == {
        "retry-after": "3",
        "retry-after-ms": "2175",
        "x-ratelimit-limit-tokens": "60000",
        "x-ratelimit-remaining-tokens": "120",
        "x-ratelimit-reset-tokens": "59.88s",
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-remaining-requests": "59",
        "x-ratelimit-reset-requests": "999ms",
    }


async def test_a_scope_without_a_limit_has_no_headers() -> None:
    service = Service(caller(organization_limits=RateLimits(1, None)))
    await service.ask()
    assert not [name for name in (await service.refused()).headers if "tokens" in name]


@pytest.mark.parametrize(
    ("owner", "principal", "model"),
    [
        ("the organization", caller(organization_limits=RateLimits(1, None)), published()),
        ("the API key", caller(key_limits=RateLimits(1, None)), published()),
        (
            "this model for the organization",
            caller(),
            published(limits={"org-1": RateLimits(1, None)}),
        ),
    ],
)
async def test_a_refusal_names_the_owner_of_the_limit(
    owner: str, principal: Principal, model: PublishedModel
) -> None:
    service = Service(principal, model)
    await service.ask()
    error = await service.refused()
    assert error.limit_scope == "requests"
    assert error.message == (
        "Rate limit reached for acme/demo-8b on requests per min (RPM): Limit 1, Used 1, "
        f"Requested 1. Please try again in 1m0s. The limit is set on {owner}."
    )


async def test_one_organization_never_uses_up_the_limit_of_another() -> None:
    service = Service(caller(organization_limits=RateLimits(1, None)))
    await service.ask()
    service.principal = caller(organization_id="org-2", organization_limits=RateLimits(1, None))
    await service.ask()


async def test_unused_tokens_are_refunded_once() -> None:
    service = Service(caller(organization_limits=RateLimits(None, 1000)))
    reservation = await service.ask(cap=1000)
    await service.refused(cap=1)
    reservation.settle(400)
    reservation.settle(0)
    reservation.refund()
    await service.ask(cap=600)
    await service.refused(cap=1)


async def test_settling_keeps_the_request_and_a_refund_returns_it() -> None:
    service = Service(caller(organization_limits=RateLimits(1, 1000)))
    (await service.ask(cap=500)).refund()
    reservation = await service.ask(cap=1000)
    reservation.settle(0)
    assert (await service.refused(cap=1)).limit_scope == "requests"


async def test_using_more_than_was_reserved_becomes_a_debt() -> None:
    service = Service(caller(organization_limits=RateLimits(None, 600)))
    (await service.ask(cap=100)).settle(1200)
    error = await service.refused(cap=10)
    assert error.headers["x-ratelimit-remaining-tokens"] == "0"
    assert error.headers["x-ratelimit-reset-tokens"] == "2m0s"
    assert error.headers["retry-after-ms"] == "61000"


@given(
    limits=st.tuples(st.integers(1, 20), st.integers(1, 10**7)),
    cap=st.integers(1, 10**6),
    used=st.integers(0, 10**6),
)
async def test_a_single_caller_is_admitted_after_the_given_wait(
    limits: tuple[int, int], cap: int, used: int
) -> None:
    service = Service(
        caller(organization_limits=RateLimits(*limits)), published(context_length=10**6)
    )
    cap = min(cap, limits[1])

    async def ask_until_refused() -> None:
        for _ in range(limits[0] + 1):
            (await service.ask(cap=cap)).settle(used)

    with pytest.raises(RateLimitExceeded) as refusal:
        await ask_until_refused()
    wait = int(refusal.value.headers["retry-after-ms"])
    assert int(refusal.value.headers["retry-after"]) == max(1, -(-wait // 1000))
    service.now += wait - 1
    await service.refused(cap=cap)
    service.now += 1
    await service.ask(cap=cap)


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0s"),
        (12, "12ms"),
        (999, "999ms"),
        (1000, "1s"),
        (2140, "2.14s"),
        (10_005, "10.005s"),
        (59_999, "59.999s"),
        (60_000, "1m0s"),
        (360_000, "6m0s"),
        (62_140, "1m2.14s"),
        (3_600_000, "1h0m0s"),
        (3_661_001, "1h1m1.001s"),
    ],
)
def test_durations_are_written_as_go_writes_them(milliseconds: int, text: str) -> None:
    assert duration(milliseconds) == text


@given(st.integers(0, 10**8))
def test_no_duration_loses_a_millisecond(milliseconds: int) -> None:
    found = re.fullmatch(
        r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)(ms|s))", duration(milliseconds)
    )
    assert found is not None
    hours, minutes, rest, unit = found.groups()
    small = float(rest) * (1 if unit == "ms" else 1000)
    assert int(hours or 0) * 3_600_000 + int(minutes or 0) * 60_000 + round(small) == milliseconds
