"""An organization's speech: by UTC day, as its daily quota is checked, and of a period by voice and key.

The sums of a period come from those of its closed hours (``usage.queries.speech_hours``), and from the rows
of the last hours and of the partial ones at its edges. Where upkeep is behind by more than a day, as right
after an upgrade, a page adds up a bounded number of the newest rows, and says so.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from operator import attrgetter
from typing import Final

from django.db import connection

from core.clock import now
from usage.models import SpeechDay, SpeechHour, SpeechRow
from usage.queries import speech_hours
from usage.queries.latest import of_period, time_reached
from usage.queries.periods import Bucket, Period
from usage.queries.selection import Filters, conditions
from usage.queries.snapshot import database_snapshot
from usage.queries.sources import Source, cut, moment_of, moments, select
from usage.queries.speech_hours import FIGURES


def characters_of(organization_id: str | uuid.UUID, day: str | date) -> int:
    """The characters charged to the organization on ``day`` (``2026-11-20``) by settled requests.

    Running requests are not included. Raises ``django.db.Error``.
    """
    found = SpeechDay.objects.filter(organization_id=organization_id, day=day)
    return sum(found.values_list("characters", flat=True))


_DIMENSIONS: Final = ("bucket_start", "voice", "api_key_id")
_FIGURES_OF: Final = attrgetter(*FIGURES)
_UNSUMMED: Final = timedelta(days=1)
"""As much of a period a page reads from rows without a bound."""


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
        return [_total(name, [part.sums for part in days[name]]) for name in sorted(days)]

    def of_voice(self, voice: str | None) -> SpeechSums:
        """The sums of one voice; of all without one."""
        parts = [part for part in self.parts if voice in (None, part.voice)]
        return SpeechSums(parts, self.since)

    @property
    def total(self) -> Spoken:
        return _total("", [part.sums for part in self.parts])


def speech_sums(
    organization_id: str,
    period: Period,
    filters: Filters,
    bucket: Bucket = Bucket.DAY,
    *,
    is_bounded: bool = True,
) -> SpeechSums:
    """Return the sums of ``period``. Raises ``django.db.Error``.

    ``is_bounded``: where most of it is not summed, of at most ``MOST_SEARCHED`` requests, the newest.
    """
    filters = Filters(api_key_id=filters.api_key_id)
    chosen = conditions(organization_id, filters)
    parts: dict[tuple[datetime, str, str], Spoken] = {}
    reached = None
    with database_snapshot(), connection.cursor() as cursor:
        until = speech_hours.summed_until(organization_id)
        if is_bounded and min(period.end, now()) - max(until, period.start) > _UNSUMMED:
            reached = time_reached(of_period(SpeechRow, organization_id, period, filters))
        if reached is not None:
            period = Period(reached, period.end)
        for source in _sources(period, until):
            cursor.execute(
                select(source, _DIMENSIONS, tuple(FIGURES), chosen, bucket),
                [*moments(source), *chosen.values()],
            )
            for start, voice, key, *figures in cursor.fetchall():
                where = (moment_of(start, bucket), voice, str(uuid.UUID(str(key))))
                found = Spoken(voice, *figures)
                parts[where] = _total(voice, (parts[where], found)) if where in parts else found
    return SpeechSums([SpokenPart(*where, sums) for where, sums in parts.items()], reached)


def _sources(period: Period, until: datetime) -> Iterator[Source]:
    """The sums of the whole hours of ``period`` before ``until``, and the rows of the rest."""
    summed: list[Period] = []
    rows = [*cut(period).edges]
    for hours in cut(period).hours:
        end = max(hours.start, min(hours.end, until))
        summed.append(Period(hours.start, end))
        rows.append(Period(end, hours.end))
    for table, moment, figures, periods in (
        (SpeechHour._meta.db_table, "hour", {name: name for name in FIGURES}, summed),
        (SpeechRow._meta.db_table, "occurred_at", FIGURES, rows),
    ):
        if parts := tuple(each for each in periods if each.start < each.end):
            yield Source(table, moment, figures, parts)


def _grouped(
    parts: Iterable[SpokenPart], name_of: Callable[[SpokenPart], str]
) -> dict[str, list[SpokenPart]]:
    groups: defaultdict[str, list[SpokenPart]] = defaultdict(list)
    for part in parts:
        groups[name_of(part)].append(part)
    return groups


def _ranked(parts: Iterable[SpokenPart], name_of: Callable[[SpokenPart], str]) -> list[Spoken]:
    groups = _grouped(parts, name_of).items()
    sums = [_total(name, [part.sums for part in group]) for name, group in groups]
    return sorted(sums, key=lambda each: (-each.characters, each.name))


def _total(name: str, sums: Sequence[Spoken]) -> Spoken:
    columns = zip(*map(_FIGURES_OF, sums), strict=True)
    return Spoken(name, *map(sum, columns)) if sums else Spoken(name, *[0] * len(FIGURES))
