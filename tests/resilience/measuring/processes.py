"""The resources that a gateway's workers use, read from ``/proc`` (proc(5))."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from tests.support.processes import workers_of

MEGABYTE: Final = 1024 * 1024
_LOOK_SECONDS = 0.5
"""Each look reads hundreds of links: at ten a second they took a fifth of a core from the gateway."""
_IN_MEMORY = ("/memfd:", "/dev/shm/")
"""How the links of files begin that no disk holds (memfd_create(2), shm_overview(7))."""
_RESET_PEAK = "5"
"""Written to ``clear_refs``: the peak of the resident memory begins anew."""


def pids_of_workers(pid: int, count: int) -> list[int]:
    """The worker processes of ``serve``: itself, or some of its children where there are several."""
    if count == 1:
        return [pid]
    workers = sorted(workers_of(pid))
    assert len(workers) == count, "the gateway has lost one of its workers"
    return workers


@dataclass(frozen=True, slots=True)
class Taken:
    """The largest use of any one worker at a time."""

    memory: int
    """Resident bytes."""
    threads: int
    spooled: int
    """Bytes of files on a disk that are deleted but open, as a spooled body would be."""
    connections: int
    """Database connections of all workers together; 0 for SQLite."""
    pages_memory: int
    """Resident bytes of the page process; 0 with one worker, which has none."""


class Watch:
    """Measures ``pids`` from ``__enter__`` to ``__exit__``, and then sets ``taken``.

    ``pages`` is the page process, if there is one. ``connections`` counts database connections; it is
    called in the watch's thread."""

    def __init__(
        self, pids: Sequence[int], pages: int | None, connections: Callable[[], int]
    ) -> None:
        self._pids = pids
        self._pages = [] if pages is None else [pages]
        self._count_connections = connections
        self._over = threading.Event()
        self._threads = self._spooled = self._connections = 0
        self._looking = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        for pid in (*self._pids, *self._pages):
            Path(f"/proc/{pid}/clear_refs").write_text(_RESET_PEAK)
        self._looking.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._looking.join()
        memory = max(_peak(pid) for pid in self._pids)
        pages_memory = sum(_peak(pid) for pid in self._pages)
        self.taken = Taken(memory, self._threads, self._spooled, self._connections, pages_memory)

    def _look(self) -> None:
        while not self._over.wait(_LOOK_SECONDS):
            self._connections = max(self._connections, self._count_connections())
            for pid in self._pids:
                with suppress(OSError):
                    self._threads = max(self._threads, len(os.listdir(f"/proc/{pid}/task")))
                    self._spooled = max(self._spooled, bytes_on_disk(pid))


def _peak(pid: int) -> int:
    found = re.search(r"^VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found is not None, "the worker has ended"
    return int(found[1]) * 1024


def bytes_on_disk(pid: int) -> int:
    """The bytes of the files without a name that the process has open on a disk.

    Sound that is encoded is in files without a name too, which are in memory.
    """
    found = 0
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            link = os.readlink(file)
            if link.endswith(" (deleted)") and not link.startswith(_IN_MEMORY):
                found += file.stat().st_size
    return found
