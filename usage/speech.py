"""What an organization has spoken, by UTC day: what its daily quota is measured by."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import date, timedelta

from usage.models import SpeechDay


@dataclass(frozen=True, slots=True)
class SpokenDay:
    """The sums of one day; ``audio_ms`` is sound that was handed to clients."""

    day: date
    requests: int
    characters: int
    audio_ms: int


def characters_of(organization_id: str | uuid.UUID, day: str | date) -> int:
    """The characters charged to the organization on ``day`` (``2026-11-20``), as far as settled.

    What still runs is not in it. Raises ``django.db.Error``.
    """
    found = SpeechDay.objects.filter(organization_id=organization_id, day=day)
    return sum(found.values_list("characters", flat=True))


def last_days(organization_id: str | uuid.UUID, today: date, count: int) -> list[SpokenDay]:
    """Those of the ``count`` days that end with ``today`` on which something was spoken, newest
    first. Raises ``django.db.Error``.
    """
    days = SpeechDay.objects.filter(
        organization_id=organization_id, day__gt=today - timedelta(days=count), day__lte=today
    ).order_by("-day")
    return [
        SpokenDay(*figures)
        for figures in days.values_list("day", "requests", "characters", "audio_ms")
    ]
