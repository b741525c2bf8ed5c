"""Notifies every worker of an operator's change within a second.

Triggers of the database move the stamp of a subject ("catalog", "keys", "voices", ...) in the transaction
of every change (``accounts.change_triggers``). Two threads in each worker read the stamps every
``SVC_CHANGE_POLL_SECONDS``, and at once where a caller waits for it, and notify the subscribers of
each subject whose stamp moved: one for the keys, one for all else, because a revocation must not wait
for a catalog whose table is locked. A poll is one query over a handful of rows; it needs no broker
and cannot lose a message.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final, NamedTuple

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F

from accounts.models import ChangeStamp
from core.database.threads import DatabaseThread, abort_connection, keep_usable

log = logging.getLogger(__name__)

CATALOG = "catalog"
KEYS = "keys"
VOICES = "voices"
PRONUNCIATIONS = "pronunciations"

_STAMPS: Final = ""
"""Stands for the stamps themselves among the subjects whose failure is logged already."""
_SPACING_SECONDS: Final = 0.05
"""The least time between polls, however many callers wait for one."""
_FAILING_SPACING_SECONDS: Final = 0.25
_STAMPS_SECONDS: Final = 2.0
"""How long the query of the stamps may take before ``abort_overdue`` breaks its connection."""
_MOST_DOUBLINGS: Final = 5
_LOAD_SECONDS: Final = 20.0
_RELOAD_SECONDS: Final = 300.0
"""Everything is loaded as often as this, for changes made while triggers were disabled."""


def lock(subject: str) -> None:
    """Let transactions that call this for ``subject`` run one after the other; moves its stamp.

    A transaction that locks a row of the subject before it changes one calls this first: the triggers
    lock the stamp before the rows, and the other order deadlocks with a statement over the same rows.
    """
    if not ChangeStamp.objects.filter(subject=subject).update(version=F("version") + 1):
        ChangeStamp.objects.update_or_create(
            subject=subject, defaults={"version": F("version") + 1}, create_defaults={"version": 1}
        )


class Stamp(NamedTuple):
    """What a poll read of one subject; zeros where nothing was ever changed."""

    version: int = 0
    removals: int = 0


@dataclass(frozen=True, slots=True)
class _Subscriber:
    on_change: Callable[[], None]
    reload: Callable[[], None]


class ChangeWatcher:
    """The polling thread of one process, and the stamps that it has read.

    Subscribers are called in the polling thread and must be quick and thread-safe.
    """

    def __init__(self, beside: ChangeWatcher | None = None) -> None:
        """``beside`` is another watcher, whose ``abort_overdue`` this one calls after each poll."""
        self._beside = beside
        self._subscribers: dict[str, list[_Subscriber]] = {}
        self._read: dict[str, Stamp] = {}
        self._loaded: dict[str, Stamp] = {}
        """The stamps up to which the subscribers are told to have loaded; none after a failure."""
        self._confirmed: dict[str, float] = {}
        self._made = time.monotonic()
        self._reported: set[str] = set()
        self._stop = threading.Event()
        self._wanted = threading.Event()
        self._lock = threading.Lock()
        self._next: Future[None] = _uncancellable()
        self._began = self._reloaded = float("-inf")
        self._due = float("inf")
        self._aborts = 0
        self._connection: BaseDatabaseWrapper | None = None
        self._thread = DatabaseThread("change-watcher", self._poll_forever)
        self.is_failing = False
        """Whether the database failed, or let a caller wait in vain, and has not answered since."""

    def subscribe(
        self, subject: str, on_change: Callable[[], None], reload: Callable[[], None] | None = None
    ) -> None:
        """Call ``on_change`` whenever the stamp of ``subject`` has moved.

        ``reload`` is called instead when that may not be all: the first time, after a failure, when
        rows were removed, and when the stamp went back, as with a restored database.
        """
        subscriber = _Subscriber(on_change, reload or on_change)
        self._subscribers.setdefault(subject, []).append(subscriber)

    @property
    def is_running(self) -> bool:
        """Whether the polling thread runs."""
        return self._thread.is_running

    def start(self) -> None:
        """Start polling; does nothing when it already runs."""
        self._stop.clear()
        self._thread.ensure()

    def stop(self) -> None:
        """End polling and wait for the thread."""
        self._stop.set()
        self._wanted.set()
        self._thread.join()

    def version(self, subject: str) -> int:
        """The version of ``subject`` that the last poll read; 0 before."""
        return self._read.get(subject, Stamp()).version

    def confirmed(self, subject: str) -> float:
        """The monotonic time at which a poll began after which the subscribers had all changes."""
        return self._confirmed.get(subject, float("-inf"))

    def age(self, subject: str) -> float:
        """Seconds since the last poll that left the subscribers with all changes, from its beginning.

        Before the first such poll it counts from the moment at which this watcher was made.
        """
        return time.monotonic() - self._confirmed.get(subject, self._made)

    def is_fresh(self, subject: str, seconds: float) -> bool:
        """Whether the subscribers had all changes of ``subject`` within the last ``seconds``."""
        return time.monotonic() - self.confirmed(subject) <= seconds

    def look(self) -> Future[None]:
        """Return the future end of a poll that begins after this call; polls soon.

        All callers of the same time share one poll. The future has the exception of a poll that failed.
        """
        with self._lock:
            self._wanted.set()
            return self._next

    def abort_overdue(self) -> None:
        """Break the connection on which the running poll has waited too long; the next opens another.

        Without this, a connection that dropped silently would hide changes for half a minute. It waits
        longer each time, since a server that is only slow keeps what belongs to a broken connection.
        """
        if time.monotonic() > self._due and self._connection is not None:
            self._due = float("inf")
            self._aborts = min(self._aborts + 1, _MOST_DOUBLINGS)
            abort_connection(self._connection)

    def poll(self) -> None:
        """Read the stamps once and notify the subscribers of those that moved.

        Raises ``django.db.Error`` when the database does not answer.
        """
        began = time.monotonic()
        if began - self._reloaded > _RELOAD_SECONDS:
            self._loaded.clear()
            self._reloaded = began
        try:
            rows = ChangeStamp.objects.values_list("subject", "version", "removals")
            self._read = {subject: Stamp(*stamp) for subject, *stamp in rows}
        except Error:
            # Another database may answer next: one that took over, or was restored.
            self._loaded.clear()
            raise
        self._due = time.monotonic() + _LOAD_SECONDS * 2**self._aborts
        for subject in self._subscribers:
            if self._notify(subject, self._read.get(subject, Stamp())):
                self._confirmed[subject] = began

    def _notify(self, subject: str, stamp: Stamp) -> bool:
        """Notify the subscribers of ``subject`` if it moved; when one fails, all again next time.

        A failure is caught here, so that a broken catalog cannot keep a revoked key alive.
        """
        loaded = self._loaded.get(subject)
        if loaded == stamp:
            return True
        only_changes = (
            loaded is not None
            and stamp.version > loaded.version
            and stamp.removals == loaded.removals
        )
        try:
            for each in self._subscribers[subject]:
                (each.on_change if only_changes else each.reload)()
        except Exception as error:
            self._loaded.pop(subject, None)
            if subject not in self._reported:
                log.error("a change of %s was not loaded: %s", subject, type(error).__name__)
            self._reported.add(subject)
            return False
        self._loaded[subject] = stamp
        self._reported.discard(subject)
        return True

    def _poll_forever(self) -> None:
        self._connection = connections[DEFAULT_DB_ALIAS]
        while not self._stop.is_set():
            self._wanted.wait(settings.SVC_CHANGE_POLL_SECONDS)
            spacing = _FAILING_SPACING_SECONDS if self.is_failing else _SPACING_SECONDS
            self._stop.wait(max(0.0, self._began + spacing - time.monotonic()))
            if not self._stop.is_set():
                self._poll_for_callers()
        self._callers().set_exception(OperationalError("the process ends"))

    def _poll_for_callers(self) -> None:
        callers = self._callers()
        self._began = time.monotonic()
        self._due = self._began + _STAMPS_SECONDS * 2**self._aborts
        try:
            keep_usable()
            self.poll()
        except Exception as error:  # whatever it is, changes have to be seen later
            self._loaded.clear()
            if _STAMPS not in self._reported:
                log.warning("change stamps cannot be read: %s", type(error).__name__)
            self._reported.add(_STAMPS)
            self.is_failing = True
            callers.set_exception(error)
        else:
            self._reported.discard(_STAMPS)
            self.is_failing = False
            if not self._reported:  # a load that was broken has ended since
                self._aborts = 0
            callers.set_result(None)
        finally:
            self._due = float("inf")
            if self._beside is not None:
                self._beside.abort_overdue()

    def _callers(self) -> Future[None]:
        """Return the future of all who wait; who comes from now on waits for the next poll."""
        with self._lock:
            self._wanted.clear()
            callers, self._next = self._next, _uncancellable()
            return callers


def _uncancellable() -> Future[None]:
    """A future that a caller who stops waiting cannot cancel for the others."""
    future: Future[None] = Future()
    future.set_running_or_notify_cancel()
    return future


watcher = ChangeWatcher()
"""This process's watcher of all subjects but the keys."""

key_watcher = ChangeWatcher(watcher)
"""This process's watcher of the keys."""
