"""Notifies every worker of an operator's change within a second.

Code that changes a subject ("catalog", "keys", "voices") calls ``changed`` in the same transaction.
One thread in each worker reads the stamps every ``SVC_CHANGE_POLL_SECONDS`` and notifies the
subscribers of each subject whose stamp moved. A poll is one query over a handful of rows; it needs
no broker and cannot lose a message.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from django.conf import settings
from django.db import Error
from django.db.models import F

from accounts.models import ChangeStamp
from svc_project.lib.database.connections import keep_usable
from svc_project.lib.database.threads import DatabaseThread

log = logging.getLogger(__name__)

CATALOG = "catalog"
KEYS = "keys"
VOICES = "voices"


def changed(subject: str) -> None:
    """Move the stamp of ``subject``; takes effect when the surrounding transaction commits."""
    if not ChangeStamp.objects.filter(subject=subject).update(version=F("version") + 1):
        ChangeStamp.objects.update_or_create(
            subject=subject, defaults={"version": F("version") + 1}, create_defaults={"version": 1}
        )


class ChangeWatcher:
    """The polling thread of one process, and the stamps that it has read.

    Subscribers are called in the polling thread and must be quick and thread-safe.
    """

    def __init__(self) -> None:
        self._subscribers: dict[str, list[Callable[[], None]]] = {}
        self._seen: dict[str, int] = {}
        self._failing: set[str] = set()
        self._stop = threading.Event()
        self._thread = DatabaseThread("change-watcher", self._poll_forever)
        self.last_poll = float("-inf")
        """When the stamps were last read, on the monotonic clock."""

    def subscribe(self, subject: str, on_change: Callable[[], None]) -> None:
        """Call ``on_change`` whenever the stamp of ``subject`` has moved."""
        self._subscribers.setdefault(subject, []).append(on_change)

    def start(self) -> None:
        """Start polling; does nothing when it already runs."""
        self._stop.clear()
        self._thread.ensure()

    def stop(self) -> None:
        """End polling and wait for the thread."""
        self._stop.set()
        self._thread.join()

    def is_fresh(self, seconds: float) -> bool:
        """Whether the stamps were read within the last ``seconds``."""
        return time.monotonic() - self.last_poll <= seconds

    def poll(self) -> None:
        """Read the stamps once and notify the subscribers of those that moved.

        Raises ``django.db.Error`` when the database does not answer.
        """
        began = time.monotonic()
        stamps = dict(ChangeStamp.objects.values_list("subject", "version"))
        self.last_poll = began
        for subject, version in stamps.items():
            if self._seen.get(subject) != version and self._notify(subject):
                self._seen[subject] = version

    def _notify(self, subject: str) -> bool:
        """Notify the subscribers of ``subject``; when one fails, notify all again at the next poll.

        A failure is caught here, so that a broken catalog cannot keep a revoked key alive.
        """
        try:
            for notify in self._subscribers.get(subject, ()):
                notify()
        except Exception as error:
            if subject not in self._failing:
                log.error("a change of %s was not loaded: %s", subject, type(error).__name__)
            self._failing.add(subject)
            return False
        self._failing.discard(subject)
        return True

    def _poll_forever(self) -> None:
        failing = False
        while not self._stop.wait(settings.SVC_CHANGE_POLL_SECONDS):
            try:
                keep_usable()
                self.poll()
                failing = False
            except Error as error:
                if not failing:
                    log.warning("change stamps cannot be read: %s", type(error).__name__)
                failing = True


watcher = ChangeWatcher()
