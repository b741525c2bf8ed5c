"""Months whose rows came before their partition, from hosts whose clock was months ahead."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from tests.support.builders.receipts import receipt
from tests.support.ledger.commands import drop_tables, id_of
from usage.ledger import rows
from usage.models import UsageRow, partitions
from usage.verification.rollups import verify

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]

MARCH = datetime(2033, 3, 1, tzinfo=UTC)
DUE = datetime(2032, 12, 5, tzinfo=UTC)
"""In December the partition of March is made."""


def write(moments: list[datetime]) -> list[str]:
    ids = [id_of(each) for each in moments]
    rows.insert([receipt(request_id=each) for each in ids])
    return sorted(ids)


def held_by(partition: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT request_id FROM "{partition}" ORDER BY 1')
        return [request_id for (request_id,) in cursor.fetchall()]


@pytest.fixture(autouse=True)
def _no_months_left() -> Iterator[None]:
    yield
    UsageRow.objects.all().delete()
    months = ("2032_12", "2033_01", "2033_02", "2033_03")
    drop_tables(f"{partitions.TABLE}_{month}" for month in months)


def test_rows_of_the_future_move_into_their_month_when_it_is_due() -> None:
    march = write([MARCH, MARCH + timedelta(days=14)])
    later = write([MARCH + timedelta(days=31)])

    made = partitions.ensure(DUE)

    assert "usage_usagerow_2033_03" in made
    assert held_by("usage_usagerow_2033_03") == march
    assert held_by(partitions.DEFAULT_PARTITION) == later
    assert sorted(UsageRow.objects.values_list("pk", flat=True)) == [*march, *later]
    verify(pytest.fail)
    assert rows.insert([receipt(request_id=march[0])]) == 0
    assert partitions.ensure(DUE) == []


def test_a_month_with_too_many_rows_stays_in_the_default_partition_and_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(partitions, "MOST_MOVED", 1)
    march = write([MARCH, MARCH + timedelta(days=14)])

    made = partitions.ensure(DUE)

    assert "usage_usagerow_2033_03" not in made
    assert held_by(partitions.DEFAULT_PARTITION) == march
    (said,) = (each.getMessage() for each in caplog.records if "2033-03" in each.getMessage())
    assert "more than 1 rows" in said
