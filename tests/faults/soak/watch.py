"""A gateway's resources over time: memory, descriptors, journal, connections to PostgreSQL."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import psycopg

from tests.faults.soak.place import Place

_SECONDS = 2.0


@dataclass(frozen=True)
class Sample:
    """``memory`` in MiB and ``descriptors`` of the oldest worker, ``journal`` in KiB."""

    at: float
    memory: float
    descriptors: int
    journal: float
    connections: int


@dataclass
class Watch:
    """Samples of a running gateway, every two seconds."""

    place: Place
    samples: list[Sample] = field(default_factory=list)
    _stopping: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        threading.Thread(target=self._run, daemon=True).start()

    def stop(self) -> None:
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.wait(_SECONDS):
            with suppress(OSError, IndexError, ValueError):
                self.samples.append(self._sample(self.place.workers[0]))

    def _sample(self, pid: int) -> Sample:
        status = Path(f"/proc/{pid}/status").read_text()
        memory = int(status.partition("VmRSS:")[2].split()[0]) / 1024
        files = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        journal = sum(
            each.stat().st_size for each in self.place.journal.glob("*") if each.is_file()
        )
        connections = _connections(self.place)
        return Sample(time.monotonic(), memory, files, journal / 1024, connections)


def _connections(place: Place) -> int:
    """How many other clients PostgreSQL has; 0 when it does not answer."""
    if place.postgresql is None:
        return 0
    query = "SELECT count(*) - 1 FROM pg_stat_activity WHERE backend_type = 'client backend'"
    with (
        suppress(psycopg.OperationalError),
        psycopg.connect(place.postgresql.url, connect_timeout=5) as own,
    ):
        return int(own.execute(query).fetchone()[0])  # type: ignore[index]  # one row
    return 0


def thirds(samples: Sequence[Sample]) -> list[tuple[str, str]]:
    """Each resource's median in the three thirds of the run, and its largest value."""
    if not samples:
        return []
    size = max(1, len(samples) // 3)
    parts = [
        each or samples for each in (samples[:size], samples[size : 2 * size], samples[2 * size :])
    ]
    names = (
        ("memory of the oldest worker, MiB", "memory"),
        ("its descriptors", "descriptors"),
        ("journal of both, KiB", "journal"),
        ("connections to PostgreSQL", "connections"),
    )
    found = []
    for title, name in names:
        middle = [median(getattr(each, name) for each in part) for part in parts]
        largest = max(getattr(each, name) for each in samples)
        told = ", ".join(f"{value:.0f}" for value in middle)
        found.append((title, f"{told}; at most {largest:.0f}"))
    return found
