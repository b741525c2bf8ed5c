"""Deletes the copies of deleted clones on speech backends, at once or as soon as possible.

``CloneUpload`` rows of deleted clones are the outbox. A row is deleted when the backend has
confirmed that the copy is deleted; until then the worker that claims it first retries.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta

from core import clock
from core.database.threads import threads
from core.errors import InternalError
from speech.engines.http.backend import BackendRef
from speech.models import CloneUpload
from speech.voices.snapshot import backend_ref

log = logging.getLogger(__name__)

DeleteUpload = Callable[[BackendRef, str], Awaitable[None]]
"""Deletes an upload on a backend by its name; returns when it is deleted or was missing (404).

Raises for every other answer.
"""

RETRY_AFTER = timedelta(minutes=5)
"""The earliest retry after a failure; upkeep runs every ten minutes."""

_BATCH = 50


class Outbox:
    """The outbox of a process; it does nothing before ``start``."""

    def __init__(self) -> None:
        self._delete_upload: DeleteUpload | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: set[asyncio.Task[None]] = set()

    def start(self, delete_upload: DeleteUpload) -> None:
        """Start on the running event loop; ``delete_upload`` deletes on the backends."""
        self._delete_upload, self._loop = delete_upload, asyncio.get_running_loop()

    async def stop(self) -> None:
        """Cancel running deletions; their rows remain."""
        self._delete_upload = self._loop = None
        for task in tuple(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def nudge(self) -> None:
        """Delete due copies now. Call it after the commit, from any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._begin)

    async def delete_due(self) -> None:
        """Delete every copy that is due; after a failure of the database the rows remain."""
        if self._delete_upload is None:
            return
        with suppress(InternalError):
            # A claim postpones the next try of its rows, so this ends.
            while claimed := await threads.run(_claim):
                await asyncio.gather(*(self._delete(each, self._delete_upload) for each in claimed))

    def _begin(self) -> None:
        if self._loop is not None:
            task = self._loop.create_task(self.delete_due())
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _delete(self, upload: CloneUpload, delete_upload: DeleteUpload) -> None:
        try:
            await delete_upload(backend_ref(upload.backend), upload.upstream_name)
        except Exception as error:  # every failure is retried
            log.warning(
                "speech backend %s keeps a deleted clone's clip for now: %s",
                upload.backend.name,
                type(error).__name__,
            )
        else:
            await threads.run(upload.delete)


def _claim() -> list[CloneUpload]:
    """Claim due rows; no other process claims them before ``RETRY_AFTER``."""
    moment = clock.now()
    due = CloneUpload.objects.filter(delete_after__lte=moment).select_related("backend")
    return [
        upload
        for upload in due.order_by("delete_after")[:_BATCH]
        if CloneUpload.objects.filter(pk=upload.pk, delete_after=upload.delete_after).update(
            delete_after=moment + RETRY_AFTER
        )
    ]


outbox = Outbox()
"""The outbox of this process."""
