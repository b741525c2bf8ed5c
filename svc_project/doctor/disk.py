"""Whether the journal's disk takes what the ledger may have to write there."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from django.conf import settings

from svc_project.doctor.findings import Finding, State
from usage.ledger.journal.segments import try_disk

_TRIED: Final = 1_048_576
"""Bytes, as much as many requests write to the journal."""
_GIB: Final = 1024**3


def journal_disk(directory: Path) -> Finding:
    """Write a file in the directory of the journal, and look at the space that is left."""
    try:
        try_disk(directory, _TRIED)
    except OSError as error:
        return Finding(
            State.FAULT,
            "journal",
            f"{directory} takes no record: {error.strerror}.",
            "Make room there, or give SVC_DATA_DIR another disk that this user may write to.",
        )
    free = shutil.disk_usage(directory).free
    words = f"{directory} takes records and has {free / _GIB:.1f} GiB left"
    if free < settings.SVC_JOURNAL_MAX_BYTES:
        todo = "Make room: SVC_JOURNAL_MAX_BYTES lets one process write more in an outage."
        return Finding(State.WARNING, "journal", f"{words}.", todo)
    return Finding(State.OK, "journal", words)
