"""``verify_ledger`` and ``rebuild_rollups`` for speech: days against rows, in both directions."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from datetime import date
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections
from django.db.models import F

from tests.support.builders.receipts import receipt, speech_receipt
from usage.ledger import rows
from usage.models import SpeechDay, SpeechRow
from usage.verification.rollups import verify

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


def differences(*arguments: str) -> list[str]:
    """The differences that the command prints; with any it must fail."""
    out = StringIO()
    with pytest.raises(CommandError, match="rebuild_rollups rebuilds"):
        call_command("verify_ledger", *arguments, stdout=out)
    return out.getvalue().splitlines()[:-1]


def verified(*arguments: str) -> str:
    out = StringIO()
    call_command("verify_ledger", *arguments, stdout=out)
    return out.getvalue()


def rebuilt(*arguments: str) -> str:
    out = StringIO()
    call_command("rebuild_rollups", *arguments, stdout=out)
    return out.getvalue()


def stored() -> list[tuple[Any, ...]]:
    columns = ("organization_id", "day", "requests", "characters", "audio_ms")
    return sorted(SpeechDay.objects.values_list(*columns))


def acme(day: date = DAY) -> Any:
    return SpeechDay.objects.filter(organization_id=ACME, day=day)


@pytest.mark.django_db
def test_an_unchanged_ledger_has_no_difference() -> None:
    spoken()

    assert verified().startswith("rows: 1, roll-ups: 1, speech rows: 8, speech days: 6, cost: ")


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
    "row changed": (
        lambda: SpeechRow.objects.filter(organization_id=ACME, day=DAY).update(characters=51),
        f"{ACME} 2026-11-05 speech: characters is 100, the rows say 102",
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

    assert differences() == [told]

    rebuilt()
    assert " speech days: " in verified()


@pytest.fixture
def unconstrained(db: None) -> Iterator[None]:
    """Disable the table's constraints for the rest of the test's transaction."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA ignore_check_constraints = ON")
            yield
            cursor.execute("PRAGMA ignore_check_constraints = OFF")
            return
        table = SpeechRow._meta.db_table
        cursor.execute(
            "SELECT conname FROM pg_constraint WHERE conrelid = %s::regclass AND contype = 'c'",
            [table],
        )
        for (name,) in cursor.fetchall():
            cursor.execute(f'ALTER TABLE "{table}" DROP CONSTRAINT "{name}"')
        yield


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

    assert differences() == [f"{request_id}: {problem}"]


@pytest.mark.django_db
def test_since_begins_with_its_day() -> None:
    spoken()
    acme(date(2026, 11, 4)).delete()
    since = ("--since", "2026-11-05T15:00:00Z")

    assert "speech rows: 6, speech days: 4" in verified(*since)
    SpeechDay.objects.update(requests=F("requests") + 100)
    assert len(differences(*since)) == 4

    assert rebuilt(*since).endswith(" 4 speech day(s)\n")

    assert "speech rows: 6" in verified(*since)
    assert not acme(date(2026, 11, 4)).exists()
    assert SpeechDay.objects.get(organization_id=OTHER, day=date(2026, 11, 4)).requests == 101


@pytest.mark.django_db
def test_rebuilding_days_that_are_right_changes_nothing() -> None:
    spoken()
    before = stored()

    rebuilt()
    rebuilt()

    assert stored() == before


@pytest.mark.django_db(transaction=True)
def test_speech_that_arrives_during_a_rebuild_is_not_lost() -> None:
    failures: list[BaseException] = []
    enough = threading.Event()
    written = 0

    def keep_speaking() -> None:
        nonlocal written
        try:
            while written < 30 or not enough.is_set():
                write(ACME, written % 28 + 1)
                written += 1
        except BaseException as error:
            failures.append(error)
        finally:
            connections.close_all()

    writer = threading.Thread(target=keep_speaking)
    writer.start()
    found: list[str] = []
    try:
        for _ in range(5):
            rebuilt()
            verify(found.append)
    finally:
        enough.set()
        writer.join()

    assert failures == []
    assert found == []
    verify(found.append)
    assert found == []
    assert sum(SpeechDay.objects.values_list("requests", flat=True)) == written
