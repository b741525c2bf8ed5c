"""The limits of an organization on the speech surface: requests, characters and clones.

Requests per minute and clones per hour are token buckets; characters per UTC day are a window that
starts from the ledger's sum when the store does not have it. Rules: docs/explain/limits.md, Speech.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final

import msgspec

from accounts.keys.principal import Principal
from core import clock
from core.limits.buckets import (
    HOUR,
    Charge,
    Granted,
    Limiter,
    LimitScope,
    Refusal,
    Window,
    WindowUnknown,
)
from core.limits.refused_requests import TooManyRefused
from speech.errors import QuotaExceeded
from speech.quota.day_counts import DayCounts, UsedBefore

_REASONS: Final[dict[LimitScope, str]] = {
    "requests": "requests_per_minute",
    "characters": "characters_per_day",
    "clones": "clones_per_hour",
}
_LIMITS: Final[dict[LimitScope, str]] = {
    "requests": "speech requests a minute",
    "characters": "characters a day (UTC)",
    "clones": "voice clones an hour",
}


def quota_exceeded(refusal: Refusal, day: str) -> QuotaExceeded:
    """The error for ``refusal`` of a charge that counts against ``day``."""
    charge = refusal.charge
    scope = charge.scope
    wait = refusal.wait_milliseconds
    headers = {"retry-after": str(-(-wait // 1000)), "x-quota-reason": _REASONS[scope]}
    if scope == "requests":
        headers["retry-after-ms"] = str(wait)
    if refusal.is_final or scope == "characters":
        headers["x-should-retry"] = "false"
    limit = f"The organization's limit is {charge.limit} {_LIMITS[scope]}"
    counts = f"{refusal.used} used, {charge.amount} needed"
    if refusal.is_final:
        return QuotaExceeded(
            f"{limit}: {counts}. {_hopeless(scope, charge.limit)}", headers=headers
        ).because(_REASONS[scope])
    if charge.window is not None and charge.window.ends_in <= 0:
        when = f"The session counts against {day}, when it was opened. Open another session."
    elif scope == "characters":
        when = f"It resets at {_midnight_after(day)}, in {_hours(wait)}."
    else:
        when = f"Try again in {_seconds(wait)}."
    message = f"{limit}, and it is reached: {counts}. {when}"
    return QuotaExceeded(message, headers=headers).because(_REASONS[scope])


def refused_too_often(refused: TooManyRefused) -> QuotaExceeded:
    """The error for a key or organization with too many refused requests."""
    return QuotaExceeded(
        f"The {refused.scope}'s limit is {refused.limit} refused requests a minute, and it is reached: "
        f"{refused.used} were refused. Try again in {_seconds(refused.wait_milliseconds)}, and "
        "correct what the answers with status 400 name. Texts that sessions cancel count too.",
        headers=refused.headers | {"x-quota-reason": "refused_requests_per_minute"},
    ).because(f"refused requests of the {refused.scope}")


def _hopeless(scope: LimitScope, limit: int) -> str:
    """The advice for a charge that is larger than the whole limit."""
    if scope == "characters" and limit:
        return (
            "This text alone is larger than a whole day's quota, so waiting does not help. "
            "Shorten the text, or ask the operator for a larger quota."
        )
    return "Waiting does not help. Ask the operator for a higher limit."


def _midnight_after(day: str) -> str:
    return f"{date.fromisoformat(day) + timedelta(days=1)}T00:00:00Z"


def _hours(milliseconds: int) -> str:
    """``3 h 12 min``, ``12 min``, ``40 s``: rounded up, so that no retry comes too early."""
    seconds = -(-milliseconds // 1000)
    if seconds < 60:
        return f"{seconds} s"
    hours, minutes = divmod(-(-seconds // 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.3f}".rstrip("0").rstrip(".") + " s"


_UNLIMITED: Final = 10**15
"""The limit of an organization without a quota. Its characters are counted all the same, so that a
quota that is set during the day holds for the whole day."""


class Reserved:
    """The reservation of a request or a sentence; only the first refund counts.

    ``day`` is the UTC day (``2026-11-20``) that the characters count against, whenever they are
    refunded. Refunds do not block.
    """

    __slots__ = ("_granted", "_limiter", "day")

    def __init__(self, day: str, limiter: Limiter, granted: Granted) -> None:
        self.day = day
        self._limiter = limiter
        self._granted = granted

    def refund_characters(self) -> None:
        """Refund the characters, after a failure of the engine. The request stays used."""
        self._limiter.settle(
            self._granted,
            [
                0 if charge.scope == "characters" else charge.amount
                for charge in self._granted.charges
            ],
        )

    def refund(self) -> None:
        """Refund the characters and the request, which was refused for capacity (503)."""
        self._limiter.settle(self._granted, [0] * len(self._granted.charges))


class SpeechQuota:
    """The speech limits of every organization, on one store; used from one event loop.

    ``used_before`` reads an organization's characters of a day from the ledger. It is called when
    the store does not know the day's count, or may have missed some of it. ``clones_per_hour`` is
    the same for all; None is unlimited, as in a principal's limits. ``now`` is wall time.

    A refusal raises ``QuotaExceeded`` (429), which says when to retry, and reserves nothing.
    """

    def __init__(
        self,
        limiter: Limiter,
        used_before: UsedBefore,
        *,
        clones_per_hour: int | None,
        now: Callable[[], datetime] = clock.now,
    ) -> None:
        self._limiter = limiter
        self._day_counts = DayCounts(used_before)
        self._clones_per_hour = clones_per_hour
        self._now = now

    async def reserve(self, principal: Principal, characters: int) -> Reserved:
        """Reserve one request and its ``characters`` in one step."""
        return await self._take(principal, _request(principal), characters)

    async def open_session(self, principal: Principal) -> Reserved:
        """Reserve the one request that a WebSocket session counts as."""
        return await self._take(principal, _request(principal), 0)

    async def charge(
        self, principal: Principal, characters: int, day: str | None = None
    ) -> Reserved:
        """Reserve ``characters`` for one sentence of a session, which was opened on ``day``.

        They count against that UTC day, as the session's row says, also after midnight; by default
        against today.
        """
        return await self._take(principal, (), characters, day)

    async def clone_attempt(self, principal: Principal) -> None:
        """Count one attempt to create a clone, successful or not."""
        limit = self._clones_per_hour
        if limit is not None:
            bucket = f"{{{principal.organization_id}}}:clones"
            await self._take(principal, (Charge(bucket, "clones", limit, 1, period=HOUR),), 0)

    async def _take(
        self,
        principal: Principal,
        charges: Sequence[Charge],
        characters: int,
        day: str | None = None,
    ) -> Reserved:
        moment = self._now()
        day = day or moment.astimezone(UTC).date().isoformat()
        if characters:
            window = _characters(principal, characters, day, moment)
            outcome = await self._reserve_seeded([*charges, window], principal.organization_id, day)
        else:
            outcome = await self._limiter.reserve(charges) if charges else Granted(charges)
        if isinstance(outcome, Refusal):
            raise quota_exceeded(outcome, day)
        return Reserved(day, self._limiter, outcome)

    async def _reserve_seeded(
        self, charges: Sequence[Charge], organization_id: str, day: str
    ) -> Granted | Refusal:
        """Reserve, with the ledger's count of the day if the store needs it."""
        late = self._day_counts.late_count(organization_id, day)
        if late is not None:
            charges = _seeded(charges, late)
        try:
            return await self._limiter.reserve(charges)
        except WindowUnknown:
            count = await self._day_counts.read(organization_id, day)
            return await self._limiter.reserve(_seeded(charges, count or 0))


def _request(principal: Principal) -> tuple[Charge, ...]:
    limit = principal.speech_limits.requests_per_minute
    if limit is None:
        return ()
    return (Charge(f"{{{principal.organization_id}}}:speech-requests", "requests", limit, 1),)


def _characters(principal: Principal, characters: int, day: str, moment: datetime) -> Charge:
    limit = principal.speech_limits.characters_per_day
    midnight = datetime.fromisoformat(day).replace(tzinfo=UTC) + timedelta(days=1)
    ends_in = -((moment - midnight) // timedelta(milliseconds=1))
    return Charge(
        f"{{{principal.organization_id}}}:characters:{day}",
        "characters",
        _UNLIMITED if limit is None else limit,
        characters,
        window=Window(ends_in),
    )


def _seeded(charges: Sequence[Charge], used_before: int) -> list[Charge]:
    return [
        charge
        if charge.window is None
        else msgspec.structs.replace(charge, window=Window(charge.window.ends_in, used_before))
        for charge in charges
    ]
