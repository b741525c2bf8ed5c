"""The lease of a process that has admissions in the database.

A request is admitted in the database when the journal cannot answer for it: when its disk may
vanish with the host (``SVC_DURABLE_ADMISSIONS``), or when it takes no record. It is dispatched when
its admission is committed, and the transaction that writes its row deletes the admission. When the
process that made it is dead, another process writes the row (``usage.ledger.admissions.orphans``).

A process is taken for dead when its lease has run out by the database's clock. That can be wrong: a
process may be suspended, or cut off, for longer. So a closed admission is kept, and when its owner
writes the row after all, that row replaces the other (``usage.ledger.admissions.late_rows``).
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import connection

from usage.models import Admission, AdmissionOwner
from usage.receipts import AnyReceipt

RENEWALS: Final = 8
"""How many times a lease is extended within its duration."""

ADMISSIONS: Final = Admission._meta.db_table
OWNERS: Final = AdmissionOwner._meta.db_table


def moment(after: str = "0") -> str:
    """SQL of the database's time, ``after`` (SQL of a number) seconds from now."""
    if connection.vendor == "postgresql":
        return f"(clock_timestamp() + make_interval(secs => {after}))"
    return f"datetime('now', ({after}) || ' seconds')"


class Lease:
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
    lease: Lease
