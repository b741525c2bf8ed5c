"""Copies of deleted clones on speech backends: forgotten there at once, or as soon as they can be.

``CloneUpload`` rows whose clone is deleted are the outbox. A row goes when the backend has said
that the copy is gone; until then it is asked again, by whichever worker comes first.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta

from speech.database import threads
from speech.models import CloneUpload
from speech.snapshot import BackendRef, backend_ref
from svc_project.lib import clock
from svc_project.lib.errors import InternalError

log = logging.getLogger(__name__)

Forget = Callable[[BackendRef, str], Awaitable[None]]
"""Asks a backend to drop an upload by its name; returns when it has, or has none (404).

Raises anything else.
"""

RETRY_AFTER = timedelta(minutes=5)
"""When a backend that failed is asked again, at the earliest; upkeep comes every ten minutes."""

_BATCH = 50


class Outbox:
    """One per process; does nothing until ``start``."""

    def __init__(self) -> None:
        self._forget: Forget | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: set[asyncio.Task[None]] = set()

    def start(self, forget: Forget) -> None:
        """Serve on the running event loop, with ``forget`` towards the backends."""
        self._forget, self._loop = forget, asyncio.get_running_loop()

    async def stop(self) -> None:
        """Break off what runs; the rows are still there."""
        self._forget = self._loop = None
        for task in tuple(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def nudge(self) -> None:
        """Something is due: try now. From any thread; call it after the commit."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._begin)

    async def forget_due(self) -> None:
        """Ask for every copy that is due; rows that cannot be read now are there next time."""
        if self._forget is None:
            return
        with suppress(InternalError):
            # A claim puts off what it claims, so this ends.
            while claimed := await threads.run(_claim):
                await asyncio.gather(*(self._ask(each, self._forget) for each in claimed))

    def _begin(self) -> None:
        if self._loop is not None:
            task = self._loop.create_task(self.forget_due())
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _ask(self, upload: CloneUpload, forget: Forget) -> None:
        try:
            await forget(backend_ref(upload.backend), upload.upstream_name)
        except Exception as error:  # whatever it is, it is tried again
            log.warning(
                "speech backend %s keeps a deleted clone's clip for now: %s",
                upload.backend.name,
                type(error).__name__,
            )
        else:
            await threads.run(upload.delete)


def _claim() -> list[CloneUpload]:
    """What is due now and this process took on; nobody else does before ``RETRY_AFTER``."""
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
