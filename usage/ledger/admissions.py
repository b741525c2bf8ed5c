"""The admissions of one process in the database, and the lease that shows that it is alive.

A request is admitted in the database when the journal cannot answer for it: when its disk may
vanish with the host (``SVC_DURABLE_ADMISSIONS``), or when it takes no record. It is dispatched when
its admission is committed, and the transaction that writes its row deletes the admission. When the
process that made it is dead, another process writes the row (``usage.ledger.orphans``).

A process is taken for dead when its lease has run out by the database's clock. That can be wrong: a
process may be suspended, or cut off, for longer. So a closed admission is kept, and when its owner
writes the row after all, that row replaces the other (``usage.ledger.late_rows``).
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from django.conf import settings
from django.db import connection

from core.errors import ServerOverloaded
from usage.models import Admission, AdmissionOwner
from usage.receipts import AnyReceipt

RENEWALS: Final = 8
"""How many times a lease is extended within its duration."""

COMMIT_SECONDS: Final = 2.0
"""How long a request waits for its admission to be committed before it is refused."""

_UNCLEAR_SECONDS: Final = 30.0
"""A statement whose answer was lost has ended after this long: the database bounds its time."""

ADMISSIONS: Final = Admission._meta.db_table
OWNERS: Final = AdmissionOwner._meta.db_table


def moment(after: str = "0") -> str:
    """SQL of the database's time, ``after`` (SQL of a number) seconds from now."""
    if connection.vendor == "postgresql":
        return f"(clock_timestamp() + make_interval(secs => {after}))"
    return f"datetime('now', ({after}) || ' seconds')"


class OwnerLease:
    """The lease that shows that a process is alive, for the ledger's thread. Methods raise
    ``django.db.Error``."""

    def __init__(self, seconds: float) -> None:
        self.owner = uuid.uuid4()
        self.seconds = seconds
        self._is_known = False

    @property
    def key(self) -> Any:
        """``owner`` as a parameter of a statement."""
        return AdmissionOwner._meta.pk.get_db_prep_value(self.owner, connection)

    def extend(self) -> None:
        """Extend the lease. After a gap of more than half a lease, ``since`` starts again."""
        self._is_known = True
        with connection.cursor() as cursor:
            cursor.execute(
                f'INSERT INTO "{OWNERS}" AS kept (id, since, alive_until, lease_seconds) '  # noqa: S608
                f"VALUES (%(owner)s, {moment()}, {moment('%(seconds)s')}, %(seconds)s) "
                "ON CONFLICT (id) DO UPDATE SET alive_until = excluded.alive_until, "
                "lease_seconds = excluded.lease_seconds, since = CASE WHEN kept.alive_until < "
                f"{moment('%(seconds)s / 2')} THEN excluded.since ELSE kept.since END",
                {"owner": self.key, "seconds": self.seconds},
            )

    def withdraw(self, request_ids: Sequence[str]) -> None:
        """Delete the admissions of requests that were refused after all."""
        Admission.objects.filter(
            request_id__in=request_ids, owner_id=self.owner, closed_at=None
        ).delete()

    def end(self) -> None:
        """Delete the lease, unless admissions of this process are left for others to close."""
        if self._is_known and not Admission.objects.filter(owner_id=self.owner).exists():
            AdmissionOwner.objects.filter(pk=self.owner).delete()


@dataclass(frozen=True, slots=True)
class NewAdmissions:
    """Admissions to be written, and the lease of their owner."""

    receipts: Sequence[AnyReceipt]
    lease: OwnerLease


class _Pending(msgspec.Struct, eq=False):
    receipt: AnyReceipt
    durable: asyncio.Future[None]


def not_recordable() -> ServerOverloaded:
    """The refusal of a request whose row could be stored nowhere: neither on disk nor in the database."""
    return ServerOverloaded(
        "Usage cannot be recorded at the moment, so no request is taken. Try again shortly."
    )


class AdmissionQueue:
    """The admissions of one process; belongs to one event loop.

    ``wake`` is called when an admission or a withdrawal is to be written, or the lease extended.
    With ``is_always_used`` the process keeps a lease all the time, else while it needs one.
    """

    def __init__(self, wake: Callable[[], None], *, is_always_used: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self._wake = wake
        self.is_always_used = is_always_used
        self._watches_others = False
        self._held: set[str] = set()
        self._waiting: list[_Pending] = []
        self._writing: list[_Pending] = []
        self._withdrawn: dict[str, float] = {}
        self.lease_due = is_always_used
        """Whether the lease should be extended with the next job."""
        self._renew_every = settings.SVC_ADMISSION_LEASE_SECONDS / RENEWALS
        self._renewal = self._loop.call_later(self._renew_every, self._renew)

    async def commit(self, receipt: AnyReceipt) -> None:
        """Return when the admission is committed. Raises ``ServerOverloaded`` when it cannot be.

        A refused or cancelled request may have been committed all the same, so it is withdrawn.
        """
        entry = _Pending(receipt, self._loop.create_future())
        self._held.add(receipt.request_id)
        self._waiting.append(entry)
        self._wake()
        try:
            async with asyncio.timeout(COMMIT_SECONDS):
                await entry.durable
        except TimeoutError:
            self._withdraw(entry)
            raise not_recordable() from None
        except BaseException:
            self._withdraw(entry)
            raise

    @property
    def is_pending(self) -> bool:
        """Whether there is an admission to write."""
        return bool(self._waiting)

    @property
    def is_awaited(self) -> bool:
        """Whether a request waits for its admission."""
        return bool(self._waiting or self._writing)

    @property
    def running(self) -> int:
        """Requests that may have an admission in the database and have no row there."""
        return len(self._held)

    def held_of(self, request_ids: Iterable[str]) -> frozenset[str]:
        """Those of ``request_ids`` that may have an admission in the database."""
        return frozenset(self._held.intersection(request_ids)) if self._held else frozenset()

    def ended(self, request_ids: Iterable[str]) -> None:
        """Drop requests whose row is in the database: their admission was deleted with it."""
        if self._held:
            self._held.difference_update(request_ids)

    def take(self, at_most: int) -> list[AnyReceipt]:
        """Take the next admissions to write; ``written`` or ``failed`` must follow."""
        waiting = [entry for entry in self._waiting if not entry.durable.done()]
        self._writing, self._waiting = waiting[:at_most], waiting[at_most:]
        return [entry.receipt for entry in self._writing]

    def written(self) -> None:
        """Let the requests run whose admissions were taken and are now committed."""
        writing, self._writing = self._writing, []
        for entry in writing:
            if not entry.durable.done():
                entry.durable.set_result(None)

    def failed(self) -> None:
        """Refuse all waiting requests, because the database failed."""
        held = [*self._writing, *self._waiting]
        self._writing, self._waiting = [], []
        for entry in held:
            if not entry.durable.done():
                entry.durable.set_exception(not_recordable())

    def withdrawals(self) -> list[str]:
        """Ids of the requests whose admission is to be deleted, if it exists."""
        return list(self._withdrawn)

    def drop_withdrawals(self, request_ids: list[str], began: float) -> None:
        """Drop withdrawals that were executed; ``began``: when, on the monotonic clock.

        A statement whose answer was lost may still run, so recent withdrawals are executed again.
        """
        for request_id in request_ids:
            if began - self._withdrawn.get(request_id, began) > _UNCLEAR_SECONDS:
                del self._withdrawn[request_id]

    def watch_others(self, *, there_are_some: bool) -> None:
        """Keep a lease while other processes have admissions: it may have to close them."""
        if there_are_some and not self._watches_others:
            self.lease_due = True
        self._watches_others = there_are_some

    def close(self) -> None:
        """Refuse all waiting requests and extend the lease no more."""
        self._renewal.cancel()
        self.failed()

    def _renew(self) -> None:
        """Extend the lease, periodically, if it is needed."""
        self._renewal = self._loop.call_later(self._renew_every, self._renew)
        if self.is_always_used or self._watches_others or self._held or self._withdrawn:
            self.lease_due = True
            self._wake()

    def _withdraw(self, entry: _Pending) -> None:
        entry.durable.cancel()
        self._held.discard(entry.receipt.request_id)
        if entry in self._waiting:
            self._waiting.remove(entry)
            return
        self._withdrawn[entry.receipt.request_id] = time.monotonic()
        self.lease_due = True
        self._wake()
