"""Notes of admitted requests in the database, for hosts whose disk may vanish with them.

With ``SVC_DURABLE_ADMISSIONS`` a request is dispatched when the note of its admission is committed.
The message that writes the row deletes the note (``usage.rows``). When the process that made it is
dead, another one writes the row (``usage.orphans``).

A process is taken for dead when the lease that it extends has run out by the database's clock. That
can be wrong: a process may be stopped, or cut off, for longer. So a note outlives its closing, and
when the owner writes its row after all, that one replaces the other (``amend``).

PostgreSQL only: a SQLite file is on the disk that may vanish.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec
from django.db import connection, transaction

from usage import records
from usage.models import Admission, AdmissionOwner, Outcome
from usage.receipts import AnyReceipt
from usage.shards import FREE_SHARD
from usage.tables import KINDS, POSTGRESQL_HOUR, Tables

RENEWALS: Final = 8
"""How often in the time of a lease it is extended."""

NOTES: Final = Admission._meta.db_table
OWNERS: Final = AdmissionOwner._meta.db_table

_NO_MORE_REQUESTS: Final = {
    tables: replace(tables, totals={**tables.totals, "requests": "0"}) for tables in KINDS
}
"""What the row of a request adds to the sums that have counted the request."""


class Lease:
    """What a process says of its life. Raises ``django.db.Error``; for the ledger's thread."""

    def __init__(self, seconds: float) -> None:
        self.owner = str(uuid.uuid4())
        self.seconds = seconds

    def extend(self) -> None:
        """Say that this process lives. After a gap of half the lease the series begins anew."""
        with connection.cursor() as cursor:
            cursor.execute(
                f'INSERT INTO "{OWNERS}" AS kept (id, since, alive_until, lease_seconds) '  # noqa: S608
                "VALUES (%(owner)s, clock_timestamp(), "
                "clock_timestamp() + make_interval(secs => %(seconds)s), %(seconds)s) "
                "ON CONFLICT (id) DO UPDATE SET alive_until = excluded.alive_until, "
                "lease_seconds = excluded.lease_seconds, since = CASE WHEN kept.alive_until < "
                "clock_timestamp() + make_interval(secs => %(seconds)s / 2) "
                "THEN excluded.since ELSE kept.since END",
                {"owner": self.owner, "seconds": self.seconds},
            )

    def withdraw(self, request_ids: Sequence[str]) -> None:
        """Delete the notes of requests that were refused after all."""
        Admission.objects.filter(
            request_id__in=request_ids, owner_id=self.owner, closed_at=None
        ).delete()

    def end(self) -> None:
        """Say nothing any more, if no request of this process is left to others."""
        if not Admission.objects.filter(owner_id=self.owner).exists():
            AdmissionOwner.objects.filter(pk=self.owner).delete()


@dataclass(frozen=True, slots=True)
class Notes:
    """Admissions that wait to be noted, and whose they are."""

    receipts: Sequence[AnyReceipt]
    lease: Lease


def note_statement(notes: Notes, literal: bytes) -> bytes:
    """SQL that notes admissions, unless the lease of their owner may run out soon.

    ``literal``: ``noted(notes)`` as a literal of SQL. Answers 1 when they are noted, else 0.
    """
    lease = notes.lease
    return b"".join(
        (
            f"WITH alive AS (SELECT FROM \"{OWNERS}\" WHERE id = '{lease.owner}' "  # noqa: S608
            f"AND alive_until > clock_timestamp() + interval '{lease.seconds / 2} seconds'), "
            f'noted AS (INSERT INTO "{NOTES}" (request_id, owner_id, record) '
            f"SELECT request_id, '{lease.owner}', record FROM jsonb_to_recordset(".encode(),
            literal,
            b"::jsonb) AS note(request_id text, record jsonb) WHERE EXISTS (SELECT FROM alive) "
            b"ON CONFLICT DO NOTHING) SELECT count(*) FROM alive;\n",
        )
    )


def noted(notes: Notes) -> bytes:
    """The JSON of admissions as ``note_statement`` takes it."""
    return msgspec.json.encode(
        [
            {"request_id": each.request_id, "record": msgspec.Raw(records.admission(each))}
            for each in notes.receipts
        ]
    )


def forget_statement(literal: bytes) -> bytes:
    """SQL that deletes the notes of requests, those excepted that somebody has closed.

    ``literal``: an array of request ids as a literal of SQL. Answers how many it deleted.
    """
    return b"".join(
        (
            f'WITH gone AS (DELETE FROM "{NOTES}" WHERE closed_at IS NULL AND request_id = ANY ('.encode(),  # noqa: S608
            literal,
            b") RETURNING 1) SELECT count(*) FROM gone;\n",
        )
    )


def closed_by_others(receipts: Sequence[AnyReceipt]) -> set[str]:
    """The requests of ``receipts`` whose row another process wrote in place of their own."""
    if connection.vendor != "postgresql":
        return set()
    ids = [receipt.request_id for receipt in receipts]
    found = Admission.objects.filter(request_id__in=ids, closed_at__isnull=False)
    return set(found.values_list("request_id", flat=True))


def amend(receipts: Sequence[AnyReceipt]) -> int:
    """Put ``receipts`` in the place of rows that were written because their owner was taken for dead.

    Such a row has no figures, so the sums get all those of the receipt; ``occurred_at`` stays.
    Returns how many were replaced. Raises ``django.db.Error``.
    """
    closed = closed_by_others(receipts)
    return sum(_amend(receipt) for receipt in receipts if receipt.request_id in closed)


def _amend(receipt: AnyReceipt) -> bool:
    tables = next(tables for tables in KINDS if tables.receipt is type(receipt))
    facts = msgspec.structs.asdict(receipt)
    with transaction.atomic():
        note = Admission.objects.filter(request_id=receipt.request_id, closed_at__isnull=False)
        if not note.delete()[0]:
            return False
        row = tables.rows._default_manager.filter(
            request_id=facts.pop("request_id"), outcome=Outcome.INTERRUPTED
        )
        if not row.update(**facts):
            return False
        _add_to_sums(tables, receipt.request_id)
    return True


def _add_to_sums(tables: Tables, request_id: str) -> None:
    row = f'(SELECT * FROM "{tables.row_table}" WHERE request_id = %s) AS amended'  # noqa: S608
    shard = FREE_SHARD if tables.sharded else "0"
    with connection.cursor() as cursor:
        cursor.execute(
            _NO_MORE_REQUESTS[tables].added_up(row, hour=POSTGRESQL_HOUR, shard=shard),
            [request_id],
        )
