"""CSV downloads: how many run at once, and one that a thread reads while the event loop sends it.

Each holds a thread and a database connection for as long as its reader takes. The bounds, in all and
of one organization, are those of a whole host, since one process runs the views of all its workers.

Django reads a synchronous iterator whole before it sends it (ASGI), so a download is asynchronous. It
reads a block when the one before it was handed to the socket, so a slow reader makes the database
wait and nothing grows. A failure in the middle is raised as an exception, on which the server closes
the connection without the final chunk (RFC 9112, section 8): a client never takes a cut download for
a complete one.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final
from weakref import WeakSet

from django.conf import settings
from django.db import connections

from core.errors import RateLimitExceeded, ServerOverloaded

RETRY_SECONDS: Final = 5
_RETRY: Final = {"retry-after": str(RETRY_SECONDS), "retry-after-ms": str(RETRY_SECONDS * 1000)}


class DownloadSlot:
    """A slot that an organization holds until it is released or garbage collected."""

    def __init__(self, slots: DownloadSlots, organization_id: str) -> None:
        self.organization_id = organization_id
        self._slots = slots

    def release(self) -> None:
        """Release the slot; idempotent."""
        self._slots._discard(self)


class DownloadSlots:
    """The slots of one process, for any number of threads.

    They are no ``Share``, which counts what its owners release: a slot may end with a garbage
    collection, in any thread and also in one that has the lock.
    """

    def __init__(self) -> None:
        # Weak: nothing closes an answer that was discarded before it began.
        self._taken: WeakSet[DownloadSlot] = WeakSet()
        self._lock = threading.Lock()

    @property
    def taken(self) -> int:
        """How many slots are held."""
        return len(self._taken)

    def take(self, organization_id: str) -> DownloadSlot:
        """Return a slot for ``organization_id``.

        Raises ``RateLimitExceeded`` when the organization holds as many as it may, and
        ``ServerOverloaded`` when all are taken.
        """
        own_most = settings.SVC_EXPORT_DOWNLOADS_PER_ORGANIZATION
        with self._lock:
            own = sum(slot.organization_id == organization_id for slot in self._taken)
            if own >= own_most:
                raise RateLimitExceeded(
                    f"This organization already runs its maximum of CSV downloads ({own_most} at "
                    "once). Try again when one of them has ended, or read the pages "
                    "of format=json.",
                    headers=_RETRY,
                )
            if len(self._taken) >= settings.SVC_EXPORT_DOWNLOADS:
                raise ServerOverloaded(
                    "Too many CSV downloads are running. Try again shortly, or read the pages of "
                    "format=json.",
                    headers={"retry-after": str(RETRY_SECONDS)},
                )
            slot = DownloadSlot(self, organization_id)
            self._taken.add(slot)
            return slot

    def _discard(self, slot: DownloadSlot) -> None:
        with self._lock:
            self._taken.discard(slot)


slots = DownloadSlots()
"""The slots of this process."""


STALL_SECONDS = 60.0
"""How long a reader may take no block before the download is closed; also how far it may fall
behind ``SVC_EXPORT_BYTES_PER_SECOND``."""


class DownloadEnded(Exception):
    """The download was closed before its end: its reader was too slow, or it took too long."""


class CsvDownload:
    """An asynchronous iterator over the blocks that ``blocks`` yields.

    ``blocks`` runs in a thread of its own from the first request for a block. It is closed there,
    with the thread's database connections, when it ends, fails or ``close`` is called; then
    ``slot`` is released.

    It is also closed when its reader takes nothing for ``STALL_SECONDS``, is slower than
    ``SVC_EXPORT_BYTES_PER_SECOND``, or has not finished after ``SVC_EXPORT_SECONDS``: an open
    download is a snapshot that keeps the database from vacuuming and the ledger from new
    partitions. The time that the database takes to read does not count.
    """

    def __init__(self, blocks: Generator[bytes, None, None], slot: DownloadSlot) -> None:
        self._blocks = blocks
        self._slot = slot
        self._thread: ThreadPoolExecutor | None = None
        self._next: Future[bytes | None] | None = None
        self._stall: asyncio.TimerHandle | None = None
        self._end_by: asyncio.TimerHandle | None = None
        self._handed_at: float | None = None
        self._behind = 0.0
        """Seconds that the reader is behind the slowest allowed pace."""
        self._closing = threading.Lock()
        self._closed = False

    def __aiter__(self) -> CsvDownload:
        return self

    async def __anext__(self) -> bytes:
        loop = asyncio.get_running_loop()
        if self._stall is not None:
            self._stall.cancel()
        if self._handed_at is not None:
            self._behind += loop.time() - self._handed_at
        try:
            if self._end_by is None:
                self._end_by = loop.call_later(settings.SVC_EXPORT_SECONDS, self.close)
            block = await asyncio.wrap_future(self._asked())
            if block is not None:
                # Read the next block while this one is sent.
                self._next = self._ask()
                self._handed_at = loop.time()
                self._behind = max(
                    0.0, self._behind - len(block) / settings.SVC_EXPORT_BYTES_PER_SECOND
                )
                self._stall = loop.call_later(STALL_SECONDS - self._behind, self.close)
                return block
        except BaseException:
            self._finish()
            raise
        self._finish()
        raise StopAsyncIteration

    def _finish(self) -> None:
        if self._end_by is not None:
            self._end_by.cancel()
        self.close()

    def close(self) -> None:
        """End the download; thread-safe and idempotent."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
        if self._thread is not None:
            self._thread.submit(self._end)
            self._thread.shutdown(wait=False)
        else:
            self._slot.release()

    def _asked(self) -> Future[bytes | None]:
        if self._next is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="usage-csv")
            self._next = self._ask()
        return self._next

    def _ask(self) -> Future[bytes | None]:
        # Read nothing after close(): a closed generator looks like one that ended.
        if self._closed or self._thread is None:
            raise DownloadEnded("The reader was too slow.")
        return self._thread.submit(self._read)

    def _read(self) -> bytes | None:
        return next(self._blocks, None)

    def _end(self) -> None:
        try:
            self._blocks.close()
        finally:
            connections.close_all()
            self._slot.release()
