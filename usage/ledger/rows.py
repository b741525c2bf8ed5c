"""Writing receipts to the ledger: rows and their sums together, and what becomes of admissions.

A receipt whose ``request_id`` is already there changes nothing, so writing a batch again after an
unclear commit is harmless. Only new rows add to the sums, in the same transaction and in the order
of the sums' keys, so that two writers cannot deadlock.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from django.db import connection

from usage.ledger import postgresql_rows, sqlite_rows
from usage.ledger.admissions.lease import NewAdmissions
from usage.ledger.announcements import announcements
from usage.models.statements import KINDS, Tables
from usage.receipts import AnyReceipt


def insert(
    receipts: Sequence[AnyReceipt],
    occurred_at: datetime | None = None,
    *,
    ended: Collection[str] = (),
) -> int:
    """Write ``receipts`` in one transaction, durable when this returns; return how many are new.

    ``occurred_at`` is the moment of writing by default, in whole milliseconds. On PostgreSQL the
    database's clock gives it within the statement, whatever the clock of this host says; on SQLite
    it is read while the write lock is held, and is never before that of an earlier batch.

    ``ended``: ids of requests that may have an admission in the database, which is deleted with
    their row.

    Raises ``django.db.Error``: ``IntegrityError`` or ``DataError`` when a receipt breaks a
    constraint (then none is written), another subclass when the database fails.
    """
    if not receipts:
        return 0
    return _write(receipts, occurred_at, ended, None)[0]


def insert_with_admissions(
    receipts: Sequence[AnyReceipt], new: NewAdmissions, ended: Collection[str] = ()
) -> tuple[int, bool]:
    """Write ``receipts`` and admissions in one transaction.

    Return how many rows are new, and whether the admissions were written: they are not when the
    lease of their owner may run out soon. Raises as ``insert`` does.
    """
    return _write(receipts, None, ended, new)


def _write(
    receipts: Sequence[AnyReceipt],
    occurred_at: datetime | None,
    ended: Collection[str],
    new: NewAdmissions | None,
) -> tuple[int, bool]:
    write = postgresql_rows.write if connection.vendor == "postgresql" else sqlite_rows.write
    admitted = [each for each in receipts if each.request_id in ended] if ended else []
    written = write(_by_kind(receipts), occurred_at, admitted, new)
    if announcements.organizations:
        announcements.announce(receipts)
    return written


def _by_kind(receipts: Sequence[AnyReceipt]) -> list[tuple[Tables, list[AnyReceipt]]]:
    return [
        (tables, batch)
        for tables in KINDS
        if (batch := [each for each in receipts if type(each) is tables.receipt])
    ]
