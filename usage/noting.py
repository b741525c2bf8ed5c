"""Requests that wait until the note of their admission is in the database (``usage.admissions``)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

import msgspec

from svc_project.lib.errors import ServerOverloaded
from usage.receipts import AnyReceipt

NOTE_SECONDS: Final = 2.0
"""How long a request waits for its note. No other place will do, so it is refused then."""

_UNCLEAR_SECONDS: Final = 30.0
"""A statement whose answer was lost has ended by then: the database bounds its time."""


class _Note(msgspec.Struct, eq=False):
    receipt: AnyReceipt
    durable: asyncio.Future[None]


class Noting:
    """The admissions of one process on their way; belongs to one event loop.

    ``wake`` is called when there is something to write.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._waiting: list[_Note] = []
        self._writing: list[_Note] = []
        self._withdrawn: dict[str, float] = {}
        self.lease_due = True
        """Whether the lease should be extended with the next job."""

    async def note(self, receipt: AnyReceipt) -> None:
        """Return when the note is committed. Raises ``ServerOverloaded`` when it cannot be.

        A request that was refused, or given up, may have a note all the same: it is withdrawn.
        """
        entry = _Note(receipt, asyncio.get_running_loop().create_future())
        self._waiting.append(entry)
        self._wake()
        try:
            async with asyncio.timeout(NOTE_SECONDS):
                await entry.durable
        except TimeoutError:
            self._withdraw(entry)
            raise ServerOverloaded from None
        except BaseException:
            self._withdraw(entry)
            raise

    @property
    def waits(self) -> bool:
        """Whether there is a note to be written."""
        return bool(self._waiting)

    @property
    def is_awaited(self) -> bool:
        """Whether a request waits for the database."""
        return bool(self._waiting or self._writing)

    def take(self, at_most: int) -> list[AnyReceipt]:
        """The admissions that are written now; ``written`` or ``failed`` follows."""
        waiting = [entry for entry in self._waiting if not entry.durable.done()]
        self._writing, self._waiting = waiting[:at_most], waiting[at_most:]
        return [entry.receipt for entry in self._writing]

    def written(self) -> None:
        """The notes that were taken are committed."""
        writing, self._writing = self._writing, []
        for entry in writing:
            if not entry.durable.done():
                entry.durable.set_result(None)

    def failed(self) -> None:
        """The database does not do its part: nobody waits any longer."""
        held = [*self._writing, *self._waiting]
        self._writing, self._waiting = [], []
        for entry in held:
            if not entry.durable.done():
                entry.durable.set_exception(ServerOverloaded())

    def withdrawn(self) -> list[str]:
        """Requests whose note is to be deleted, should it be there."""
        return list(self._withdrawn)

    def withdrew(self, request_ids: list[str], began: float) -> None:
        """Those are deleted; ``began``: when, on the monotonic clock.

        A statement of which nothing was heard may still be under way, so young ones are deleted
        once more.
        """
        for request_id in request_ids:
            if began - self._withdrawn.get(request_id, began) > _UNCLEAR_SECONDS:
                del self._withdrawn[request_id]

    def _withdraw(self, entry: _Note) -> None:
        entry.durable.cancel()
        if entry in self._waiting:
            self._waiting.remove(entry)
            return
        self._withdrawn[entry.receipt.request_id] = time.monotonic()
        self.lease_due = True
        self._wake()
