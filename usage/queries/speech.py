"""An organization's speech: by UTC day, as its daily quota is checked, and of a period by voice and key.

The sums of a period come from those of its closed hours (``usage.queries.speech_hours``), and from the rows
of the last hours and of the partial ones at its edges. Where upkeep is behind by more than a day, as right
after an upgrade, a page adds up a bounded number of the newest rows, and says so.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from operator import attrgetter
from typing import Any, Final, Literal, NamedTuple

import msgspec
from django.db import connection

from core.clock import now
from usage.models import SpeechDay, SpeechHour, SpeechRow
from usage.queries import speech_hours
from usage.queries.latest import of_period, time_reached
from usage.queries.periods import Bucket, Period
from usage.queries.selection import Filters, conditions
from usage.queries.snapshot import database_snapshot
from usage.queries.sources import (
    Source,
    cut,
    moment_of,
    moments,
    read,
    select,
    sum_of,
    uuid_text,
)
from usage.queries.speech_hours import FIGURES


def characters_of(organization_id: str | uuid.UUID, day: str | date) -> int:
    """The characters charged to the organization on ``day`` (``2026-11-20``) by settled requests.

    Running requests are not included. Raises ``django.db.Error``.
    """
    found = SpeechDay.objects.filter(organization_id=organization_id, day=day)
    return sum(found.values_list("characters", flat=True))


Dimension = Literal["voice", "api_key_id"]
_DIMENSIONS: Final = ("bucket_start", "voice", "api_key_id")
_FIGURES_OF: Final = attrgetter(*FIGURES)
_UNSUMMED: Final = timedelta(days=1)
"""As much of a period a page reads from rows without a bound."""


class Spoken(msgspec.Struct, frozen=True):
    """Sums of one voice, key or moment: characters charged, and audio sent, in milliseconds.

    A client that disconnected is no failure.
    """

    name: str
    requests: int
    characters: int
    audio_ms: int
    failed: int


class Shown(NamedTuple):
    """What a page shows: one ``voice``, or all without one, and a point for each ``bucket`` and ``by``."""

    bucket: Bucket = Bucket.DAY
    by: Dimension = "voice"
    voice: str | None = None


_ALL: Final = Shown()


class SpokenPart(msgspec.Struct, frozen=True):
    """One voice and key, by id."""

    voice: str
    api_key_id: str
    sums: Spoken


class SpokenPoint(msgspec.Struct, frozen=True):
    """One voice, or key, in one bucket; ``name`` is the voice's id, or the key's."""

    bucket_start: datetime
    name: str
    sums: Spoken


@dataclass(frozen=True, slots=True)
class SpeechSums:
    """The sums of a period by voice and key, and over time.

    ``voices``: those of the period, whichever was asked for. ``since``: older requests than of this time
    are not included.
    """

    parts: list[SpokenPart]
    points: list[SpokenPoint]
    voices: frozenset[str]
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
        days: defaultdict[str, list[Spoken]] = defaultdict(list)
        for point in self.points:
            days[point.bucket_start.date().isoformat()].append(point.sums)
        return [_total(name, days[name]) for name in sorted(days)]

    @property
    def total(self) -> Spoken:
        return _total("", [part.sums for part in self.parts])


def speech_sums(
    organization_id: str,
    period: Period,
    filters: Filters,
    shown: Shown = _ALL,
    *,
    is_bounded: bool = True,
) -> SpeechSums:
    """Return the sums of ``period``. Raises ``django.db.Error``.

    ``is_bounded``: where most of it is not summed, of at most ``MOST_SEARCHED`` requests, the newest.
    """
    filters = Filters(api_key_id=filters.api_key_id)
    chosen = conditions(organization_id, filters)
    found: defaultdict[tuple[Any, ...], list[Spoken]] = defaultdict(list)
    reached = None
    with database_snapshot(), connection.cursor() as cursor:
        until = speech_hours.summed_until(organization_id)
        if is_bounded and min(period.end, now()) - max(until, period.start) > _UNSUMMED:
            reached = time_reached(of_period(SpeechRow, organization_id, period, filters))
        if reached is not None:
            period = Period(reached, period.end)
        for source in _sources(period, until):
            cursor.execute(
                _statement(source, chosen, shown),
                [*moments(source), *chosen.values(), *filter(None, [shown.voice])],
            )
            for start, name, key, *figures in cursor.fetchall():
                found[start, name, key].append(Spoken(name, *figures))
    sums = {where: _total(where[1], parts) for where, parts in found.items()}
    return _sums_of(sums, shown, reached)


def _sums_of(
    sums: Mapping[tuple[Any, ...], Spoken], shown: Shown, since: datetime | None
) -> SpeechSums:
    """Make parts and points of ``sums``, whose keys are the first three columns of ``_statement``."""
    text = str if shown.by == "voice" else uuid_text
    parts = [
        SpokenPart(name, uuid_text(key), each)
        for (start, name, key), each in sums.items()
        if start is None
    ]
    return SpeechSums(
        [part for part in parts if not shown.voice or part.voice == shown.voice],
        [
            SpokenPoint(moment_of(start, shown.bucket), text(name), each)
            for (start, name, _), each in sums.items()
            if start is not None
        ],
        frozenset(part.voice for part in parts),
        since,
    )


def _statement(source: Source, chosen: Iterable[str], shown: Shown) -> str:
    """SQL of the sums by voice and key, without a bucket, and of the points, without a key.

    The source is aggregated once for both.
    """
    sums = ", ".join(map(sum_of, FIGURES))
    of_voice = "WHERE voice = %s " if shown.voice else ""
    return (
        f"WITH figures AS ({select(source, _DIMENSIONS, tuple(FIGURES), chosen, shown.bucket)}) "  # noqa: S608  # names are ours
        f"SELECT NULL, voice, {read('api_key_id')}, {sums} FROM figures GROUP BY voice, api_key_id "
        f"UNION ALL SELECT {read('bucket_start')}, {read(shown.by)}, NULL, {sums} FROM figures "
        f"{of_voice}GROUP BY bucket_start, {shown.by}"
    )


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
