"""When a key was last used: noted by the hot path for nothing, written in batches by a thread."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from django.db import connections
from django.db.models import Q

from accounts.models import ApiKey
from accounts.threads import DatabaseThread

log = logging.getLogger(__name__)

NOTE_SECONDS = 60.0
"""A key in use is written at most once in this time, by each worker."""
_GATHER_SECONDS = 5.0


class LastUses:
    """The uses noted since the last write. Approximate by design: a batch that fails is dropped."""

    def __init__(self) -> None:
        self._noted: dict[str, float] = {}
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._thread = DatabaseThread("key-last-uses", self._write_forever)

    def note(self, api_key_id: str, moment: float) -> None:
        """Remember that the key was used at ``moment`` (epoch seconds)."""
        with self._lock:
            self._noted[api_key_id] = moment
        self._thread.ensure()

    def close(self) -> None:
        """Write what is noted and end the thread; a later ``note`` starts it again."""
        self._ending.set()
        self._thread.join()
        self._ending.clear()

    def _write_forever(self) -> None:
        ending = False
        while not ending:
            ending = self._ending.wait(_GATHER_SECONDS)
            with self._lock:
                noted, self._noted = self._noted, {}
            if noted:
                self._write(noted)

    def _write(self, noted: Mapping[str, float]) -> None:
        moment = datetime.fromtimestamp(max(noted.values()), UTC)
        # Another worker may have written the same key a moment ago.
        earlier = moment - timedelta(seconds=NOTE_SECONDS / 2)
        try:
            ApiKey.objects.filter(
                Q(last_used_at=None) | Q(last_used_at__lt=earlier), pk__in=noted
            ).update(last_used_at=moment)
        except Exception as error:  # whatever it is, the next batch may fare better
            log.warning("last uses of %d keys not written: %s", len(noted), type(error).__name__)
        finally:
            connections.close_all()  # a write every few seconds is not worth a connection
