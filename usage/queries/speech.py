"""An organization's speech: by UTC day, as its daily quota is checked, and of a period, by voice and by key.

The sums of days have neither voice nor key, so the sums of a period come from the rows, from a bounded
number of the newest.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.db.models import Count, Sum

from usage.models import SpeechDay, SpeechRow
from usage.queries.latest import of_period, time_reached
from usage.queries.periods import Period
from usage.queries.selection import Filters


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


@dataclass(frozen=True, slots=True)
class Spoken:
    """Sums of one voice or key: characters charged, and audio sent, in milliseconds."""

    name: str
    requests: int
    characters: int
    audio_ms: int


@dataclass(frozen=True, slots=True)
class SpeechSums:
    """``since``: older requests than of this time are not included. Keys are named by id."""

    by_voice: list[Spoken]
    by_key: list[Spoken]
    since: datetime | None

    @property
    def total(self) -> Spoken:
        return _total("", self.by_voice)


def speech_sums(organization_id: str, period: Period, filters: Filters) -> SpeechSums:
    """Return the sums of ``period``, most characters first. Raises ``django.db.Error``."""
    rows = of_period(SpeechRow, organization_id, period, filters)
    reached = time_reached(rows)
    if reached is not None:
        rows = rows.filter(occurred_at__gte=reached)
    voices: defaultdict[str, list[Spoken]] = defaultdict(list)
    keys: defaultdict[str, list[Spoken]] = defaultdict(list)
    for voice, key, *figures in (
        rows.order_by()
        .values_list("voice", "api_key_id")
        .annotate(number=Count("*"), spoken=Sum("characters"), sent=Sum("audio_ms"))
    ):
        one = Spoken(voice, *figures)
        voices[voice].append(one)
        keys[str(key)].append(one)
    return SpeechSums(_ranked(voices), _ranked(keys), reached)


def _ranked(groups: dict[str, list[Spoken]]) -> list[Spoken]:
    sums = [_total(name, parts) for name, parts in groups.items()]
    return sorted(sums, key=lambda each: (-each.characters, each.name))


def _total(name: str, parts: Iterable[Spoken]) -> Spoken:
    parts = list(parts)
    return Spoken(
        name,
        sum(each.requests for each in parts),
        sum(each.characters for each in parts),
        sum(each.audio_ms for each in parts),
    )
