"""An organization's speech: by UTC day, as its daily quota is checked, and of a period.

The sums of days have neither voice nor key, so those of a period by voice and key, over time, come from
the rows: for a page from a bounded number of the newest, for a download from all.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from operator import attrgetter
from typing import Any, Final

from django.db import connection

from usage.models import SpeechDay, SpeechRow
from usage.queries.health import UNFAILED
from usage.queries.latest import of_period, time_reached
from usage.queries.periods import Bucket, Period
from usage.queries.selection import Filters, conditions
from usage.queries.sources import Source, moment_of, moments, select


def characters_of(organization_id: str | uuid.UUID, day: str | date) -> int:
    """The characters charged to the organization on ``day`` (``2026-11-20``) by settled requests.

    Running requests are not included. Raises ``django.db.Error``.
    """
    found = SpeechDay.objects.filter(organization_id=organization_id, day=day)
    return sum(found.values_list("characters", flat=True))


_UNFAILED: Final = ", ".join(f"'{each.value}'" for each in sorted(UNFAILED))
_FIGURES: Final[Mapping[str, str]] = {
    "requests": "1",
    "characters": "characters",
    "audio_ms": "audio_ms",
    "failed": f"CASE WHEN outcome IN ({_UNFAILED}) THEN 0 ELSE 1 END",
}
"""SQL of what a row adds to each figure of ``Spoken``."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """Sums of one voice, key or moment: characters charged, and audio sent, in milliseconds.

    A client that disconnected is no failure.
    """

    name: str
    requests: int
    characters: int
    audio_ms: int
    failed: int


@dataclass(frozen=True, slots=True)
class SpokenPart:
    """One voice and key, by id, in one bucket."""

    bucket_start: datetime
    voice: str
    api_key_id: str
    sums: Spoken


@dataclass(frozen=True, slots=True)
class SpeechSums:
    """``since``: older requests than of this time are not included. Keys are named by id."""

    parts: list[SpokenPart]
    since: datetime | None = None

    @property
    def by_voice(self) -> list[Spoken]:
        """Most characters first."""
        return _ranked(self.parts, attrgetter("voice"))

    @property
    def by_key(self) -> list[Spoken]:
        """Most characters first."""
        return _ranked(self.parts, attrgetter("api_key_id"))

    @property
    def by_time(self) -> list[Spoken]:
        """Oldest first, named ``2026-11-20``."""
        days = _grouped(self.parts, lambda part: part.bucket_start.date().isoformat())
        return [_total(name, days[name]) for name in sorted(days)]

    def of_voice(self, voice: str | None) -> SpeechSums:
        """The sums of one voice; of all without one."""
        parts = [part for part in self.parts if voice in (None, part.voice)]
        return SpeechSums(parts, self.since)

    @property
    def total(self) -> Spoken:
        return _total("", self.parts)


def speech_sums(
    organization_id: str,
    period: Period,
    filters: Filters,
    bucket: Bucket = Bucket.DAY,
    *,
    is_bounded: bool = True,
) -> SpeechSums:
    """Return the sums of ``period``. Raises ``django.db.Error``.

    ``is_bounded``: of at most ``MOST_SEARCHED`` requests, the newest.
    """
    filters = Filters(api_key_id=filters.api_key_id)
    reached = None
    if is_bounded:
        reached = time_reached(of_period(SpeechRow, organization_id, period, filters))
    if reached is not None:
        period = Period(reached, period.end)
    chosen = conditions(organization_id, filters)
    source = Source(SpeechRow._meta.db_table, "occurred_at", _FIGURES, (period,))
    dimensions = ("bucket_start", "voice", "api_key_id")
    with connection.cursor() as cursor:
        cursor.execute(
            select(source, dimensions, tuple(_FIGURES), chosen, bucket),
            [*moments(source), *chosen.values()],
        )
        parts = [
            SpokenPart(
                moment_of(start, bucket), name, str(uuid.UUID(str(key))), Spoken(name, *figures)
            )
            for start, name, key, *figures in cursor.fetchall()
        ]
    return SpeechSums(parts, reached)


def _grouped(
    parts: Iterable[SpokenPart], name_of: Callable[[SpokenPart], str]
) -> dict[str, list[SpokenPart]]:
    groups: defaultdict[str, list[SpokenPart]] = defaultdict(list)
    for part in parts:
        groups[name_of(part)].append(part)
    return groups


def _ranked(parts: Iterable[SpokenPart], name_of: Callable[[SpokenPart], str]) -> list[Spoken]:
    sums = [_total(name, group) for name, group in _grouped(parts, name_of).items()]
    return sorted(sums, key=lambda each: (-each.characters, each.name))


def _total(name: str, parts: Iterable[SpokenPart]) -> Spoken:
    sums = [part.sums for part in parts]

    def added(figure: str) -> Any:
        return sum(map(attrgetter(figure), sums))

    return Spoken(name, *map(added, _FIGURES))
