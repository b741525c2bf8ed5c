"""Rows whose id and whose ``occurred_at`` are in different months, when one of these is pruned."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection
from django.test import Client

from accounts.models import Organization
from tests.support.builders import traffic
from tests.support.builders.receipts import receipt
from usage.ledger import rows
from usage.ledger.journal import adoption, records
from usage.ledger.journal.segments import LIVE, Segment
from usage.models import PrunedSum, UsageRollup, UsageRow, partitions
from usage.verification.rollups import verify

pytestmark = pytest.mark.django_db(transaction=True)
parquet = pytest.importorskip("pyarrow.parquet")

JULY, AUGUST, SEPTEMBER = (datetime(2025, month, 1, tzinfo=UTC) for month in (7, 8, 9))
SECOND = timedelta(seconds=1)


def id_of(moment: datetime) -> str:
    return f"req_{int(moment.timestamp() * 1000):012x}7{uuid.uuid4().hex[:19]}"


@pytest.fixture
def ours(reader: Client) -> str:
    return str(Organization.objects.get().pk)


def admit(organization: str, admitted: datetime, settled: datetime) -> str:
    request_id = id_of(admitted)
    traffic.write(settled, request_id=request_id, organization_id=organization)
    return request_id


def prune(directory: Path) -> str:
    out = StringIO()
    call_command("prune", "--keep", "3", "--archive", str(directory), stdout=out)
    return out.getvalue()


def differences() -> list[str]:
    found: list[str] = []
    verify(found.append)
    return found


def exported(reader: Client, start: str, end: str) -> list[str] | int:
    """The ids of a period, of which the summary has as many; or the status of both."""
    period = {"start": start, "end": end}
    rows = reader.get("/v1/usage/export", period)
    summary = reader.get("/v1/usage", period)
    if rows.status_code != 200:
        return rows.status_code
    ids = [row["request_id"] for row in rows.json()["rows"]]
    assert summary.json()["requests"] == len(ids)
    return ids


@pytest.fixture(autouse=True)
def today(monkeypatch: pytest.MonkeyPatch) -> None:
    """In November 2025 three whole months are August to October, so July is pruned."""
    monkeypatch.setattr("usage.retention.prune.now", lambda: datetime(2025, 11, 24, 12, tzinfo=UTC))


def test_a_month_that_is_not_pruned_keeps_all_rows_that_were_settled_in_it(
    ours: str, reader: Client, tmp_path: Path
) -> None:
    made = partitions.ensure(JULY)
    in_july = admit(ours, JULY + 14 * 24 * 3600 * SECOND, JULY + 14 * 24 * 3600 * SECOND)
    over_midnight = admit(ours, AUGUST - 2 * SECOND, AUGUST + 240 * SECOND)
    in_august = admit(ours, AUGUST + 7200 * SECOND, AUGUST + 7201 * SECOND)
    wrong_clock = admit(ours, datetime(2025, 1, 2, tzinfo=UTC), SEPTEMBER + SECOND)
    try:
        prune(tmp_path)

        assert exported(reader, "2025-08-01", "2025-09-01") == [over_midnight, in_august]
        assert exported(reader, "2025-08-01T00:00:01Z", "2025-08-01T02:00:00Z") == [over_midnight]
        assert exported(reader, "2025-09-01", "2025-10-01") == [wrong_clock]
        assert exported(reader, "2025-07-01", "2025-08-01") == 400
        assert not UsageRow.objects.filter(pk=in_july).exists()
        assert differences() == []
        assert prune(tmp_path) == ""
    finally:
        UsageRow.objects.all().delete()
        drop(made)


def drop(names: list[str]) -> None:
    with connection.cursor() as cursor:
        for name in names:
            cursor.execute(f'DROP TABLE IF EXISTS "{name}"')


def test_rows_that_were_kept_leave_with_the_month_in_which_they_were_settled(
    ours: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    over_midnight = admit(ours, AUGUST - 2 * SECOND, AUGUST + 240 * SECOND)
    in_july = admit(ours, JULY, JULY)
    prune(tmp_path)
    monkeypatch.setattr("usage.retention.prune.now", lambda: datetime(2025, 12, 24, 12, tzinfo=UTC))

    prune(tmp_path)

    def archived(month: str) -> list[str]:
        table = parquet.read_table(tmp_path / f"usage-2025-{month}.parquet")
        ids: list[str] = table.column("request_id").to_pylist()
        return ids

    assert (archived("07"), archived("08")) == ([in_july], [over_midnight])
    assert not UsageRow.objects.exists()
    assert differences() == []


def test_a_live_host_whose_clock_is_in_a_pruned_month_writes_its_rows(
    ours: str, tmp_path: Path
) -> None:
    admit(ours, JULY, JULY)
    prune(tmp_path)
    late = receipt(request_id=id_of(JULY + SECOND), organization_id=ours)

    inserted = rows.insert_accepted([late], lambda: None)

    assert (inserted.new, inserted.refused) == (1, [])
    assert UsageRow.objects.get().pk == late.request_id
    assert differences() == []


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


def test_a_dead_process_row_that_may_be_archived_is_kept_for_the_operator(
    ours: str, tmp_path: Path
) -> None:
    admit(ours, JULY, JULY)
    prune(tmp_path)
    late, fresh = (
        receipt(request_id=id_of(JULY + SECOND), organization_id=ours),
        receipt(organization_id=ours),
    )
    journal = tmp_path / "journal"
    journal.mkdir()
    segment = Segment(journal, LIVE)
    for each in (late, fresh):
        segment.append(records.encode("settled", each))
    segment.sync()
    segment.abandon()

    assert adoption.adopt(journal) == 1

    assert UsageRow.objects.get().pk == fresh.request_id
    (kept,) = journal.glob("*.refused")
    assert late.request_id.encode() in kept.read_bytes()
    assert fresh.request_id.encode() not in kept.read_bytes()


def test_rows_that_an_older_release_archived_too_early_are_named_and_no_difference(
    ours: str, reader: Client, tmp_path: Path
) -> None:
    """Nothing can be done about them, so the command succeeds."""
    admit(ours, JULY, JULY)
    admit(ours, JULY + SECOND, JULY + SECOND)
    prune(tmp_path)
    for model in (PrunedSum, UsageRollup):
        model.objects.update(hour=AUGUST)
    out = StringIO()

    call_command("verify_ledger", stdout=out)

    (note,) = [line for line in out.getvalue().splitlines() if line.startswith("Note: ")]
    assert "2025-08-01T00:00:00.000Z: 2 row(s)" in note
    august = {"start": "2025-08-01", "end": "2025-09-01"}
    assert reader.get("/v1/usage", august).json()["requests"] == 2
    assert reader.get("/v1/usage/export", august).json()["rows"] == []
