"""Speech on the usage page: today against the daily quota, and the days before."""

from __future__ import annotations

from dataclasses import dataclass

from accounts.models import Organization
from core import clock
from usage.console.key_names import names_of
from usage.console.query_string import PageQuery
from usage.queries.periods import UsageQuery
from usage.queries.speech import SpeechSums, Spoken, SpokenDay, last_days, speech_sums

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
        """The number of characters from which the meter shows a warning."""
        return int((self.limit or 0) * _NEARLY)


def speech_card(organization: Organization) -> SpeechCard:
    """Return the speech card of ``organization``. Raises ``django.db.Error``."""
    today = clock.now().date()
    days = last_days(organization.pk, today, DAYS)
    return SpeechCard(
        used=sum(each.characters for each in days if each.day == today),
        limit=organization.speech_characters_per_day,
        days=days,
    )


@dataclass(frozen=True, slots=True)
class SpokenLine:
    """A line of a table of speech; ``link`` leads to its requests."""

    name: str
    sums: Spoken
    link: str


@dataclass(frozen=True, slots=True)
class SpeechOfPeriod:
    """Speech of the page's period, by voice and by key."""

    sums: SpeechSums
    voices: list[SpokenLine]
    keys: list[SpokenLine]


def speech_of_period(
    organization: Organization, query: UsageQuery, page_query: PageQuery
) -> SpeechOfPeriod | None:
    """Return the speech of the period and key of ``query``; None when there was none.

    Raises ``django.db.Error``.
    """
    sums = speech_sums(str(organization.pk), query.period, query.filters)
    if not sums.by_voice:
        return None
    names = names_of(organization, [each.name for each in sums.by_key])
    return SpeechOfPeriod(
        sums,
        [
            SpokenLine(
                each.name, each, page_query.link(surface="speech", voice=each.name, model=None)
            )
            for each in sums.by_voice
        ],
        [
            SpokenLine(
                names[each.name].text,
                each,
                page_query.link(surface="speech", api_key_id=each.name, model=None),
            )
            for each in sums.by_key
        ],
    )
