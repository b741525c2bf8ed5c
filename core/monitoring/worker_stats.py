"""Stats that the workers of one host share, so that each of them can report on all.

A scrape, or a page of the admin, reaches one worker. The others write a small file each second
under ``SVC_DATA_DIR/workers``; a single worker writes one only while a deployment drains. A file that
is some seconds old belongs to a dead worker and does not count. During a reload the workers of two
generations, which have the same numbers, have files of their own.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from django.conf import settings

from core.monitoring.logs import Outages

log = logging.getLogger(__name__)

EVERY_SECONDS: Final = 1.0
LASTING_SECONDS: Final = 10.0
_KEPT_SECONDS: Final = 3600.0
"""The file of a worker that was killed is removed when a worker begins after so long."""

FAILED_ENGINES: Final = "failed-engines"
"""The name under which each worker shares its engines that did not start."""

Shape = TypeVar("Shape")


class _File(msgspec.Struct):
    worker: int | str
    moment: float
    stats: dict[str, msgspec.Raw]
    generation: str = ""


class WorkerStats:
    """``worker`` is this process's number, from 0, or its name, if it is not a worker; ``generation`` is
    that of all that began with it.
    """

    def __init__(self, directory: Path, worker: int | str, generation: str = "") -> None:
        self.worker = worker
        self._generation = generation
        self._directory = directory
        self._path = directory / (f"{worker}.{generation}.json" if generation else f"{worker}.json")
        self._sources: dict[str, Callable[[], Any]] = {}
        self._has_published = False
        self._outages = Outages(log)

    def register(self, name: str, read: Callable[[], Any]) -> None:
        """Share the result of ``read`` under ``name``; msgspec must be able to encode it."""
        self._sources[name] = read

    def publish(self) -> None:
        """Write this worker's stats for the others. Raises ``OSError``."""
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self._has_published:
            self._has_published = True
            self._remove_old()
        stats = {name: msgspec.Raw(msgspec.json.encode(read())) for name, read in self._own()}
        content = msgspec.json.encode(_File(self.worker, time.time(), stats, self._generation))
        unfinished = self._path.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(content)
        unfinished.replace(self._path)

    def try_to_publish(self) -> None:
        """``publish``, and say in the log, once, that it cannot be done, as where the disk is full."""
        try:
            self.publish()
        except OSError as error:
            self._outages.failed(
                logging.WARNING, "the stats of this process are not published: %s", error.strerror
            )
        else:
            self._outages.ended("the stats of this process are published again")

    def withdraw(self) -> None:
        """Remove this worker's stats, because it ends."""
        self._path.unlink(missing_ok=True)

    def read(
        self, name: str, shape: type[Shape], *, own_generation: bool = False
    ) -> list[tuple[int | str, Shape]]:
        """Return the stats ``name`` of every live process with its number or name; own ones are current.

        A number is there twice while the workers of two generations run, or with ``own_generation``
        once: that of this process's.
        """
        found: list[tuple[int | str, Shape]] = []
        for path in sorted(self._directory.glob("*.json")):
            if name in self._sources and path == self._path:
                continue
            try:
                other = msgspec.json.decode(path.read_bytes(), type=_File)
                if (
                    time.time() - other.moment < LASTING_SECONDS
                    and name in other.stats
                    and (other.generation == self._generation or not own_generation)
                ):
                    found.append((other.worker, msgspec.json.decode(other.stats[name], type=shape)))
            except (OSError, msgspec.MsgspecError):
                continue  # being replaced, or of another version
        if name in self._sources:
            own = msgspec.convert(msgspec.to_builtins(self._sources[name]()), type=shape)
            found.append((self.worker, own))
        return sorted(found, key=lambda each: (isinstance(each[0], str), each[0]))

    def _remove_old(self) -> None:
        for path in self._directory.glob("*.json"):
            with suppress(OSError):  # another worker removes it as well
                if time.time() - path.stat().st_mtime > _KEPT_SECONDS:
                    path.unlink()

    def _own(self) -> list[tuple[str, Callable[[], Any]]]:
        return list(self._sources.items())


worker_stats = WorkerStats(
    settings.SVC_DATA_DIR / "workers", settings.SVC_WORKER, settings.SVC_GENERATION
)
