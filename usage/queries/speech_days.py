"""An organization's speech by UTC day, which its daily quota is checked against."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import date, timedelta

from usage.models import SpeechDay


@dataclass(frozen=True, slots=True)
class SpokenDay:
    """The sums of one day; ``audio_ms`` is the audio sent to clients."""

    day: date
    requests: int
    characters: int
    audio_ms: int


def characters_of(organization_id: str | uuid.UUID, day: str | date) -> int:
    """The characters charged to the organization on ``day`` (``2026-11-20``) by settled requests.

    Running requests are not included. Raises ``django.db.Error``.
    """
    found = SpeechDay.objects.filter(organization_id=organization_id, day=day)
    return sum(found.values_list("characters", flat=True))


def last_days(organization_id: str | uuid.UUID, today: date, count: int) -> list[SpokenDay]:
    """The days with speech among the ``count`` days up to ``today``, newest first. Raises
    ``django.db.Error``.
    """
    days = SpeechDay.objects.filter(
        organization_id=organization_id, day__gt=today - timedelta(days=count), day__lte=today
    ).order_by("-day")
    return [
        SpokenDay(*figures)
        for figures in days.values_list("day", "requests", "characters", "audio_ms")
    ]
