"""Refused requests of one process: kept in memory, brought into the database by a thread.

A refused request has no row, so this is its only trace: recent, approximate, and never zero for an hour
that was not counted (inference contract, "Throttled object"). The counts do not come from the limiter, so
a limiter that loses its store loses no count. A request writes nothing itself, and a flood of refusals
does not make the database write more than a batch every ``SVC_THROTTLE_FLUSH_SECONDS``.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.db import DataError, Error, IntegrityError, connections, transaction

from accounts.keys.refusals import Refusal as Refused
from core.clock import hour_of, now
from core.database.threads import DatabaseThread
from core.ids import NIL_UUID
from core.monitoring.metrics import Family, total
from usage.models import Refusal, RefusalCount, ThrottleCount, ThrottleWriter
from usage.refusals import counts, newest
from usage.refusals.counts import KEPT, NOT_COUNTED, ErrorKey, ThrottleKey

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Batch:
    """What is brought into the database once, together; ``number`` grows within a process."""

    process: str = ""
    number: int = 0
    throttled: Counter[ThrottleKey] = field(default_factory=Counter)
    refused: Counter[ErrorKey] = field(default_factory=Counter)
    newest: list[Refused] = field(default_factory=list)
    """Those of an unknown owner are not in ``refused``."""


class Recorder:
    """The counters and the newest refusals of one process, and the thread that writes them."""

    def __init__(self) -> None:
        self._throttled: Counter[ThrottleKey] = Counter()
        self._refused: Counter[ErrorKey] = Counter()
        self._newest = newest.Waiting()
        self._unknown = newest.Waiting(newest.MOST_UNKNOWN)
        self._batch: Batch | None = None
        """The batch that the database has not confirmed; unchanged until it does."""
        self._process = ""
        self._batches = 0
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._failing = False
        self._thread = DatabaseThread("refusals", self._write_forever)

    def throttled(
        self, organization_id: str, api_key_id: str, model_identifier: str, limit_scope: str
    ) -> None:
        """Count one request that a limit refused now; it reaches the database within seconds."""
        if not settings.SVC_THROTTLE_COUNTERS:
            return
        hour = hour_of(now())
        key = ThrottleKey(organization_id, hour, api_key_id, model_identifier, limit_scope)
        with self._lock:
            self._throttled[key] += 1
        self._thread.ensure()

    def refused(self, refused: Refused) -> None:
        """Count and keep a refused request; a listener of ``accounts.keys.refusals``."""
        if not settings.SVC_THROTTLE_COUNTERS:
            return
        with self._lock:
            if refused.organization_id:
                self._refused[_key_of(refused)] += 1
                self._newest.add(refused)
            else:
                self._unknown.add(refused)
        self._thread.ensure()

    def close(self) -> None:
        """Write everything and stop the thread; a later refusal starts it again."""
        self._ending.set()
        self._thread.join()
        self._ending.clear()

    def flush(self) -> None:
        """Bring everything into the database; keep it for the next time when that fails.

        What the database cannot take is dropped: it would hold up all that comes after it.
        """
        while (batch := self._next_batch()) is not None:
            try:
                add(batch)
            except (DataError, IntegrityError) as error:
                log.error("a batch of refusals is dropped: %s", type(error).__name__)
            except Error as error:
                if not self._failing:
                    log.warning("refusals postponed: %s", type(error).__name__)
                self._failing = True
                return
            self._batch = None
            self._failing = False

    def families(self) -> Iterable[Family]:
        """Yield the metrics."""
        yield total(
            "svc_refusals_dropped",
            "Refused requests that are counted, but too many to be listed.",
            self._newest.dropped + self._unknown.dropped,
        )

    def _next_batch(self) -> Batch | None:
        """Return the unconfirmed batch, or a new one of what waits."""
        if self._batch is None:
            with self._lock:
                throttled, self._throttled = self._throttled, Counter()
                refused, self._refused = self._refused, Counter()
                kept = [*self._newest.take(), *self._unknown.take()]
            if throttled or refused or kept:
                # Set at the first one, so that a forked worker does not inherit its parent's id.
                self._process = self._process or str(uuid.uuid4())
                self._batches += 1
                self._batch = Batch(self._process, self._batches, throttled, refused, kept)
        return self._batch

    def _write_forever(self) -> None:
        ending = False
        while not ending:
            ending = self._ending.wait(settings.SVC_THROTTLE_FLUSH_SECONDS)
            self.flush()
            connections.close_all()  # a write every few seconds is not worth a connection


def add(batch: Batch) -> None:
    """Bring ``batch`` into the database, unless it was before.

    Raises ``django.db.Error``; then nothing was added, or the answer was lost.
    """
    with transaction.atomic():
        if batch.process and not _is_first(batch):
            return
        owned = newest.with_owners(batch.newest)
        late = Counter(_key_of(each) for each in owned if each.digests)
        counts.add_throttled(batch.throttled)
        counts.add_refused(batch.refused + late)
        newest.insert(owned)
    newest.trim(each.organization_id for each in owned)


def _key_of(refused: Refused) -> ErrorKey:
    hour = hour_of(refused.occurred_at)
    return ErrorKey(refused.organization_id, hour, refused.api_key_id, refused.model, refused.error)


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
    """Delete what is expired and, where counting is disabled, write a marker row that says so.

    Raises ``django.db.Error``.
    """
    delete_expired(moment)
    if not settings.SVC_THROTTLE_COUNTERS:
        nobody = str(NIL_UUID)
        marker = ThrottleKey(nobody, hour_of(moment), nobody, "", NOT_COUNTED)
        counts.add_throttled(Counter({marker: 1}))


def delete_expired(moment: datetime) -> int:
    """Delete what is older than ``KEPT``; return how many listed refusals. Raises ``django.db.Error``."""
    # One hour more than is promised: the oldest readable hour began before KEPT ago.
    before = moment - KEPT - timedelta(hours=1)
    ThrottleCount.objects.filter(hour__lt=before).delete()
    RefusalCount.objects.filter(hour__lt=before).delete()
    ThrottleWriter.objects.filter(written_at__lt=moment - KEPT).delete()
    return Refusal.objects.filter(occurred_at__lt=moment - KEPT).delete()[0]


recorder = Recorder()
"""The recorder of this process."""
