"""``verify_ledger`` and ``rebuild_rollups`` for speech: days against rows, in both directions."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

import pytest
from django.db.models import F

from tests.support.builders.receipts import receipt, speech_receipt
from tests.support.ledger.commands import disable_constraints, enable_constraints, reported, run
from usage.ledger import rows
from usage.models import SpeechDay, SpeechRow

ACME, OTHER = (str(uuid.UUID(int=number)) for number in (1, 2))
DAY = date(2026, 11, 5)


def write(organization_id: str, day: int, **facts: Any) -> str:
    one = speech_receipt(organization_id=organization_id, day=f"2026-11-{day:02d}", **facts)
    rows.insert([one])
    return one.request_id


def spoken() -> None:
    """Write speech of two organizations on three days, and a chat."""
    for organization_id in (ACME, OTHER):
        for day in (4, 5, 5, 6):
            write(organization_id, day, characters=day * 10)
    rows.insert([receipt(organization_id=ACME)])


def acme(day: date = DAY) -> Any:
    return SpeechDay.objects.filter(organization_id=ACME, day=day)


@pytest.mark.django_db
def test_an_unchanged_ledger_has_no_difference() -> None:
    spoken()

    assert run("verify_ledger").startswith(
        "rows: 1, roll-ups: 1, speech rows: 8, speech days: 6, cost: "
    )


DAMAGES: dict[str, tuple[Callable[[], object], str]] = {
    "characters": (
        lambda: acme().update(characters=F("characters") - 1),
        f"{ACME} 2026-11-05 speech: characters is 99, the rows say 100",
    ),
    "requests": (
        lambda: acme().update(requests=7),
        f"{ACME} 2026-11-05 speech: requests is 7, the rows say 2",
    ),
    "audio": (
        lambda: acme().update(audio_ms=F("audio_ms") + 1),
        f"{ACME} 2026-11-05 speech: audio_ms is 5001, the rows say 5000",
    ),
    "day gone": (
        lambda: acme().delete(),
        f"{ACME} 2026-11-05 speech: no day for 2 row(s)",
    ),
    "day invented": (
        lambda: SpeechDay.objects.create(
            organization_id=ACME, day=date(2026, 11, 9), requests=1, characters=1, audio_ms=1
        ),
        f"{ACME} 2026-11-09 speech: no rows for this day",
    ),
    "rows gone": (
        lambda: SpeechRow.objects.filter(organization_id=ACME, day=DAY).delete(),
        f"{ACME} 2026-11-05 speech: no rows for this day",
    ),
}


@pytest.mark.django_db
@pytest.mark.parametrize(("damage", "told"), DAMAGES.values(), ids=DAMAGES)
def test_a_changed_day_is_found_and_rebuilt(damage: Callable[[], object], told: str) -> None:
    spoken()
    damage()

    assert reported() == [told]

    run("rebuild_rollups")
    assert " speech days: " in run("verify_ledger")


@pytest.fixture
def unconstrained(db: None) -> Iterator[None]:
    disable_constraints(SpeechRow._meta.db_table)
    yield
    enable_constraints()


@pytest.mark.usefixtures("unconstrained")
@pytest.mark.parametrize(
    ("facts", "problem"),
    [
        ({"upstream_ms": -1}, "a figure is negative"),
        ({"outcome": "fine"}, "the outcome is not known"),
        ({"transport": "pigeon"}, "the transport is not known"),
    ],
    ids=str,
)
def test_an_invalid_row_is_found(facts: dict[str, Any], problem: str) -> None:
    request_id = write(ACME, 5, **facts)

    assert reported() == [f"{request_id}: {problem}"]


@pytest.mark.django_db
def test_since_begins_with_its_day() -> None:
    spoken()
    acme(date(2026, 11, 4)).delete()
    since = ("--since", "2026-11-05T15:00:00Z")

    assert "speech rows: 6, speech days: 4" in run("verify_ledger", *since)
    SpeechDay.objects.update(requests=F("requests") + 100)
    assert len(reported(*since)) == 4

    assert run("rebuild_rollups", *since).endswith(" 4 speech day(s)\n")

    assert "speech rows: 6" in run("verify_ledger", *since)
    assert not acme(date(2026, 11, 4)).exists()
    assert SpeechDay.objects.get(organization_id=OTHER, day=date(2026, 11, 4)).requests == 101
