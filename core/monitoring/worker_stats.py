"""Stats that the workers of one host share, so that each of them can report on all.

A scrape, or a page of the admin, reaches one worker. The others write a small file each second
under ``SVC_DATA_DIR/workers``; a single worker writes one only while a deployment drains. A file that
is some seconds old belongs to a dead worker and does not count.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from django.conf import settings

EVERY_SECONDS: Final = 1.0
LASTING_SECONDS: Final = 10.0

FAILED_ENGINES: Final = "failed-engines"
"""The name under which each worker shares its engines that did not start."""

Shape = TypeVar("Shape")


class _File(msgspec.Struct):
    worker: int
    moment: float
    stats: dict[str, msgspec.Raw]


class WorkerStats:
    """``worker`` is this process's number, from 0."""

    def __init__(self, directory: Path, worker: int) -> None:
        self.worker = worker
        self._directory = directory
        self._sources: dict[str, Callable[[], Any]] = {}

    def register(self, name: str, read: Callable[[], Any]) -> None:
        """Share the result of ``read`` under ``name``; msgspec must be able to encode it."""
        self._sources[name] = read

    def publish(self) -> None:
        """Write this worker's stats for the others. Raises ``OSError``."""
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        stats = {name: msgspec.Raw(msgspec.json.encode(read())) for name, read in self._own()}
        content = msgspec.json.encode(_File(self.worker, time.time(), stats))
        path = self._directory / f"{self.worker}.json"
        unfinished = path.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(content)
        unfinished.replace(path)

    def withdraw(self) -> None:
        """Remove this worker's stats, because it ends."""
        (self._directory / f"{self.worker}.json").unlink(missing_ok=True)

    def read(self, name: str, shape: type[Shape]) -> list[tuple[int, Shape]]:
        """Return the stats ``name`` of every live worker with its number; own ones are current."""
        found: dict[int, Shape] = {}
        for path in sorted(self._directory.glob("*.json")):
            try:
                other = msgspec.json.decode(path.read_bytes(), type=_File)
                if time.time() - other.moment < LASTING_SECONDS and name in other.stats:
                    found[other.worker] = msgspec.json.decode(other.stats[name], type=shape)
            except (OSError, msgspec.MsgspecError):
                continue  # being replaced, or of another version
        if name in self._sources:
            found[self.worker] = msgspec.convert(
                msgspec.to_builtins(self._sources[name]()), type=shape
            )
        return sorted(found.items())

    def _own(self) -> list[tuple[str, Callable[[], Any]]]:
        return list(self._sources.items())


worker_stats = WorkerStats(settings.SVC_DATA_DIR / "workers", settings.SVC_WORKER)
