"""Closed hours of speech are summed once: sums are exact, whenever upkeep ran."""

from __future__ import annotations

import uuid
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.clock import hour_of, now
from tests.support.builders.receipts import speech_receipt
from usage.ledger import rows
from usage.models import SpeechHour, SpeechRow, SpeechWatermark
from usage.queries import latest, speech_hours
from usage.queries.periods import Bucket, Period
from usage.queries.selection import Filters
from usage.queries.speech import Dimension, Shown, SpeechSums, speech_sums
from usage.verification.rebuild import rebuild
from usage.verification.rollups import verify

pytestmark = [pytest.mark.django_db, pytest.mark.every_database]

BEGIN = datetime(2025, 2, 26, 20, tzinfo=UTC)
KEYS = [str(uuid.UUID(int=number)) for number in range(1, 3)]
moments = st.one_of(
    st.integers(0, 8 * 3_600_000), st.integers(0, 8).map(lambda hour: hour * 3_600_000)
).map(lambda milliseconds: BEGIN + timedelta(milliseconds=milliseconds))
facts = st.fixed_dictionaries(
    {
        "api_key_id": st.sampled_from(KEYS),
        "voice": st.sampled_from(["ava", "leo"]),
        "characters": st.integers(0, 2**31 - 1),
        "outcome": st.sampled_from(["success", "client_disconnected", "backend_error"]),
    }
)
EVERYTHING = Period(BEGIN, BEGIN + timedelta(days=2))


def write(organization_id: str, at: datetime, **columns: Any) -> str:
    one = speech_receipt(organization_id=organization_id, day=str(at.date()), **columns)
    rows.insert([one], at)
    return one.request_id


def sums(organization_id: str, period: Period = EVERYTHING) -> SpeechSums:
    return speech_sums(organization_id, period, Filters())


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    history=st.lists(st.one_of(st.tuples(moments, facts), st.just("upkeep")), max_size=12),
    bounds=st.tuples(moments, moments).filter(lambda pair: pair[0] != pair[1]),
    bucket=st.sampled_from(Bucket),
    key=st.none() | st.sampled_from(KEYS),
    by=st.sampled_from(["voice", "api_key_id"]),
    voice=st.none() | st.sampled_from(["ava", "leo"]),
)
def test_hours_and_rows_together_are_the_plain_sum_over_the_rows(
    history: list[Any],
    bounds: tuple[datetime, datetime],
    bucket: Bucket,
    key: str | None,
    by: Dimension,
    voice: str | None,
) -> None:
    organization_id = str(uuid.uuid4())
    period = Period(min(bounds), max(bounds))
    counts: Counter[Any] = Counter()
    voices = set()
    for event in history:
        if event == "upkeep":
            speech_hours.sum_closed_hours()
            continue
        at, columns = event
        write(organization_id, at, **columns)
        if period.start <= at < period.end and key in (None, columns["api_key_id"]):
            voices.add(columns["voice"])
            if voice in (None, columns["voice"]):
                counts.update(figures_of(at, bucket, by, columns))

    found = speech_sums(organization_id, period, Filters(api_key_id=key), Shown(bucket, by, voice))

    parts = [((each.voice, each.api_key_id), each.sums) for each in found.parts]
    points = [((each.bucket_start, each.name), each.sums) for each in found.points]
    assert len(dict(parts)) == len(parts)
    assert len(dict(points)) == len(points)
    assert (
        +Counter(
            {
                (where, name): getattr(each, name)
                for where, each in (*parts, *points)
                for name in ("requests", "characters", "failed")
            }
        )
        == +counts
    )
    assert found.voices == voices


def figures_of(
    at: datetime, bucket: Bucket, by: Dimension, columns: dict[str, Any]
) -> dict[Any, int]:
    """What a request adds to the part and to the point that it belongs to."""
    start = hour_of(at) if bucket is Bucket.HOUR else at.replace(hour=0, minute=0)
    start = start.replace(minute=0, second=0, microsecond=0)
    places = ((columns["voice"], columns["api_key_id"]), (start, columns[by]))
    figures = {
        "requests": 1,
        "characters": columns["characters"],
        "failed": columns["outcome"] == "backend_error",
    }
    return {(place, name): figures[name] for place in places for name in figures}


def test_a_row_that_changes_or_goes_is_summed_again() -> None:
    organization_id = str(uuid.uuid4())
    first = write(organization_id, BEGIN, voice="ava", characters=5)
    second = write(organization_id, BEGIN + timedelta(hours=3), voice="ava", characters=7)
    assert speech_hours.sum_closed_hours() == 1
    assert SpeechHour.objects.count() == 2
    assert speech_hours.sum_closed_hours() == 0

    SpeechRow.objects.filter(pk=second).update(outcome="backend_error", audio_ms=0)
    assert sums(organization_id).total.failed == 1
    assert SpeechWatermark.objects.get().until == BEGIN + timedelta(hours=3)
    SpeechRow.objects.filter(pk=first).delete()
    assert sums(organization_id).total.characters == 7
    assert speech_hours.sum_closed_hours() == 1
    assert [each.characters for each in SpeechHour.objects.all()] == [7]


def test_the_bound_is_only_for_what_is_not_summed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latest, "MOST_SEARCHED", 2)
    organization_id = str(uuid.uuid4())
    for hour in range(5):
        write(organization_id, BEGIN + timedelta(hours=hour), characters=1)
    behind = sums(organization_id)
    assert behind.since == BEGIN + timedelta(hours=2)

    speech_hours.sum_closed_hours()
    period = Period(BEGIN, now() + timedelta(days=9))
    for _ in range(4):
        write(organization_id, now(), characters=10)
    after = sums(organization_id, period)

    assert (after.since, after.total.characters) == (None, 45)


def test_wrong_hours_are_found_and_rebuilt() -> None:
    organization_id = str(uuid.uuid4())
    write(organization_id, BEGIN, voice="ava", characters=5)
    speech_hours.sum_closed_hours()
    assert verify(lambda text: None).differences == 0
    SpeechHour.objects.update(characters=6)

    said: list[str] = []
    assert verify(said.append).differences == 1
    assert said == [
        f"{organization_id} 2025-02-26T20:00:00.000Z ava: the hour is not the sum of its rows"
    ]
    rebuild()

    assert verify(lambda text: None).differences == 0
    assert sums(organization_id).total.characters == 5
