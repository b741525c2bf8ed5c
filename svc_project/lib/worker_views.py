"""What the workers of one host say of themselves, read by whichever of them is asked.

A scrape, or a page of the admin, reaches one worker. The others leave a small file each second
under ``SVC_DATA_DIR/workers``; a single worker writes none. A view that was not renewed for some
seconds is of a dead worker and does not count.
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

Shape = TypeVar("Shape")


class _File(msgspec.Struct):
    worker: int
    moment: float
    views: dict[str, msgspec.Raw]


class WorkerViews:
    """``worker`` is this process's number, from 0."""

    def __init__(self, directory: Path, worker: int) -> None:
        self.worker = worker
        self._directory = directory
        self._sources: dict[str, Callable[[], Any]] = {}

    def offer(self, name: str, look: Callable[[], Any]) -> None:
        """Show what ``look`` returns under ``name``; msgspec must be able to encode it."""
        self._sources[name] = look

    def publish(self) -> None:
        """Leave this worker's views for the others. Raises ``OSError``."""
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        views = {name: msgspec.Raw(msgspec.json.encode(look())) for name, look in self._own()}
        content = msgspec.json.encode(_File(self.worker, time.time(), views))
        path = self._directory / f"{self.worker}.json"
        unfinished = path.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(content)
        unfinished.replace(path)

    def withdraw(self) -> None:
        """This worker ends."""
        (self._directory / f"{self.worker}.json").unlink(missing_ok=True)

    def read(self, name: str, shape: type[Shape]) -> list[tuple[int, Shape]]:
        """Every live worker's view ``name`` with its number: this one's now, the others' newest."""
        found: dict[int, Shape] = {}
        for path in sorted(self._directory.glob("*.json")):
            try:
                other = msgspec.json.decode(path.read_bytes(), type=_File)
                if time.time() - other.moment < LASTING_SECONDS and name in other.views:
                    found[other.worker] = msgspec.json.decode(other.views[name], type=shape)
            except (OSError, msgspec.MsgspecError):
                continue  # being replaced, or of another version
        if name in self._sources:
            found[self.worker] = msgspec.convert(
                msgspec.to_builtins(self._sources[name]()), type=shape
            )
        return sorted(found.items())

    def _own(self) -> list[tuple[str, Callable[[], Any]]]:
        return list(self._sources.items())


views = WorkerViews(settings.SVC_DATA_DIR / "workers", settings.SVC_WORKER)
