"""Counts of requests that limits refused: kept in memory, added to the database by a thread.

A refused request has no row, so these counts are its only trace: recent, approximate, and never
zero for an hour that was not counted (inference contract, "Throttled object"). They do not come
from the limiter, so a limiter that loses its store loses no count.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections import Counter
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.db import Error, connection, connections, models, transaction

from core.clock import hour_of, now
from core.database.threads import DatabaseThread
from core.ids import NIL_UUID
from usage.models import ThrottleCount, ThrottleWriter

log = logging.getLogger(__name__)

KEPT = timedelta(days=100)
NOT_COUNTED = "not_counted"
"""The scope of a marker row without an organization: a process served with counting disabled."""


class RefusalKey(NamedTuple):
    """The key of a count, in the order of the table's key; ids are UUID texts."""

    organization_id: str
    hour: datetime
    api_key_id: str
    model_identifier: str
    limit_scope: str


class Batch(NamedTuple):
    """Counts that are added to the database once, together; ``number`` grows within a process."""

    process: str
    number: int
    counted: Counter[RefusalKey]


class ThrottleCounters:
    """The counters of one process and the thread that adds them to the database."""

    def __init__(self) -> None:
        self._counted: Counter[RefusalKey] = Counter()
        self._batch: Batch | None = None
        """The batch that the database has not confirmed; unchanged until it does."""
        self._process = ""
        self._batches = 0
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._failing = False
        self._thread = DatabaseThread("throttle-counts", self._write_forever)

    def count(
        self, organization_id: str, api_key_id: str, model_identifier: str, limit_scope: str
    ) -> None:
        """Count one request that a limit refused now; it reaches the database within seconds."""
        if not settings.SVC_THROTTLE_COUNTERS:
            return
        refused = RefusalKey(
            organization_id, hour_of(now()), api_key_id, model_identifier, limit_scope
        )
        with self._lock:
            self._counted[refused] += 1
        self._thread.ensure()

    def close(self) -> None:
        """Write the counts and stop the thread; a later ``count`` starts it again."""
        self._ending.set()
        self._thread.join()
        self._ending.clear()

    def flush(self) -> None:
        """Add the counts to the database; keep them for the next time when that fails."""
        while (batch := self._next_batch()) is not None:
            try:
                add(batch.counted, batch)
            except Error as error:
                if not self._failing:
                    log.warning("throttle counts postponed: %s", type(error).__name__)
                self._failing = True
                return
            self._batch = None
            self._failing = False

    def _next_batch(self) -> Batch | None:
        """Return the unconfirmed batch, or a new one of the current counts."""
        if self._batch is None:
            with self._lock:
                counted, self._counted = self._counted, Counter()
            if counted:
                # Set at the first count, so that a forked worker does not inherit its parent's id.
                self._process = self._process or str(uuid.uuid4())
                self._batches += 1
                self._batch = Batch(self._process, self._batches, counted)
        return self._batch

    def _write_forever(self) -> None:
        ending = False
        while not ending:
            ending = self._ending.wait(settings.SVC_THROTTLE_FLUSH_SECONDS)
            self.flush()
            connections.close_all()  # a write every few seconds is not worth a connection


def add(counted: Counter[RefusalKey], batch: Batch | None = None) -> None:
    """Add ``counted`` to the database, in key order, so that two writers never deadlock.

    Does nothing when the same ``batch`` was added before. Raises ``django.db.Error``; then nothing
    was added, or the answer was lost.
    """
    table, key = ThrottleCount._meta.db_table, ", ".join(RefusalKey._fields)
    with transaction.atomic(), connection.cursor() as cursor:
        if batch is not None and not _is_first(batch):
            return
        cursor.executemany(
            f'INSERT INTO {table} ({key}, "count") VALUES (%s, %s, %s, %s, %s, %s) '  # noqa: S608
            f'ON CONFLICT ({key}) DO UPDATE SET "count" = {table}."count" + excluded."count"',
            [_columns(refused, counted[refused]) for refused in sorted(counted)],
        )


def _is_first(batch: Batch) -> bool:
    """Mark ``batch`` as added; return False when it was added before."""
    writer, is_new = ThrottleWriter.objects.select_for_update().get_or_create(
        process=batch.process, defaults={"batch": batch.number, "written_at": now()}
    )
    if is_new:
        return True
    if writer.batch >= batch.number:
        return False
    writer.batch, writer.written_at = batch.number, now()
    writer.save()
    return True


def maintain(moment: datetime) -> None:
    """Delete expired counts and, where counting is disabled, write a marker row that says so.

    Raises ``django.db.Error``.
    """
    # One hour more than is promised: the oldest readable hour began before KEPT ago.
    ThrottleCount.objects.filter(hour__lt=moment - KEPT - timedelta(hours=1)).delete()
    ThrottleWriter.objects.filter(written_at__lt=moment - KEPT).delete()
    if not settings.SVC_THROTTLE_COUNTERS:
        nobody = str(NIL_UUID)
        add(Counter({RefusalKey(nobody, hour_of(moment), nobody, "", NOT_COUNTED): 1}))


def _columns(refused: RefusalKey, count: int) -> list[Any]:
    uuid_field = models.UUIDField()
    return [
        uuid_field.get_db_prep_value(refused.organization_id, connection),
        connection.ops.adapt_datetimefield_value(refused.hour),
        uuid_field.get_db_prep_value(refused.api_key_id, connection),
        refused.model_identifier,
        refused.limit_scope,
        count,
    ]


counters = ThrottleCounters()
