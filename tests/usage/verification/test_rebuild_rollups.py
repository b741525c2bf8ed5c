"""``manage.py rebuild_rollups`` rebuilds roll-ups from the rows, also while rows arrive."""

from __future__ import annotations

import threading
import uuid
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connections
from django.db.models import F

from core.clock import now
from core.ids import request_id
from tests.support.builders import traffic
from tests.support.builders.receipts import receipt, speech_receipt
from tests.support.ledger.commands import differences, run
from usage.ledger import independent_counts, rows
from usage.models import Reconciliation, SpeechDay, UsageRollup, UsageRow


def stored() -> list[str]:
    days = SpeechDay.objects.values_list("organization_id", "day", "requests", "characters")
    return sorted(map(repr, [*UsageRollup.objects.values(), *days]))


def insert_by_hand(occurred_at: datetime, **columns: Any) -> None:
    """Insert a row as another program would, without a roll-up."""
    names = {field.attname for field in UsageRow._meta.local_fields}
    facts = {name: getattr(receipt(), name, None) for name in names}
    facts |= {"occurred_at": occurred_at, "request_id": request_id(), **columns}
    UsageRow.objects.create(**facts)


@pytest.mark.django_db
def test_changed_rollups_are_rebuilt_from_the_rows() -> None:
    for number in (1, 2):
        traffic.mixed(str(uuid.UUID(int=number)), [str(uuid.uuid4())], seed=number)
    before = stored()
    rollups = UsageRollup.objects.filter(organization_id=uuid.UUID(int=1))
    rollups.filter(hour__lt=datetime(2026, 11, 5, tzinfo=UTC)).delete()
    rollups.update(requests=F("requests") + 1, hour=F("hour") + timedelta(minutes=5))
    UsageRollup.objects.filter(organization_id=uuid.UUID(int=2)).update(
        organization_id=uuid.uuid4()
    )

    run("rebuild_rollups")

    assert stored() == before
    assert differences() == []


@pytest.mark.django_db
def test_rows_of_any_date_and_any_program_are_summed() -> None:
    organization_id = uuid.uuid4()
    moments = [
        datetime(1999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC),
        datetime(2000, 1, 1, tzinfo=UTC),
        datetime(2024, 2, 29, 12, 30, tzinfo=UTC),
        datetime(2024, 2, 29, 12, 45, tzinfo=UTC),
        datetime(2031, 1, 1, 1, 1, tzinfo=UTC),
    ]
    for number, moment in enumerate(moments):
        insert_by_hand(
            moment,
            organization_id=organization_id,
            request_id=f"imported-{number}",
            svc_counted_input_tokens=5,
            svc_counted_output_tokens=6,
            input_price_per_mtok=Decimal("0.00000001"),
        )

    report = run("rebuild_rollups")

    assert report.startswith("made from the rows: 4 roll-up(s) of 4 hour(s) of 1 organization(s), ")
    assert differences() == []
    leap = UsageRollup.objects.get(hour=datetime(2024, 2, 29, 12, tzinfo=UTC))
    assert (leap.requests, leap.svc_counted_requests, leap.svc_counted_output_tokens) == (2, 2, 12)
    assert leap.input_price_per_mtok == Decimal("0.00000001")


@pytest.mark.django_db
@pytest.mark.parametrize(
    "since", ["2026-11-10T12:59:59.999Z", "2026-11-10T12:00", "2026-11-10T18:29:00+05:30"]
)
def test_since_begins_with_its_whole_hour_and_leaves_earlier_ones_alone(since: str) -> None:
    traffic.mixed(str(uuid.uuid4()), [])
    first = datetime(2026, 11, 10, 12, tzinfo=UTC)
    UsageRollup.objects.update(requests=F("requests") + 100)

    run("rebuild_rollups", "--since", since)

    assert not UsageRollup.objects.filter(hour__gte=first, requests__gt=100).exists()
    assert not UsageRollup.objects.filter(hour__lt=first, requests__lt=100).exists()
    assert UsageRollup.objects.filter(hour=first).exists()
    assert UsageRollup.objects.filter(hour__lt=first).exists()


@pytest.mark.django_db(transaction=True)
def test_rows_and_counts_that_arrive_during_rebuilds_and_verifications_are_not_lost() -> None:
    organization_id = str(uuid.uuid4())
    failures: list[BaseException] = []
    enough = threading.Event()
    written = 0

    def write_rows() -> None:
        nonlocal written
        try:
            while written < 60 or not enough.is_set():
                one = receipt(
                    organization_id=organization_id,
                    # A new model each time, and so a roll-up that no rebuild has seen.
                    model_identifier=f"acme/model-{written // 2}",
                )
                spoken = speech_receipt(
                    organization_id=organization_id, day=f"2026-11-{written % 28 + 1:02d}"
                )
                rows.insert([one, receipt(organization_id=organization_id), spoken], now())
                written += 1
                independent_counts.fill_in(
                    one.request_id,
                    independent_counts.IndependentCount(Reconciliation.MATCHED, 1, 2, "0"),
                )
        except BaseException as error:
            failures.append(error)
        finally:
            connections.close_all()

    writer = threading.Thread(target=write_rows)
    writer.start()
    found: list[str] = []
    try:
        for _ in range(5):
            run("rebuild_rollups")
            found += differences()
    finally:
        enough.set()
        writer.join()

    assert failures == []
    assert [*found, *differences()] == []
    assert UsageRow.objects.filter(organization_id=organization_id).count() == 2 * written
    assert sum(SpeechDay.objects.values_list("requests", flat=True)) == written
