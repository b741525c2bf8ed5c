"""The authenticated caller of the hot path."""

from __future__ import annotations

from dataclasses import dataclass

from accounts.models import Scope


@dataclass(frozen=True, slots=True)
class RateLimits:
    """Limits per minute; ``None`` means unlimited."""

    requests_per_minute: int | None
    tokens_per_minute: int | None


@dataclass(frozen=True, slots=True)
class SpeechLimits:
    """The organization's limits on the speech surface; ``None`` means unlimited."""

    requests_per_minute: int | None
    characters_per_day: int | None


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller with a key: everything that the hot path needs to know. Ids are UUID texts."""

    organization_id: str
    api_key_id: str
    scope: Scope
    plan: str
    organization_limits: RateLimits
    key_limits: RateLimits
    speech_limits: SpeechLimits
    captures_allowed: bool = True
    """Whether the content of requests may be captured (``inference.chat.captures``)."""
