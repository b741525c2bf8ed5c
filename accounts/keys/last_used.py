"""When a key was last used: recorded by the hot path at no cost, written in batches by a thread."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from django.db import connections
from django.db.models import Q

from accounts.models import ApiKey
from core.database.threads import DatabaseThread

log = logging.getLogger(__name__)

RECORD_SECONDS = 60.0
"""A key in use is written at most once in this time, by each worker."""
_GATHER_SECONDS = 5.0


class LastUses:
    """The uses since the last write. Approximate by design: a batch that fails is dropped."""

    def __init__(self) -> None:
        self._uses: dict[str, float] = {}
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._thread = DatabaseThread("key-last-uses", self._write_forever)

    def record(self, api_key_id: str, moment: float) -> None:
        """Record that the key was used at ``moment`` (epoch seconds)."""
        with self._lock:
            self._uses[api_key_id] = moment
        self._thread.ensure()

    def close(self) -> None:
        """Write the recorded uses and end the thread; a later ``record`` starts it again."""
        self._ending.set()
        self._thread.join()
        self._ending.clear()

    def _write_forever(self) -> None:
        ending = False
        while not ending:
            ending = self._ending.wait(_GATHER_SECONDS)
            with self._lock:
                uses, self._uses = self._uses, {}
            if uses:
                self._write(uses)

    def _write(self, uses: Mapping[str, float]) -> None:
        moment = datetime.fromtimestamp(max(uses.values()), UTC)
        # Another worker may just have written the same key.
        earlier = moment - timedelta(seconds=RECORD_SECONDS / 2)
        try:
            ApiKey.objects.filter(
                Q(last_used_at=None) | Q(last_used_at__lt=earlier), pk__in=uses
            ).update(last_used_at=moment)
        except Exception as error:  # whatever it is, the next batch may succeed
            log.warning("last uses of %d keys not written: %s", len(uses), type(error).__name__)
        finally:
            connections.close_all()  # a write every few seconds is not worth a connection
