"""``manage.py prune_speech``: rows of speech go, their sums stay, on either database."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import CommandError
from django.db import models

from tests.support.builders.receipts import speech_receipt
from tests.support.ledger.commands import differences, run
from usage.ledger import rows
from usage.models import SpeechDay, SpeechRow
from usage.queries import speech_hours
from usage.queries.periods import Period
from usage.queries.selection import Filters
from usage.queries.speech import speech_sums
from usage.retention import speech as pruning
from usage.verification import rebuild as rebuilding
from usage.verification.rebuild import rebuild

pytestmark = [pytest.mark.django_db, pytest.mark.every_database]

OLD = datetime(2025, 2, 26, 20, 10, tzinfo=UTC)
ORGANIZATION = str(uuid.UUID(int=7))


def write(at: datetime, characters: int, organization_id: str = ORGANIZATION) -> None:
    day = str(at.date())
    one = speech_receipt(organization_id=organization_id, day=day, characters=characters)
    rows.insert([one], at)


def characters() -> tuple[int, int, int]:
    """Those of the old month, of later, and of the days of both."""
    now = datetime.now(UTC)
    old = Period(OLD - timedelta(days=20), OLD + timedelta(days=20))
    new = Period(now - timedelta(days=20), now + timedelta(days=20))
    of_periods = [
        speech_sums(ORGANIZATION, each, Filters()).total.characters for each in (old, new)
    ]
    of_days = sum(SpeechDay.objects.values_list("characters", flat=True))
    return of_periods[0], of_periods[1], of_days


def prune() -> str:
    return run("prune_speech", "--keep", "3").strip()


def test_the_sums_of_pruned_speech_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "SLICE", 2)
    for hour in range(5):
        write(OLD + timedelta(hours=hour), 10)
    recent = datetime.now(UTC) - timedelta(days=2)
    write(recent, 3)
    before = characters()

    assert prune() == "5 row(s) of speech removed"

    def assert_unchanged() -> None:
        assert characters() == before == (50, 3, 53)
        assert differences() == []

    assert SpeechRow.objects.count() == 1
    assert_unchanged()
    speech_hours.sum_closed_hours()
    assert_unchanged()
    rebuild()
    assert_unchanged()
    assert prune() == "0 row(s) of speech removed"


def test_later_speech_is_still_summed_and_verified() -> None:
    write(OLD, 10)
    prune()

    write(datetime.now(UTC) - timedelta(days=2), 3)
    speech_hours.sum_closed_hours()
    assert characters() == (10, 3, 13)
    assert differences() == []

    SpeechRow.objects.update(characters=4)
    assert len(differences()) == 1
    rebuild()
    assert characters() == (10, 4, 14)


def test_months_that_a_query_may_span_are_kept() -> None:
    write(datetime.now(UTC) - timedelta(days=93), 10)
    with pytest.raises(CommandError, match="at least 3"):
        run("prune_speech", "--keep", "2")
    assert prune() == "0 row(s) of speech removed"


def test_the_rows_of_an_organization_that_stopped_speaking_go_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write(OLD, 10)
    # Upkeep summed it in its time, and found nothing to sum since.
    with monkeypatch.context() as patched:
        patched.setattr(speech_hours, "database_now", lambda: OLD + timedelta(days=1))
        speech_hours.sum_closed_hours()
    assert speech_hours.summed_until(ORGANIZATION) < OLD + timedelta(days=1)

    assert prune() == "1 row(s) of speech removed"
    assert characters() == (10, 0, 10)
    assert differences() == []

    # Late in an hour that is not pruned, it is summed again from there on.
    write(datetime.now(UTC) - timedelta(days=2), 3)
    speech_hours.sum_closed_hours()
    assert characters() == (10, 3, 13)
    assert differences() == []


def test_a_rebuild_that_began_before_keeps_the_sums_of_speech_that_is_pruned_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write(OLD, 10)
    organizations = rebuilding._organizations

    def prune_first(*of: type[models.Model]) -> Iterator[uuid.UUID]:
        assert prune() == "1 row(s) of speech removed"
        return organizations(*of)

    monkeypatch.setattr(rebuilding, "_organizations", prune_first)
    rebuild()
    assert characters() == (10, 0, 10)
    assert differences() == []
