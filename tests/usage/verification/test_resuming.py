"""``rebuild_rollups`` and ``verify_ledger`` resume after a kill."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from tests.support.builders import traffic
from tests.support.ledger.commands import run
from usage.models import UsageRollup, UsageRow
from usage.verification import progress, walk

pytestmark = pytest.mark.django_db
COMMANDS = ["rebuild_rollups", "verify_ledger"]
BEGIN = datetime(2025, 5, 1, tzinfo=UTC)


class Killed(BaseException):
    """The process ended here."""


@pytest.fixture(autouse=True)
def thinly_spread(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> list[str]:
    """Four organizations with nine hours of one or two rows each, processed in small steps."""
    monkeypatch.setattr(walk, "STEP", 4)
    settings.SVC_DATA_DIR = tmp_path
    ids = [str(uuid.UUID(int=number)) for number in range(1, 5)]
    for organization_id in ids:
        for hour in range(9):
            for minute in range(1 + hour % 2):
                traffic.write(
                    BEGIN + timedelta(hours=7 * hour, minutes=minute),
                    organization_id=organization_id,
                )
    return ids


def killed_after(
    steps: int, monkeypatch: pytest.MonkeyPatch, command: str, *arguments: str
) -> None:
    """Run ``command`` and kill it right after it saved the progress of ``steps`` steps."""
    reached = progress.Progress.reached
    count = 0

    def reach_and_die(self: Any, position: walk.WalkPosition) -> None:
        nonlocal count
        reached(self, position)
        count += 1
        if count == steps:
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(progress.Progress, "reached", reach_and_die)
        with pytest.raises(Killed):
            run(command, *arguments)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("steps", "since"),
    [(1, []), (8, []), (3, ["--since", "2025-05-02"])],
)
def test_a_resumed_run_ends_like_an_uninterrupted_one(
    command: str, steps: int, since: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run(command, *since)
    killed_after(steps, monkeypatch, command, *since)

    assert run(command, *since, "--resume") == whole


def test_completed_steps_are_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    killed_after(4, monkeypatch, "rebuild_rollups")
    UsageRollup.objects.update(requests=F("requests") + 100)

    run("rebuild_rollups", "--resume")

    wrong = UsageRollup.objects.filter(requests__gt=100)
    assert 0 < wrong.count() < UsageRollup.objects.count()


def test_differences_from_before_the_kill_count(monkeypatch: pytest.MonkeyPatch) -> None:
    first = UsageRollup.objects.order_by("organization_id", "hour")[0]
    UsageRollup.objects.filter(
        organization_id=first.organization_id, hour=first.hour, api_key_id=first.api_key_id
    ).delete()
    killed_after(3, monkeypatch, "verify_ledger")

    with pytest.raises(CommandError, match=r"^Differences: 1\. "):
        run("verify_ledger", "--resume")


@pytest.mark.parametrize("command", COMMANDS)
def test_without_resume_a_run_checks_everything(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run(command)
    killed_after(4, monkeypatch, command)

    assert run(command) == whole


@pytest.mark.parametrize("command", COMMANDS)
def test_there_must_be_something_to_resume(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CommandError, match="No run was stopped"):
        run(command, "--resume")
    killed_after(1, monkeypatch, command)
    with pytest.raises(CommandError, match="another --since"):
        run(command, "--resume", "--since", "2025-05-02")
    (kept,) = Path(settings.SVC_DATA_DIR).glob("*.progress")
    kept.write_text("{")
    with pytest.raises(CommandError, match="is damaged"):
        run(command, "--resume")


@pytest.mark.parametrize("since", [None, BEGIN + timedelta(hours=14)])
@pytest.mark.parametrize("size", [1, 4, 1000])
def test_steps_are_bounded_and_cover_everything_once(
    since: datetime | None, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk, "STEP", size)
    expected = sorted(UsageRow.objects.filter(occurred_at__gte=since or BEGIN).values_list("pk"))
    steps = list(walk.steps(since))
    seen = [sorted(rows_of(step)) for step in steps]

    assert sorted(each for step in seen for each in step) == expected
    assert max(map(len, seen)) <= size + 2
    for number, step in enumerate(steps[:-1], 1):
        rest = [sorted(rows_of(each)) for each in walk.steps(since, step.end)]
        assert sorted(each for step in rest for each in step) == sorted(
            each for step in seen[number:] for each in step
        )


def rows_of(step: walk.Step) -> list[Any]:
    where, parameters = step.where("occurred_at")
    rows = UsageRow.objects.extra(where=[where], params=parameters)  # ours
    return list(rows.values_list("pk"))


@pytest.mark.parametrize("command", COMMANDS)
def test_earlier_rows_are_not_read(command: str) -> None:
    """Each statement on the ledger enters its indexes by organization, and by time below it."""
    with CaptureQueriesContext(connection) as captured:
        run(command, "--since", "2025-05-03")
    plans = [
        line
        for query in captured.captured_queries
        if query["sql"].startswith(("SELECT", "WITH")) and UsageRow._meta.db_table in query["sql"]
        for line in plan(query["sql"])
    ]

    assert plans
    assert [line for line in plans if reads_all(line)] == []


def plan(statement: str) -> list[str]:
    """The database's plan for the ledger, in lines, as for a large table."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
            cursor.execute(f"EXPLAIN {statement}")
            return [line for (line,) in cursor.fetchall()]
        cursor.execute(f"EXPLAIN QUERY PLAN {statement}")
        return [detail for *_, detail in cursor.fetchall()]


def reads_all(line: str) -> bool:
    """Whether a line of a plan reads more than it must."""
    table = UsageRow._meta.db_table
    if connection.vendor == "postgresql":
        return f"Seq Scan on {table}" in line or "Filter: (occurred_at" in line
    if f" {table} " not in line:
        return False
    return not re.search(r"\(organization_id(=\? AND occurred_at>\?|>\?\))", line)
