"""``manage.py prune``: archives months as Parquet, keeps sums, and loses nothing when interrupted."""

from __future__ import annotations

import contextlib
import fcntl
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError
from django.db import IntegrityError
from django.test import Client

from accounts.models import Organization
from tests.support.builders import traffic
from tests.support.builders.receipts import receipt
from tests.support.ledger.commands import differences, drop_tables, id_of, prune, run
from usage.ledger import rows
from usage.models import PrunedMonth, PrunedSum, UsageRollup, UsageRow, partitions
from usage.retention import prune as pruning

pytestmark = pytest.mark.django_db(transaction=True)
parquet = pytest.importorskip("pyarrow.parquet")

ORGANIZATION = str(uuid.UUID(int=7))
MARCH = datetime(2025, 3, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MOMENTS = [
    datetime(2025, 2, 14, 12, tzinfo=UTC),
    datetime(2025, 2, 28, 23, 59, 59, 999_000, tzinfo=UTC),
    MARCH,
    datetime(2025, 3, 17, 8, 30, tzinfo=UTC),
]
POINTS = [
    *("batch read", "archived", "noted", "summed", "dropped", "committed"),
    *("slice", "slice committed"),
]
"""Some points are reached on one database only; on the other they change nothing."""


def admit(moment: datetime, settled_after: timedelta = timedelta(0), **facts: Any) -> str:
    """Write the row of a request that was admitted at ``moment``."""
    request_id = id_of(moment)
    facts = {"organization_id": ORGANIZATION, "backend_reported_input_tokens": 11, **facts}
    traffic.write(moment + settled_after, request_id=request_id, **facts)
    return request_id


ON_POSTGRESQL = settings.DATABASES["default"]["ENGINE"].endswith("postgresql")


@pytest.fixture(params=["default partition", "months"] if ON_POSTGRESQL else ["one table"])
def ledger(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """Rows of February and March 2025 and of today; one of February was settled in March."""
    made = partitions.ensure(MOMENTS[0]) if request.param == "months" else []
    ids = [admit(moment) for moment in MOMENTS]
    ids.append(admit(MARCH - SECOND, 5 * SECOND, error_code=None))
    admit(datetime.now(UTC).replace(microsecond=0))
    yield ids
    drop_tables(made)


def rollups() -> list[str]:
    return sorted(map(repr, UsageRollup.objects.values()))


def archived(directory: Path) -> list[str]:
    """The ids in all archives."""
    return sorted(
        value
        for path in directory.glob("*.parquet")
        for value in parquet.read_table(path).column("request_id").to_pylist()
    )


def old_rows() -> list[str]:
    return sorted(
        UsageRow.objects.filter(request_id__lt=id_of(datetime(2025, 6, 1, tzinfo=UTC))).values_list(
            "pk", flat=True
        )
    )


def test_months_become_files_and_their_sums_stay(ledger: list[str], tmp_path: Path) -> None:
    before = rollups()

    prune(tmp_path)

    assert archived(tmp_path) == sorted(ledger)
    assert old_rows() == []
    assert UsageRow.objects.count() == 1
    assert rollups() == before
    assert differences() == []
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".lock",
        "usage-2025-02.parquet",
        "usage-2025-03.parquet",
    ]
    assert prune(tmp_path) == ""


def test_an_archive_has_every_column_as_the_ledger_had_it(
    ledger: list[str], tmp_path: Path
) -> None:
    UsageRow.objects.filter(pk=ledger[0]).update(
        input_price_per_mtok=Decimal("9999999999.99999999"),
        system_fingerprint="fp_\u00e9\U0001f600",
        cached_input_tokens=0,
        model_server="gpu-1",
        attempts=2,
        queue_ms=0,
    )
    run("rebuild_rollups")
    stored = UsageRow.objects.filter(pk=ledger[0]).values().get()

    prune(tmp_path)

    table = parquet.read_table(tmp_path / "usage-2025-02.parquet")
    (row,) = [each for each in table.to_pylist() if each["request_id"] == ledger[0]]
    assert row == {
        name: str(value) if isinstance(value, uuid.UUID) else value
        for name, value in stored.items()
    }
    assert differences() == []


def test_sums_can_be_rebuilt_without_the_rows(ledger: list[str], tmp_path: Path) -> None:
    prune(tmp_path)
    before = rollups()
    UsageRollup.objects.filter(hour__lt=MARCH).delete()
    UsageRollup.objects.filter(hour__gte=MARCH).update(requests=9)
    assert differences()

    run("rebuild_rollups")

    assert rollups() == before
    assert differences() == []


def test_a_changed_sum_of_a_pruned_month_is_found(ledger: list[str], tmp_path: Path) -> None:
    prune(tmp_path)

    PrunedSum.objects.filter(hour__lt=MARCH).delete()

    assert [line for line in differences() if line.endswith("no rows for this roll-up")]
    assert [line for line in differences() if line.startswith("pruned months: ")]


class Stopped(BaseException):
    """The process ended here."""


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("point", POINTS)
def test_an_interrupted_run_loses_nothing_and_the_next_run_continues(
    point: str, nth: int, ledger: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, passed = rollups(), 0

    def stop_there(reached: str) -> None:
        nonlocal passed
        passed += reached == point
        if passed == nth and reached == point:
            raise Stopped

    monkeypatch.setattr(pruning, "at", stop_there)
    monkeypatch.setattr(pruning, "SLICE", 2)
    with contextlib.suppress(Stopped):
        prune(tmp_path)
    # Each row is in the ledger, or in an archive with its final name.
    assert set(ledger) <= {*old_rows(), *archived(tmp_path)}
    assert rollups() == before
    assert differences() == []

    monkeypatch.undo()
    prune(tmp_path)

    assert archived(tmp_path) == sorted(ledger)
    assert old_rows() == []
    assert rollups() == before
    assert differences() == []


def test_an_archive_that_was_changed_stops_the_removal(
    ledger: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The month is archived and marked as pruned, but not yet removed."""
    PrunedMonth.objects.create(
        first=datetime(2025, 2, 1, tzinfo=UTC).date(),
        first_id="req_0",
        end_id="req_0",
        rows=0,
        archive="usage-2025-02.parquet",
        sha256="0" * 64,
        pruned_at=datetime.now(UTC),
    )
    (tmp_path / "usage-2025-02.parquet").write_bytes(b"PAR1")

    with pytest.raises(CommandError, match="is not the archive"):
        prune(tmp_path)

    assert sorted(ledger) == old_rows()


def test_a_row_that_arrives_after_the_archive_was_written_keeps_its_month(
    ledger: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_one_more(reached: str) -> None:
        if reached == "archived":
            ledger.append(admit(MOMENTS[0] + timedelta(hours=1)))
            monkeypatch.undo()

    monkeypatch.setattr(pruning, "at", write_one_more)

    with pytest.raises(CommandError, match="changed while it was archived"):
        prune(tmp_path)
    prune(tmp_path)

    assert archived(tmp_path) == sorted(ledger)
    assert differences() == []


def test_two_runs_do_not_write_to_one_directory(ledger: list[str], tmp_path: Path) -> None:
    with (tmp_path / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        with pytest.raises(CommandError, match="Another prune"):
            prune(tmp_path)

    assert old_rows() == sorted(ledger)


def test_recent_months_are_never_pruned(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="--keep: at least 3"):
        run("prune", "--keep", "2", "--archive", str(tmp_path))


def test_a_row_that_is_stamped_in_a_pruned_month_is_refused_aloud(tmp_path: Path) -> None:
    admit(MARCH)
    prune(tmp_path)

    for admitted in (MARCH + SECOND, MARCH - SECOND):
        one = receipt(request_id=id_of(admitted), organization_id=ORGANIZATION)
        with pytest.raises(IntegrityError):
            rows.insert([one], MARCH + 2 * SECOND)

    assert not UsageRow.objects.exists()
    assert differences() == []


def test_rows_that_an_older_release_archived_too_early_are_named_and_no_difference(
    reader: Client, tmp_path: Path
) -> None:
    """Nothing can be done about them, so the command succeeds."""
    for moment in (MARCH, MARCH + SECOND):
        admit(moment, organization_id=str(Organization.objects.get().pk))
    prune(tmp_path)
    for model in (PrunedSum, UsageRollup):
        model.objects.update(hour=datetime(2025, 4, 1, tzinfo=UTC))

    (note,) = [line for line in run("verify_ledger").splitlines() if line.startswith("Note: ")]
    assert "2025-04-01T00:00:00.000Z: 2 row(s)" in note
    april = {"start": "2025-04-01", "end": "2025-05-01"}
    assert reader.get("/v1/usage", april).json()["requests"] == 2
    assert reader.get("/v1/usage/export", april).json()["rows"] == []
