"""What the usage page says about speech: today against the daily quota, and the days before."""

from __future__ import annotations

from dataclasses import dataclass

from accounts.models import Organization
from svc_project.lib import clock
from usage.speech import SpokenDay, last_days

DAYS = 7
_NEARLY = 0.8


@dataclass(frozen=True, slots=True)
class SpeechCard:
    """Characters of today (UTC); ``limit`` is None when the organization has no daily quota."""

    used: int
    limit: int | None
    days: list[SpokenDay]

    @property
    def used_up(self) -> bool:
        return self.limit is not None and self.used >= self.limit

    @property
    def nearly(self) -> int:
        """From where on the meter warns."""
        return int((self.limit or 0) * _NEARLY)


def speech_card(organization: Organization) -> SpeechCard:
    """What ``organization`` has spoken. Raises ``django.db.Error``."""
    today = clock.now().date()
    days = last_days(organization.pk, today, DAYS)
    return SpeechCard(
        used=sum(each.characters for each in days if each.day == today),
        limit=organization.speech_characters_per_day,
        days=days,
    )
