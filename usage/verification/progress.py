"""The progress of a long command on the ledger: reported while it runs, saved to resume from.

It is saved in a small file in the data directory, replaced after each step. A run that ends removes
the file; only ``--resume`` reads it, so that a run without it always checks everything.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
from django.conf import settings
from django.db import connection

from core.clock import iso_milliseconds
from usage.verification.walk import WalkPosition

TELL_SECONDS = 2.0

State = TypeVar("State", bound=msgspec.Struct)


class NothingToResume(Exception):
    """No earlier run was stopped, or it had another ``--since`` or database."""


class _Kept(msgspec.Struct):
    database: str
    since: datetime | None
    organization_id: str
    hour: datetime
    state: msgspec.Raw


class Progress(Generic[State]):
    """The progress of one run: ``state`` is its result so far, ``begin`` where it continues."""

    def __init__(
        self,
        command: str,
        state: State,
        since: datetime | None = None,
        *,
        resume: bool = False,
        report: Callable[[str], object] = lambda text: None,
    ) -> None:
        """Load the saved progress when resuming. Raises ``NothingToResume``."""
        self.state = state
        self.since = since
        self.begin: WalkPosition | None = None
        self._path = Path(settings.SVC_DATA_DIR) / f"{command}.progress"
        self._report = report
        self._began = self._told = time.monotonic()
        if resume:
            self._load()

    def reached(self, position: WalkPosition) -> None:
        """Save that everything before ``position`` is done, with the current ``state``."""
        organization_id = str(position.organization_id)
        state = msgspec.Raw(msgspec.json.encode(self.state))
        kept = _Kept(_database(), self.since, organization_id, position.hour, state)
        fresh = self._path.with_suffix(".new")
        fresh.write_bytes(msgspec.json.encode(kept))
        os.replace(fresh, self._path)
        moment = time.monotonic()
        if moment - self._told >= TELL_SECONDS:
            self._told = moment
            figures = ", ".join(
                f"{value} {name}"
                for name, value in msgspec.structs.asdict(self.state).items()
                if isinstance(value, int)
            )
            self._report(
                f"{moment - self._began:.0f} s, at {organization_id} "
                f"{iso_milliseconds(position.hour)}: {figures}"
            )

    def ended(self) -> None:
        """Delete the saved progress."""
        self._path.unlink(missing_ok=True)

    def _load(self) -> None:
        try:
            kept = msgspec.json.decode(self._path.read_bytes(), type=_Kept)
            state = msgspec.json.decode(kept.state, type=type(self.state))
        except FileNotFoundError:
            raise NothingToResume("No run was stopped. Leave --resume out.") from None
        except msgspec.DecodeError:
            raise NothingToResume(f"{self._path} is damaged. Leave --resume out.") from None
        if (kept.database, kept.since) != (_database(), self.since):
            raise NothingToResume("The stopped run used another database or another --since.")
        self.state = state
        self.begin = WalkPosition(kept.organization_id, kept.hour)


def _database() -> str:
    return f"{connection.settings_dict.get('HOST', '')}/{connection.settings_dict['NAME']}"
