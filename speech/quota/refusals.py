"""The 429 responses of this surface, with the limit and the time of a retry."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Final

from speech.errors import QuotaExceeded
from svc_project.lib.limits.buckets import LimitScope, Refusal
from svc_project.lib.limits.refused_requests import TooManyRefused

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
        )
    if scope == "characters":
        when = f"It resets at {_midnight_after(day)}, in {_hours(wait)}."
    else:
        when = f"Try again in {_seconds(wait)}."
    return QuotaExceeded(f"{limit}, and it is reached: {counts}. {when}", headers=headers)


def refused_too_often(refused: TooManyRefused) -> QuotaExceeded:
    """The error for an organization with too many refused requests."""
    return QuotaExceeded(
        f"The limit is {refused.limit} refused requests a minute, and it is reached: "
        f"{refused.used} were refused. Try again in {_seconds(refused.wait_milliseconds)}, and "
        "correct what the answers with status 400 name. Texts that sessions cancel count too.",
        headers=refused.headers | {"x-quota-reason": "refused_requests_per_minute"},
    )


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
