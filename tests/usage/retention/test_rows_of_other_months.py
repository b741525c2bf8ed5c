"""Rows whose id and whose ``occurred_at`` are in different months, when one of these is pruned."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.db import IntegrityError
from django.test import Client

from accounts.models import Organization
from tests.support.builders import traffic
from tests.support.builders.receipts import receipt
from tests.support.ledger.commands import differences, id_of, prune, run
from usage.ledger import rows
from usage.models import PrunedSum, UsageRollup, UsageRow

pytestmark = pytest.mark.django_db(transaction=True)
parquet = pytest.importorskip("pyarrow.parquet")

JULY, AUGUST, SEPTEMBER = (datetime(2025, month, 1, tzinfo=UTC) for month in (7, 8, 9))
SECOND = timedelta(seconds=1)


@pytest.fixture
def ours(reader: Client) -> str:
    return str(Organization.objects.get().pk)


def admit(organization: str, admitted: datetime, settled: datetime) -> str:
    request_id = id_of(admitted)
    traffic.write(settled, request_id=request_id, organization_id=organization)
    return request_id


@pytest.fixture(autouse=True)
def today(monkeypatch: pytest.MonkeyPatch) -> None:
    """In November 2025 three whole months are August to October, so July is pruned."""
    monkeypatch.setattr("usage.retention.prune.now", lambda: datetime(2025, 11, 24, 12, tzinfo=UTC))


def test_a_row_that_is_stamped_in_a_pruned_month_is_refused_aloud(
    ours: str, tmp_path: Path
) -> None:
    admit(ours, JULY, JULY)
    prune(tmp_path)

    for admitted in (JULY + SECOND, JULY - SECOND):
        with pytest.raises(IntegrityError):
            rows.insert(
                [receipt(request_id=id_of(admitted), organization_id=ours)], JULY + 2 * SECOND
            )

    assert not UsageRow.objects.exists()
    assert differences() == []


def test_rows_that_an_older_release_archived_too_early_are_named_and_no_difference(
    ours: str, reader: Client, tmp_path: Path
) -> None:
    """Nothing can be done about them, so the command succeeds."""
    admit(ours, JULY, JULY)
    admit(ours, JULY + SECOND, JULY + SECOND)
    prune(tmp_path)
    for model in (PrunedSum, UsageRollup):
        model.objects.update(hour=AUGUST)

    (note,) = [line for line in run("verify_ledger").splitlines() if line.startswith("Note: ")]
    assert "2025-08-01T00:00:00.000Z: 2 row(s)" in note
    august = {"start": "2025-08-01", "end": "2025-09-01"}
    assert reader.get("/v1/usage", august).json()["requests"] == 2
    assert reader.get("/v1/usage/export", august).json()["rows"] == []
