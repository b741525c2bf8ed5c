"""Verification that speech days and hours are the sums of the speech rows, and that the rows are valid.

The database adds the rows up, with another statement than the one that writes the days; two streams
by organization and day are then compared, so memory does not grow with the ledger.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import date, datetime
from heapq import merge
from itertools import groupby
from operator import itemgetter

from django.db import connection
from django.db.models import Count, Q, QuerySet, Sum

from core.clock import iso_milliseconds, midnight
from usage.models import (
    SpeechDay,
    SpeechHour,
    SpeechOutcome,
    SpeechRow,
    SpeechWatermark,
    Transport,
)
from usage.models.statements import SPEECH
from usage.queries import speech_hours
from usage.queries.speech_hours import FIGURES, KEY, made_of
from usage.verification import walk

_CHUNK = 2000
_FIGURES = ("characters", "sentences", "audio_ms", "upstream_ms", "first_audio_ms", "gateway_ms")

OrganizationDay = tuple[uuid.UUID, date]
Sums = tuple[int, ...]
"""In the order of ``SPEECH.totals``."""


def compare(differ: Callable[[str], None], first: date | None) -> tuple[int, int]:
    """Compare the days from ``first`` on with their rows; report each difference to ``differ``.

    Days and hours whose rows are pruned are left out.
    Return how many rows and days were checked. Raises ``django.db.Error``.
    """
    since = Q() if first is None else Q(day__gte=first)
    _check_rows(SpeechRow.objects.filter(since), differ)
    rows = days = 0
    pruned = speech_hours.pruned_days()
    sides = merge(
        ((key, False, sums) for key, sums in _made(since)),
        ((key, True, sums) for key, sums in _stored(since)),
        key=itemgetter(0),
    )
    for key, of_day in groupby(sides, key=itemgetter(0)):
        if key[1] < pruned.get(key[0], date.min):
            continue
        found = {stored: sums for _, stored, sums in of_day}
        rows += found[False][0] if False in found else 0
        days += True in found
        _compare(key, found.get(False), found.get(True), differ)
    _compare_hours(midnight(first or date.min), differ)
    return rows, days


def _compare_hours(first: datetime, differ: Callable[[str], None]) -> None:
    """Compare the summed hours of every organization with its rows."""
    key, negated = ", ".join(KEY), ", ".join(f"-{name}" for name in FIGURES)
    differs = " OR ".join(f"sum({name}) <> 0" for name in FIGURES)
    made = made_of("organization_id = %s AND occurred_at >= %s AND occurred_at < %s")
    hours = SpeechHour._meta.db_table
    identity = SpeechHour._meta.get_field("organization_id").get_db_prep_value
    for kept in SpeechWatermark.objects.order_by("pk").iterator(_CHUNK):
        bounds = [
            identity(kept.pk, connection),
            *map(walk.adapt, (max(first, kept.pruned or first), kept.until)),
        ]
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT hour, voice FROM ({made} UNION ALL SELECT {key}, {negated} FROM {hours} "  # noqa: S608
                "WHERE organization_id = %s AND hour >= %s AND hour < %s) AS both_sides "
                f"GROUP BY {key} HAVING {differs} ORDER BY 1, 2",
                [*bounds, *bounds],
            )
            for hour, voice in cursor.fetchall():
                moment = iso_milliseconds(walk.aware(datetime.fromisoformat(str(hour))))
                differ(f"{kept.pk} {moment} {voice}: the hour is not the sum of its rows")


def _made(since: Q) -> Iterator[tuple[OrganizationDay, Sums]]:
    totals = (
        SpeechRow.objects.filter(since)
        .order_by("organization_id", "day")
        .values_list("organization_id", "day")
        .annotate(Count("pk"), Sum("characters"), Sum("audio_ms"))
    )
    for organization_id, day, *sums in totals.iterator(_CHUNK):
        yield (organization_id, day), tuple(map(int, sums))


def _stored(since: Q) -> Iterator[tuple[OrganizationDay, Sums]]:
    days = SpeechDay.objects.filter(since).order_by("organization_id", "day")
    stored = days.values_list("organization_id", "day", *SPEECH.totals)
    for organization_id, day, *sums in stored.iterator(_CHUNK):
        yield (organization_id, day), tuple(sums)


def _compare(
    key: OrganizationDay, made: Sums | None, stored: Sums | None, differ: Callable[[str], None]
) -> None:
    name = f"{key[0]} {key[1]} speech"
    if stored is None and made is not None:
        differ(f"{name}: no day for {made[0]} row(s)")
    elif made is None:
        differ(f"{name}: no rows for this day")
    elif stored is not None:
        for figure, right, found in zip(SPEECH.totals, made, stored, strict=True):
            if right != found:
                differ(f"{name}: {figure} is {found}, the rows say {right}")


def _check_rows(rows: QuerySet[SpeechRow], differ: Callable[[str], None]) -> None:
    """Check the table's constraints again, in case they were bypassed."""
    negative = Q()
    for figure in _FIGURES:
        negative |= Q(**{f"{figure}__lt": 0})
    problems = {
        "a figure is negative": negative,
        "the outcome is not known": ~Q(outcome__in=SpeechOutcome.values),
        "the transport is not known": ~Q(transport__in=Transport.values),
    }
    for problem, condition in problems.items():
        wrong = rows.filter(condition).order_by("pk").values_list("pk", flat=True)
        for request_id in wrong.iterator(_CHUNK):
            differ(f"{request_id}: {problem}")
