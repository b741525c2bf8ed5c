"""The authenticated caller of the hot path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from accounts.models import Scope
from core.sharing.priority import Priority

_PRIORITIES: Final = {each.label: each for each in Priority}


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
    failed_content_hours: int = 0
    """How long the content of failed chats is kept; 0: not at all."""
    priority: Priority = Priority.STANDARD
    """The class of its chat requests."""


def priority_of(organization: str, key: str | None = None) -> Priority:
    """Return the class of a caller by the names that are stored; that of the key counts, if it has one.

    A name of a later release is the standard class.
    """
    return _PRIORITIES.get(key or organization, Priority.STANDARD)
