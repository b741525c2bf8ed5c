"""Writing rows, their sums and admissions on SQLite (``usage.ledger.rows``).

The transaction is the only writer, so nothing is locked here.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Final

import msgspec
from django.db import IntegrityError, connection, transaction

from core.clock import hour_of, now
from core.money import price_units
from usage.ledger.admissions import OWNERS, NewAdmissions, moment
from usage.ledger.journal import records
from usage.ledger.late_rows import replace_earlier
from usage.models import Admission
from usage.models.statements import Tables, column_list
from usage.receipts import AnyReceipt

LOCK_SECONDS: Final = 2.0
"""How long a batch waits for the write lock; its rows are in the journal long before."""

_MILLISECOND = timedelta(milliseconds=1)


def write(
    batches: Sequence[tuple[Tables, Sequence[AnyReceipt]]],
    occurred_at: datetime | None,
    ended: Sequence[AnyReceipt],
    new: NewAdmissions | None,
) -> tuple[int, bool]:
    """Write everything in one transaction; ``ended`` are receipts whose admission is deleted.

    Return how many rows are new, and whether the admissions ``new`` were written. Raises
    ``django.db.Error``.
    """
    connection.ensure_connection()
    connection.connection.execute(f"PRAGMA busy_timeout = {LOCK_SECONDS * 1000:.0f}")
    if len(batches) == 1 and not ended and new is None:
        return _insert(*batches[0], occurred_at), False
    with transaction.atomic():
        are_admitted = new is not None and _admit(new)
        _end_admissions(ended)
        rows = sum(_insert(tables, batch, occurred_at) for tables, batch in batches)
    return rows, are_admitted


def _admit(new: NewAdmissions) -> bool:
    """Insert admissions, unless the lease of their owner may run out soon."""
    with connection.cursor() as cursor:
        cursor.execute(
            f'SELECT 1 FROM "{OWNERS}" WHERE id = %s '  # noqa: S608
            f"AND alive_until > {moment('%s / 2')}",
            [new.lease.key, new.lease.seconds],
        )
        if cursor.fetchone() is None:
            return False
    Admission.objects.bulk_create(
        [
            Admission(
                request_id=each.request_id,
                owner_id=new.lease.owner,
                record=msgspec.json.decode(records.admission(each)),
            )
            for each in new.receipts
        ],
        ignore_conflicts=True,
    )
    return True


def _end_admissions(ended: Sequence[AnyReceipt]) -> None:
    """Delete the admissions of ``ended``, except those that another process has closed."""
    if ended:
        ids = [receipt.request_id for receipt in ended]
        gone = Admission.objects.filter(request_id__in=ids, closed_at=None).delete()[0]
        if gone < len(ids):
            replace_earlier(ended)


def _insert(tables: Tables, receipts: Sequence[AnyReceipt], occurred_at: datetime | None) -> int:
    try:
        _insert_missing(tables, receipts, occurred_at)
    except IntegrityError:
        # Existing rows violate the primary key; any other violation must be raised.
        missing = _missing(tables, receipts)
        if len(missing) == len(receipts):
            raise
        if missing:
            _insert_missing(tables, missing, occurred_at)
        return len(missing)
    return len(receipts)


def _insert_missing(
    tables: Tables, receipts: Sequence[AnyReceipt], occurred_at: datetime | None
) -> None:
    """Write receipts that have no row yet.

    One JSON parameter and one statement per table: the GIL is released twice for a batch, not for
    every row, and the event loop runs while SQLite works.
    """
    adapt = connection.ops.adapt_datetimefield_value
    batch = _encoded(tables, receipts)
    with transaction.atomic(), connection.wrap_database_errors:
        moment = occurred_at or _stamps.take()
        parameters = {"moment": adapt(moment), "hour": adapt(hour_of(moment)), "batch": batch}
        for statement in _statements(tables):
            connection.connection.execute(statement, parameters)


class _Stamps:
    """Timestamps of batches, each read while the write lock is held; they never go backwards.

    While the clock has been set back, each is the latest plus a millisecond, so that the export's
    cursors, which have passed the latest, miss no row.
    """

    def __init__(self) -> None:
        self._latest: datetime | None = None

    def take(self) -> datetime:
        moment = now()
        if self._latest is not None and moment < self._latest:
            moment = self._latest + _MILLISECOND
        self._latest = moment
        return moment


_stamps = _Stamps()


def _missing(tables: Tables, receipts: Sequence[AnyReceipt]) -> list[AnyReceipt]:
    """Return those of ``receipts`` that have no row, each once."""
    by_id = {receipt.request_id: receipt for receipt in receipts}
    rows = tables.rows._default_manager.filter(request_id__in=by_id)
    for request_id in rows.values_list("request_id", flat=True):
        del by_id[request_id]
    return list(by_id.values())


def _encoded(tables: Tables, receipts: Sequence[AnyReceipt]) -> str:
    """JSON lists of ``receipt_columns`` as Django stores them on SQLite: a UUID as 32 hex digits."""
    uuids = [tables.receipt_columns.index(name) for name in tables.uuid_columns]
    prices = [tables.receipt_columns.index(name) for name in tables.price_columns]
    rows = []
    for receipt in receipts:
        values = list(tables.receipt_values(receipt))
        for index in uuids:
            values[index] = values[index].replace("-", "")
        for index in prices:
            values[index] = price_units(values[index])
        rows.append(values)
    return msgspec.json.encode(rows).decode()


@cache
def _statements(tables: Tables) -> tuple[str, str]:
    """SQL that inserts rows, then SQL that adds their sums, from one JSON parameter."""

    def column(name: str) -> str:
        if name == "occurred_at":
            return ":moment"
        return f"json_extract(value, '$[{tables.receipt_columns.index(name)}]')"

    read = [*(name for name in tables.key if name != "hour"), *tables.summed]
    receipts = (
        "(SELECT "  # noqa: S608  # names are ours
        + ", ".join(f'{column(name)} AS "{name}"' for name in read)
        + " FROM json_each(:batch)) AS receipt"
    )
    rows = (
        f'INSERT INTO "{tables.row_table}" ({column_list(tables.columns)}) '  # noqa: S608
        f"SELECT {', '.join(map(column, tables.columns))} FROM json_each(:batch)"
    )
    return rows, tables.add_to_sums(receipts, hour=":hour")
