"""How often limits refused: counted in memory, added up in the database, read by the summary.

A refused request writes no row, so these counts are all that is known of it: recent, approximate,
and never zero where nobody counted (inference contract, "Throttled object"). They do not come from
the limiter, so a limiter that loses its store loses no count.
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
from django.db.models import Q, Sum

from accounts.models import Organization
from accounts.threads import DatabaseThread
from svc_project.lib.clock import hour_of, now
from svc_project.lib.ids import NIL_UUID
from usage.models import ThrottleCount, ThrottleWriter
from usage.periods import Filters, Period
from usage.wire import Throttled, ThrottledEntry

log = logging.getLogger(__name__)

KEPT = timedelta(days=100)
_UNAVAILABLE = Throttled(source="unavailable", total=None, by_limit_scope=[])
_NOT_COUNTED = "not_counted"
"""The scope of a mark, in the name of no organization: a process served without counting."""


class Refused(NamedTuple):
    """What refusals are counted by, in the order of the table's key; ids are UUID texts."""

    organization_id: str
    hour: datetime
    api_key_id: str
    model_identifier: str
    limit_scope: str


class Batch(NamedTuple):
    """Counts that are added together, once: ``number`` grows with each of a process."""

    process: str
    number: int
    counted: Counter[Refused]


class ThrottleCounters:
    """The counters of one process and the thread that adds them to the database."""

    def __init__(self) -> None:
        self._counted: Counter[Refused] = Counter()
        self._batch: Batch | None = None
        """What the database has not confirmed; it stays as it is until it has."""
        self._process = ""
        self._batches = 0
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._failing = False
        self._thread = DatabaseThread("throttle-counts", self._write_forever)

    def count(
        self, organization_id: str, api_key_id: str, model_identifier: str, limit_scope: str
    ) -> None:
        """Count one request that a limit refused now; the database has it within seconds."""
        if not settings.SVC_THROTTLE_COUNTERS:
            return
        refused = Refused(
            organization_id, hour_of(now()), api_key_id, model_identifier, limit_scope
        )
        with self._lock:
            self._counted[refused] += 1
        self._thread.ensure()

    def close(self) -> None:
        """Write what is counted and end the thread; a later ``count`` starts it again."""
        self._ending.set()
        self._thread.join()
        self._ending.clear()

    def flush(self) -> None:
        """Add what is counted to the database; what it does not take is kept for the next time."""
        while (batch := self._next_batch()) is not None:
            try:
                add(batch.counted, batch)
            except Error as error:
                if not self._failing:
                    log.warning("throttle counts put off: %s", type(error).__name__)
                self._failing = True
                return
            self._batch = None
            self._failing = False

    def _next_batch(self) -> Batch | None:
        """The one that is not confirmed, or a new one of what is counted."""
        if self._batch is None:
            with self._lock:
                counted, self._counted = self._counted, Counter()
            if counted:
                # Not before the first count: a worker is not to have its parent's name.
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


def add(counted: Counter[Refused], batch: Batch | None = None) -> None:
    """Add ``counted`` to what the database has, in one order, so that two writers never deadlock.

    Does nothing when it has added the same ``batch`` before. Raises ``django.db.Error``; then nothing
    was added, or the answer to it was lost.
    """
    table, key = ThrottleCount._meta.db_table, ", ".join(Refused._fields)
    with transaction.atomic(), connection.cursor() as cursor:
        if batch is not None and not _is_first(batch):
            return
        cursor.executemany(
            f'INSERT INTO {table} ({key}, "count") VALUES (%s, %s, %s, %s, %s, %s) '  # noqa: S608
            f'ON CONFLICT ({key}) DO UPDATE SET "count" = {table}."count" + excluded."count"',
            [_columns(refused, counted[refused]) for refused in sorted(counted)],
        )


def _is_first(batch: Batch) -> bool:
    """Note ``batch`` as added; False when it was before."""
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


def keep_up(moment: datetime) -> None:
    """Delete counts past their time and, where counting is off, leave a mark that it is.

    Raises ``django.db.Error``.
    """
    # One hour more than is promised: the oldest readable hour began before KEPT ago.
    ThrottleCount.objects.filter(hour__lt=moment - KEPT - timedelta(hours=1)).delete()
    ThrottleWriter.objects.filter(written_at__lt=moment - KEPT).delete()
    if not settings.SVC_THROTTLE_COUNTERS:
        nobody = str(NIL_UUID)
        add(Counter({Refused(nobody, hour_of(moment), nobody, "", _NOT_COUNTED): 1}))


def read(organization_id: str, period: Period, filters: Filters) -> Throttled:
    """The refusals of every hour that ``period`` touches, by limit and model.

    ``unavailable`` when counting is off, or was for a part of the period, when the period starts
    before what is kept, and when nothing of it can have been counted: it has not begun, or was over
    before there was the organization. Raises ``django.db.Error``.
    """
    moment = now()
    if not settings.SVC_THROTTLE_COUNTERS or not moment - KEPT <= period.start <= moment:
        return _UNAVAILABLE
    chosen = Q(organization_id=organization_id)
    if filters.model is not None:
        chosen &= Q(model_identifier=filters.model)
    if filters.api_key_id is not None:
        chosen &= Q(api_key_id=filters.api_key_id)
    found = (
        ThrottleCount.objects.filter(
            chosen | Q(organization_id=NIL_UUID, limit_scope=_NOT_COUNTED),
            hour__gte=hour_of(period.start),
            hour__lt=period.end,
        )
        .values_list("limit_scope", "model_identifier")
        .annotate(total=Sum("count"))
    )
    entries = [ThrottledEntry(*columns) for columns in sorted(found)]
    if any(entry.limit_scope == _NOT_COUNTED for entry in entries):
        return _UNAVAILABLE
    if not entries and period.end <= moment and _is_younger(organization_id, period.end):
        return _UNAVAILABLE
    return Throttled(
        source="rejection_counters",
        total=sum(entry.count for entry in entries),
        by_limit_scope=entries,
    )


def _is_younger(organization_id: str, moment: datetime) -> bool:
    """Whether the organization was created at ``moment`` or later."""
    return Organization.objects.filter(pk=organization_id, created_at__gte=moment).exists()


def _columns(refused: Refused, count: int) -> list[Any]:
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
