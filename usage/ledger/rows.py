"""Writing receipts to the ledger: rows and their sums together, and what becomes of admissions.

A receipt whose ``request_id`` is already there changes nothing, so writing a batch again after an
unclear commit is harmless. Only new rows add to the sums, in the same transaction and in the order
of the sums' keys, so that two writers cannot deadlock.

A row that the database refuses (a constraint, a value or an encoding it does not know) must not
hold up the others (``insert_accepted``). A database that refuses every row, say because a migration
ran ahead of this process, counts as away, and no row is set aside.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

import msgspec
from django.db import DatabaseError, DataError, Error, IntegrityError, connection, transaction

from core.ids import NIL_UUID, request_id
from usage.ledger import postgresql_rows, sqlite_rows
from usage.ledger.admissions import NewAdmissions
from usage.ledger.announcements import announcements
from usage.ledger.late_rows import closed_by_others, committed_as_success
from usage.models import PrunedMonth
from usage.models.statements import KINDS, Tables
from usage.receipts import AnyReceipt, Receipt, SpeechReceipt

BeforeStatement = Callable[[], None]
"""Called before each statement."""

_NIL = str(NIL_UUID)


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
    their row, or an earlier row that theirs replaces (``usage.ledger.late_rows``).

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


class RefusesAllRows(DatabaseError):
    """The database refuses even a minimal row."""


class Inserted(msgspec.Struct):
    """How many rows are new, and which receipts the database refused."""

    new: int = 0
    refused: list[AnyReceipt] = []


def insert_accepted(
    receipts: Sequence[AnyReceipt],
    before_statement: BeforeStatement,
    new_admissions: NewAdmissions | None = None,
    ended: Collection[str] = (),
) -> Inserted:
    """Write ``receipts`` in one batch, or halve it until the refused ones are left out.

    The admissions of the ids in ``ended`` are deleted with their row. Those in ``new_admissions``
    are written in the same transaction, or before it when rows are refused. Raises
    ``django.db.Error`` when the database fails.
    """
    before_statement()
    try:
        if new_admissions is None:
            return Inserted(insert(receipts, ended=ended))
        new, are_admitted = insert_with_admissions(receipts, new_admissions, ended)
        if not are_admitted:
            _insert_admissions(new_admissions, before_statement)
        return Inserted(new)
    except Exception as error:
        if not receipts or not is_refusal(error):
            raise
    if new_admissions is not None:
        _insert_admissions(new_admissions, before_statement)
    before_statement()
    if not _accepts_plain_rows({type(receipt) for receipt in receipts}):
        raise RefusesAllRows
    return _insert_parts(receipts, before_statement, ended)


def _insert_parts(
    receipts: Sequence[AnyReceipt], before_statement: BeforeStatement, ended: Collection[str]
) -> Inserted:
    """Write the halves of a refused batch, recursively."""
    if len(receipts) == 1:
        return Inserted(refused=list(receipts))
    inserted = Inserted()
    middle = len(receipts) // 2
    for half in (receipts[:middle], receipts[middle:]):
        before_statement()
        try:
            inserted.new += insert(half, ended=ended)
        except Exception as error:
            if not is_refusal(error):
                raise
            part = _insert_parts(half, before_statement, ended)
            inserted.new += part.new
            inserted.refused += part.refused
    return inserted


def _insert_admissions(new_admissions: NewAdmissions, before_statement: BeforeStatement) -> None:
    """Write admissions after extending the lease of their owner. Raises ``django.db.Error``."""
    before_statement()
    new_admissions.lease.extend()
    before_statement()
    if not insert_with_admissions((), new_admissions)[1]:
        raise DatabaseError("the lease could not be extended")


def is_refusal(error: Exception) -> bool:
    """Whether a row is at fault. An error that is not the database's comes from a value, too."""
    return isinstance(error, IntegrityError | DataError) or not isinstance(error, Error)


def _accepts_plain_rows(kinds: set[type[AnyReceipt]]) -> bool:
    """Whether the database accepts a row of each of ``kinds``; the rows are rolled back."""
    plain = [receipt for receipt in (_plain_chat(), _plain_speech()) if type(receipt) in kinds]
    try:
        with transaction.atomic():
            insert(plain)
            transaction.set_rollback(True)
    except Exception as error:
        if is_refusal(error):
            return False
        raise
    return True


def heartbeat() -> None:
    """Write something durably. Raises ``django.db.Error`` when the database accepts no rows.

    A connection that opens proves little: on a full disk everything can still be read.
    """
    if not _accepts_plain_rows({Receipt, SpeechReceipt}):
        raise RefusesAllRows
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT pg_logical_emit_message(true, 'svc', 'heartbeat')")
        else:
            # This writes the first page even if the number is the same.
            cursor.execute("PRAGMA user_version")
            (version,) = cursor.fetchone()
            cursor.execute(f"PRAGMA user_version = {int(version)}")


def missing(receipts: Sequence[AnyReceipt]) -> list[AnyReceipt]:
    """Return those of ``receipts`` that have no row, or one that they replace (``late_rows``).

    Raises ``django.db.Error``.
    """
    there: set[str] = set()
    for tables in KINDS:
        ids = [receipt.request_id for receipt in receipts if type(receipt) is tables.receipt]
        if ids:
            found = tables.rows._default_manager.filter(request_id__in=ids)
            there.update(found.values_list("request_id", flat=True))
    there -= closed_by_others(receipts) | committed_as_success(receipts)
    return [receipt for receipt in receipts if receipt.request_id not in there]


def of_pruned_months(receipts: Sequence[AnyReceipt]) -> set[str]:
    """Return the ids of those ``receipts`` that were admitted in a pruned month; speech is not pruned.

    Raises ``django.db.Error``.
    """
    months = list(PrunedMonth.objects.values_list("first_id", "end_id"))
    return {
        each.request_id
        for each in receipts
        if isinstance(each, Receipt)
        and any(begin <= each.request_id < end for begin, end in months)
    }


def _plain_chat() -> Receipt:
    return Receipt(
        **_PLAIN,
        request_id=request_id(),
        model_identifier="plain",
        model_id=_NIL,
        model_version_id=_NIL,
        streamed=False,
        shape="chat",
        input_price_per_mtok=Decimal(0),
        output_price_per_mtok=Decimal(0),
        price_currency="USD",
    )


def _plain_speech() -> SpeechReceipt:
    return SpeechReceipt(
        **_PLAIN,
        request_id=request_id(),
        day=time.strftime("%Y-%m-%d", time.gmtime()),
        voice="plain",
        cloned=False,
        engine="plain",
        response_format="wav",
        transport="http",
    )


_PLAIN: dict[str, Any] = {
    "organization_id": _NIL,
    "api_key_id": _NIL,
    "outcome": "success",
    "http_status": 200,
}
