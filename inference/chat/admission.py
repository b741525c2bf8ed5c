"""Rate limits of chat requests: what a request reserves, what it is refunded, and the 429.

Limits are per minute, on requests and on tokens, each on the organization, on the key and on the
model for that organization. The rules are in docs/explain/limits.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from accounts.keys.principal import Principal
from core.errors import RateLimitExceeded
from core.limits.buckets import (
    Charge,
    Granted,
    Level,
    Limiter,
    LimitScope,
    Refusal,
    monotonic_milliseconds,
    refusal,
)
from core.limits.refused_requests import TooManyRefused
from inference.catalog.snapshot import PublishedModel
from inference.chat import metrics
from usage.refusals.recorder import recorder

REMEMBERED: Final = 1000
"""Milliseconds."""

_MANY: Final = 10_000


class _Spent(msgspec.Struct, frozen=True):
    """``used`` units of a bucket at ``at`` (milliseconds), while its limit was ``limit``."""

    at: int
    used: int
    limit: int


class SpentLimits:
    """The latest refusals, by bucket, so that a large body is refused without parsing it.

    A refusal by the limit store is remembered for one second. So no request waits for the store
    twice, refunds and raised limits take effect at most a second later, and a caller that keeps
    sending costs one parsed body a second.
    """

    def __init__(self, clock: Callable[[], int] = monotonic_milliseconds) -> None:
        self._clock = clock
        self._spent: dict[str, _Spent] = {}

    def __bool__(self) -> bool:
        return bool(self._spent)

    def note(self, refused: Refusal) -> None:
        """Remember a refusal, unless the request can never fit."""
        charge = refused.charge
        if refused.is_final:
            return
        if len(self._spent) >= _MANY:
            self._spent.clear()
        used = (
            refused.wait_milliseconds * charge.limit + (charge.limit - charge.amount) * charge.unit
        )
        self._spent[charge.bucket] = _Spent(self._clock(), used, charge.limit)

    def refusal(self, charges: Sequence[Charge]) -> Refusal | None:
        """Return the refusal of a request that needs at least ``charges``, or None if they may fit."""
        now = self._clock()
        for charge in charges:
            known = self._spent.get(charge.bucket)
            if known is None:
                continue
            if now - known.at >= REMEMBERED or known.limit != charge.limit:
                del self._spent[charge.bucket]
                continue
            used = known.used - (now - known.at) * charge.limit
            if used + charge.amount * charge.unit > charge.limit * charge.unit:
                return refusal([charge], [used])
        return None


BYTES_PER_TOKEN: Final = 4


class Reservation:
    """The limits that a request holds until it ends. Only the first ``settle`` or ``refund`` counts."""

    __slots__ = ("_granted", "_limiter")

    def __init__(self, limiter: Limiter, granted: Granted) -> None:
        self._limiter = limiter
        self._granted = granted

    def settle(self, actual_total_tokens: int) -> None:
        """Correct the reserved tokens to prompt and completion as metered; returns at once.

        Unused tokens are refunded to their buckets. Using more than was reserved leaves a debt
        there, which delays later requests.
        """
        self._limiter.settle(
            self._granted,
            [
                actual_total_tokens if charge.scope == "tokens" else charge.amount
                for charge in self._granted.charges
            ],
        )

    def refund(self) -> None:
        """Refund everything, the request too, because it was refused for lack of capacity (503)."""
        self._limiter.settle(self._granted, [0] * len(self._granted.charges))


def estimate_prompt(body_bytes: int) -> int:
    """Estimate the prompt tokens of a request body of ``body_bytes``.

    English text usually has four bytes a token. JSON syntax is included, which makes up for denser
    text. An exact count would cost more than relaying the request, and the settlement corrects the
    estimate.
    """
    return -(-body_bytes // BYTES_PER_TOKEN)


def charges_for(
    principal: Principal, model: PublishedModel, prompt_estimate: int, output_cap: int | None
) -> tuple[Charge, ...]:
    """Return what a request reserves: one request, and its prompt plus output cap in tokens.

    Without an output cap the model's default is used (inference contract, Chat completions, rule
    3); the reservation is then never larger than a limit, so that a small limit still serves one
    request. A cap that an operator chose among the model's ``defaults`` is as implied as that. No
    reservation is larger than the model's context.
    """
    ceiling = model.default_max_output_tokens if output_cap is None else output_cap
    tokens = max(1, min(prompt_estimate + ceiling, model.context_length))
    is_implied = output_cap is None or output_cap == model.defaults.get("max_completion_tokens")
    organization_id = principal.organization_id
    owners = _owners(organization_id, principal.api_key_id, model.id)
    limits = (
        principal.organization_limits,
        principal.key_limits,
        model.limits.get(organization_id),
    )
    charges = []
    for owner, limit in zip(owners, limits, strict=True):
        if limit is None:
            continue
        if (requests := limit.requests_per_minute) is not None:
            charges.append(Charge(owner.requests, "requests", requests, 1, owner.words))
        if (most := limit.tokens_per_minute) is not None:
            amount = max(1, min(tokens, most)) if is_implied else tokens
            charges.append(Charge(owner.tokens, "tokens", most, amount, owner.words))
    return tuple(charges)


def least_charges(
    principal: Principal, model: PublishedModel, prompt_estimate: int
) -> tuple[Charge, ...]:
    """Return the least that a request can reserve when only its size and model are known."""
    return tuple(
        msgspec.structs.replace(charge, amount=min(charge.amount, charge.limit))
        for charge in charges_for(principal, model, prompt_estimate, 1)
    )


async def reserve(
    limiter: Limiter,
    model_id: str,
    charges: Sequence[Charge],
    spent: SpentLimits | None = None,
) -> Reservation:
    """Reserve ``charges`` for a request to ``model_id``.

    Raises ``RateLimitExceeded`` (429) with the time to wait, and remembers it in ``spent``; nothing
    is reserved then.
    """
    outcome = await limiter.reserve(charges) if charges else Granted(charges)
    if isinstance(outcome, Refusal):
        if spent is not None:
            spent.note(outcome)
        raise rate_limit_exceeded(model_id, outcome)
    return Reservation(limiter, outcome)


_UNIT_NAMES: Final[dict[LimitScope, str]] = {
    "requests": "requests per min (RPM)",
    "tokens": "tokens per min (TPM)",
}


def rate_limit_exceeded(model_id: str, refusal: Refusal) -> RateLimitExceeded:
    """Build the 429 for ``refusal``: message in the convention's form, headers of the contract."""
    charge = refusal.charge
    unit = _UNIT_NAMES[charge.scope]
    if refusal.is_final:
        message = (
            f"Request too large for {model_id} on {unit}: Limit {charge.limit}, "
            f"Requested {charge.amount}. The limit is set on {charge.owner}. "
            + (
                "Lower max_completion_tokens or shorten the messages."
                if charge.scope == "tokens" and charge.limit
                else "Ask the operator for a higher limit."
            )
        )
    else:
        message = (
            f"Rate limit reached for {model_id} on {unit}: Limit {charge.limit}, "
            f"Used {refusal.used}, Requested {charge.amount}. "
            f"Please try again in {duration(refusal.wait_milliseconds)}. "
            f"The limit is set on {charge.owner}."
        )
    error = RateLimitExceeded(message, headers=_headers(refusal))
    error.limit_scope = charge.scope
    return error.because(f"{charge.scope} of {charge.owner}")


def count_refusal(refusal: RateLimitExceeded, principal: Principal, model: PublishedModel) -> None:
    """Count a 429 in the metrics and for ``throttled`` in the usage summary."""
    metrics.refusals.add(refusal.limit_scope)
    recorder.throttled(
        principal.organization_id,
        principal.api_key_id,
        model.id,
        refusal.limit_scope,
    )


def refused_too_often(refused: TooManyRefused) -> RateLimitExceeded:
    """Build the 429 for a caller whose requests were refused too often."""
    return RateLimitExceeded(
        "Rate limit reached on refused requests per min: "
        f"Limit {refused.limit}, Used {refused.used}. "
        f"Please try again in {duration(refused.wait_milliseconds)}, and correct what the "
        f"answers with status 400, 404 and 413 name. The limit is that of the {refused.scope}.",
        headers=refused.headers,
    ).because(f"refused requests of the {refused.scope}")


def duration(milliseconds: int) -> str:
    """Format like Go's ``time.Duration``: ``12ms``, ``2.14s``, ``6m0s``."""
    if milliseconds == 0:
        return "0s"
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    minutes, rest = divmod(milliseconds, 60_000)
    seconds = f"{rest / 1000:.3f}".rstrip("0").rstrip(".") + "s"
    if not minutes:
        return seconds
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{seconds}" if hours else f"{minutes}m{seconds}"


def _headers(refusal: Refusal) -> dict[str, str]:
    headers = {
        "retry-after": str(-(-refusal.wait_milliseconds // 1000)),
        "retry-after-ms": str(refusal.wait_milliseconds),
    }
    for level in refusal.levels:
        headers |= _level_headers(level)
    if refusal.is_final:
        headers["x-should-retry"] = "false"
    return headers


def _level_headers(level: Level) -> dict[str, str]:
    return {
        f"x-ratelimit-limit-{level.scope}": str(level.limit),
        f"x-ratelimit-remaining-{level.scope}": str(level.remaining),
        f"x-ratelimit-reset-{level.scope}": duration(level.reset_milliseconds),
    }


class _Owner:
    """The two buckets of the owner of a limit; the braces keep an organization's buckets on one
    node of a Redis cluster."""

    __slots__ = ("requests", "tokens", "words")

    def __init__(self, name: str, words: str) -> None:
        self.requests = name + ":requests"
        self.tokens = name + ":tokens"
        self.words = words


@lru_cache(maxsize=10_000)
def _owners(organization_id: str, api_key_id: str, model_id: str) -> tuple[_Owner, _Owner, _Owner]:
    organization = f"{{{organization_id}}}"
    return (
        _Owner(organization, "the organization"),
        _Owner(f"{organization}:key:{api_key_id}", "the API key"),
        _Owner(f"{organization}:model:{model_id}", "this model for the organization"),
    )
