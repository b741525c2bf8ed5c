"""Commands, reports of those of the ledger, and ids of requests that were admitted in the past."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from usage.verification.rollups import verify


def id_of(moment: datetime) -> str:
    """A request id generated at ``moment``."""
    return f"req_{int(moment.timestamp() * 1000):012x}7{uuid.uuid4().hex[:19]}"


def run(command: str, *arguments: str) -> str:
    """Run a command; return what it printed."""
    out = StringIO()
    call_command(command, *arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


def run_json(*arguments: str) -> Any:
    return json.loads(run(*arguments, "--json"))


def prune(directory: Path) -> str:
    return run("prune", "--keep", "3", "--archive", str(directory))


def differences(since: datetime | None = None) -> list[str]:
    """The differences between rows and sums."""
    found: list[str] = []
    verify(found.append, since)
    return found


def reported(*arguments: str) -> list[str]:
    """The differences that ``verify_ledger`` prints; with any it must fail."""
    out = StringIO()
    with pytest.raises(CommandError, match="rebuild_rollups rebuilds") as failure:
        call_command("verify_ledger", *arguments, stdout=out)
    *lines, _ = out.getvalue().splitlines()
    assert str(failure.value).startswith(f"Differences: {len(lines)}. ")
    return lines


def drop_tables(names: Iterable[str]) -> None:
    with connection.cursor() as cursor:
        for name in names:
            cursor.execute(f'DROP TABLE IF EXISTS "{name}"')


def disable_constraints(*tables: str) -> None:
    """Disable the checks of ``tables`` for the rest of the test's transaction."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA ignore_check_constraints = ON")
            return
        for table in tables:
            cursor.execute(
                "SELECT conname FROM pg_constraint WHERE conrelid = %s::regclass AND contype = 'c'",
                [table],
            )
            for (name,) in cursor.fetchall():
                cursor.execute(f'ALTER TABLE "{table}" DROP CONSTRAINT "{name}"')


def enable_constraints() -> None:
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA ignore_check_constraints = OFF")
