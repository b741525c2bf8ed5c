"""Batches of receipts on their way into the database, whatever it thinks of some of them.

A row that the database refuses (a constraint, a column it does not know the value for, an
encoding) must not hold up the others. A database that refuses every row is another matter: a
migration ran ahead of this process, say. It counts as away, and nothing is sorted out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import msgspec
from django.db import DatabaseError, DataError, Error, IntegrityError, connection, transaction

from svc_project.lib.ids import NIL_UUID, request_id
from usage import rows
from usage.admissions import Notes, closed_by_others
from usage.receipts import AnyReceipt, Receipt, SpeechReceipt
from usage.tables import KINDS

Asking = Callable[[], None]
"""Called before each statement."""

_NIL = str(NIL_UUID)


class TakesNoRows(DatabaseError):
    """The database refuses even a row that is as plain as can be."""


class Inserted(msgspec.Struct):
    """How many rows are new, and which receipts the database refuses."""

    new: int = 0
    refused: list[AnyReceipt] = []


def insert(receipts: Sequence[AnyReceipt], asking: Asking, notes: Notes | None = None) -> Inserted:
    """Write ``receipts`` in one batch, or in the fewest that leave out those that are refused.

    ``notes`` are noted in the same transaction, or, when rows are refused, before them. Raises
    ``django.db.Error`` when the database does not do its part.
    """
    asking()
    try:
        if notes is None:
            return Inserted(rows.insert(receipts))
        new, noted = rows.insert_and_note(receipts, notes)
        if not noted:
            _note(notes, asking)
        return Inserted(new)
    except Exception as error:
        if not receipts or not is_refusal(error):
            raise
    if notes is not None:
        _note(notes, asking)
    asking()
    if not _takes_plain_rows({type(receipt) for receipt in receipts}):
        raise TakesNoRows
    return _insert_parts(receipts, asking)


def _insert_parts(receipts: Sequence[AnyReceipt], asking: Asking) -> Inserted:
    """Write the halves of a batch that was refused, and theirs."""
    if len(receipts) == 1:
        return Inserted(refused=list(receipts))
    inserted = Inserted()
    middle = len(receipts) // 2
    for half in (receipts[:middle], receipts[middle:]):
        asking()
        try:
            inserted.new += rows.insert(half)
        except Exception as error:
            if not is_refusal(error):
                raise
            part = _insert_parts(half, asking)
            inserted.new += part.new
            inserted.refused += part.refused
    return inserted


def _note(notes: Notes, asking: Asking) -> None:
    """Note admissions after the lease of their owner was extended. Raises ``django.db.Error``."""
    asking()
    notes.lease.extend()
    asking()
    if not rows.insert_and_note((), notes)[1]:
        raise DatabaseError("the lease could not be extended")


def is_refusal(error: Exception) -> bool:
    """Whether the fault is in a row. What is no error of a database comes from a value, too."""
    return isinstance(error, IntegrityError | DataError) or not isinstance(error, Error)


def _takes_plain_rows(kinds: set[type[AnyReceipt]]) -> bool:
    """Whether the database would take a row of each of ``kinds``; it is not kept."""
    plain = [receipt for receipt in (_plain_chat(), _plain_speech()) if type(receipt) in kinds]
    try:
        with transaction.atomic():
            rows.insert(plain)
            transaction.set_rollback(True)
    except Exception as error:
        if is_refusal(error):
            return False
        raise
    return True


def beat() -> None:
    """Write something, durably. Raises ``django.db.Error`` when the database takes no rows now.

    A connection that opens proves little: on a full disk everything can still be read.
    """
    if not _takes_plain_rows({Receipt, SpeechReceipt}):
        raise TakesNoRows
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT pg_logical_emit_message(true, 'svc', 'heartbeat')")
        else:
            # The first page is written, whether the number is another or not.
            cursor.execute("PRAGMA user_version")
            (version,) = cursor.fetchone()
            cursor.execute(f"PRAGMA user_version = {int(version)}")


def missing(receipts: Sequence[AnyReceipt]) -> list[AnyReceipt]:
    """Those of ``receipts`` that have no row, or one that was written because their process was
    taken for dead. Raises ``django.db.Error``."""
    there: set[str] = set()
    for tables in KINDS:
        ids = [receipt.request_id for receipt in receipts if type(receipt) is tables.receipt]
        if ids:
            found = tables.rows._default_manager.filter(request_id__in=ids)
            there.update(found.values_list("request_id", flat=True))
    there -= closed_by_others(receipts)
    return [receipt for receipt in receipts if receipt.request_id not in there]


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
