"""Copies of database rows in a process's memory, which the hot path reads.

A snapshot is loaded again when the stamp of its subject moves (``accounts.changes``).
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from threading import Lock
from typing import Generic, TypeVar

from django.db import Error

from accounts.changes import ChangeWatcher

Snapshot = TypeVar("Snapshot")

_FRESH_SECONDS = 5.0


class SnapshotHolder(ABC, Generic[Snapshot]):
    """Holds the ``snapshot`` of ``subject``, which is ``empty`` until it is loaded.

    It is replaced as a whole, unless a subclass has ``load_changes``.
    """

    def __init__(self, watcher: ChangeWatcher, subject: str, empty: Snapshot) -> None:
        self.snapshot = empty
        self.is_loaded = False
        """Whether it was loaded at least once."""
        self._loaded = float("-inf")
        self._watcher = watcher
        self._subject = subject
        self._loading = Lock()
        watcher.subscribe(subject, self.load_changes, self.load)

    @abstractmethod
    def read(self) -> Snapshot:
        """Read a snapshot from the database. Raises ``django.db.Error``."""

    def load(self) -> None:
        """Replace the snapshot by a new one from the database.

        Raises ``django.db.Error`` and keeps the old snapshot when the database does not answer;
        the watcher then calls again.
        """
        # One at a time: an older snapshot must not replace a newer one.
        with self._loading:
            began = time.monotonic()
            self.snapshot = self.read()
            self._loaded = began
        self.is_loaded = True

    @property
    def age(self) -> float:
        """Seconds since the database was known to hold nothing newer; 0 before the first load."""
        if not self.is_loaded:
            return 0.0
        known = max(self._loaded, self._watcher.confirmed(self._subject))
        return time.monotonic() - known

    def load_changes(self) -> None:
        """Load what changed since the last load. Raises ``django.db.Error``."""
        self.load()

    def current(self) -> Snapshot:
        """The snapshot for a view that may block.

        Costs nothing while the watcher runs. In a process without one (runserver, a shell) it reads
        the database each time.
        """
        if not (self.is_loaded and self._watcher.is_fresh(self._subject, _FRESH_SECONDS)):
            try:
                self.load()
            except Error:
                if not self.is_loaded:
                    raise
        return self.snapshot
