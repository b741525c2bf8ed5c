"""``rebuild_rollups`` and ``verify_ledger`` that were killed go on where they were."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db.models import F

from tests.usage import traffic
from usage import progress, walk
from usage.models import UsageRollup, UsageRow

pytestmark = pytest.mark.django_db
COMMANDS = ["rebuild_rollups", "verify_ledger"]
BEGIN = datetime(2025, 5, 1, tzinfo=UTC)


class Killed(BaseException):
    """The process ended here."""


@pytest.fixture(autouse=True)
def thinly_spread(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> list[str]:
    """Four organizations with nine hours of one or two rows each, walked through in small steps."""
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


def run(command: str, *arguments: str) -> str:
    out = StringIO()
    call_command(command, *arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


def killed_after(steps: int, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """Run ``command`` and end it right after it kept that it has done so many steps."""
    reached = progress.Progress.reached
    count = 0

    def reach_and_die(self: Any, place: walk.Place) -> None:
        nonlocal count
        reached(self, place)
        count += 1
        if count == steps:
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(progress.Progress, "reached", reach_and_die)
        with pytest.raises(Killed):
            run(command)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("steps", [1, 4, 8])
def test_a_killed_run_goes_on_and_ends_as_one_that_was_not(
    command: str, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run(command)
    killed_after(steps, monkeypatch, command)

    assert run(command, "--resume") == whole


def test_what_was_done_is_not_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_without_resume_a_run_looks_at_everything(
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


def test_steps_are_bounded_and_cover_everything_once(thinly_spread: list[str]) -> None:
    seen = []
    for step in walk.steps():
        where, parameters = step.where("occurred_at")
        rows = UsageRow.objects.extra(where=[where], params=parameters)  # ours
        ids = list(rows.values_list("pk", flat=True))
        assert len(ids) <= walk.STEP + 2
        seen += ids

    assert sorted(seen) == sorted(UsageRow.objects.values_list("pk", flat=True))
