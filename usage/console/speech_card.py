"""Speech of today (UTC) against the daily quota."""

from __future__ import annotations

from dataclasses import dataclass

from accounts.models import Organization
from core import clock
from usage.queries.speech import characters_of

_NEARLY = 0.8


@dataclass(frozen=True, slots=True)
class SpeechCard:
    """Characters of today; ``limit`` is None when the organization has no daily quota."""

    used: int
    limit: int | None

    @property
    def nearly(self) -> int:
        """The number of characters from which the meter shows a warning."""
        return int((self.limit or 0) * _NEARLY)


def speech_card(organization: Organization) -> SpeechCard:
    """Return the speech card of ``organization``. Raises ``django.db.Error``."""
    used = characters_of(organization.pk, clock.now().date())
    return SpeechCard(used, organization.speech_characters_per_day)
