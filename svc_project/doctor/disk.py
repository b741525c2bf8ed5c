"""Whether this host gives what the gateway needs: a disk for the journal, and open files."""

from __future__ import annotations

import resource
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from django.conf import settings

from svc_project.doctor.findings import Finding, State
from svc_project.serving import state_file
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


def open_files(directory: Path) -> Finding:
    """Compare the limit of open files with what a worker needs at its own bounds.

    It is that of the gateway that runs on ``directory``, or of this process where none runs: a service
    manager gives its services another one than a shell has.
    """
    most, whose = resource.getrlimit(resource.RLIMIT_NOFILE)[0], "a process of this shell"
    if (running := state_file.read(directory)) is not None:
        # Another user's process, or not on Linux.
        with suppress(OSError, AttributeError):
            most = resource.prlimit(running.pid, resource.RLIMIT_NOFILE)[0]
            whose = "a process of the running gateway"
    if most == resource.RLIM_INFINITY:
        return Finding(State.OK, "files", f"{whose} may open any number")
    words = f"{whose} may open {most}"
    needed = settings.SVC_MAX_CONNECTIONS + settings.SVC_MAX_INFLIGHT
    if most < needed:
        words += f", and a worker needs {needed} for SVC_MAX_CONNECTIONS and SVC_MAX_INFLIGHT."
        todo = "Raise it (LimitNOFILE, or `ulimit -n`): at the limit a worker takes no connection."
        return Finding(State.WARNING, "files", words, todo)
    return Finding(State.OK, "files", words)
