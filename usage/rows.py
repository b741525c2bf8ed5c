"""The SQL that puts receipts into the ledger: rows and their sums of a whole batch, together.

A receipt whose ``request_id`` is already there changes nothing, so writing a batch again after an
unclear commit is harmless. Sums are added to in the same transaction, only by rows that are new,
and in the order of their keys, so that two writers cannot wait for each other in a circle.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any

import msgspec
from django.db import IntegrityError, connection, transaction

from svc_project.lib.clock import hour_of, now
from svc_project.lib.money import price_units
from usage.models import PrunedMonth
from usage.receipts import AnyReceipt
from usage.tables import KINDS, Tables, listed


def insert(receipts: Sequence[AnyReceipt], occurred_at: datetime | None = None) -> int:
    """Write ``receipts`` in one transaction, durable when this returns; returns how many are new.

    ``occurred_at`` is the moment of writing by default: taken when the database is reached and, on
    SQLite, the write lock is held, so that rows are committed close to the order of their times.

    Raises ``django.db.Error``: ``IntegrityError`` or ``DataError`` when a receipt breaks a
    constraint (then none is written), anything else when the database did not do its part.
    """
    batches = [
        (tables, batch)
        for tables in KINDS
        if (batch := [each for each in receipts if type(each) is tables.receipt])
    ]
    if len(batches) == 1:
        return _insert(*batches[0], occurred_at)
    with transaction.atomic():
        return sum(_insert(tables, batch, occurred_at) for tables, batch in batches)


def _insert(tables: Tables, receipts: Sequence[AnyReceipt], occurred_at: datetime | None) -> int:
    if connection.vendor == "postgresql":
        return _insert_postgresql(tables, receipts, occurred_at)
    return _insert_sqlite(tables, receipts, occurred_at)


def _insert_sqlite(
    tables: Tables, receipts: Sequence[AnyReceipt], occurred_at: datetime | None
) -> int:
    try:
        _write_sqlite(tables, receipts, occurred_at)
    except IntegrityError:
        # Rows that are there already break the primary key; anything else must be told.
        missing = _missing(tables, receipts)
        if len(missing) == len(receipts):
            raise
        if missing:
            _write_sqlite(tables, missing, occurred_at)
        return len(missing)
    return len(receipts)


def _write_sqlite(
    tables: Tables, receipts: Sequence[AnyReceipt], occurred_at: datetime | None
) -> None:
    """Write receipts that are not there yet.

    One JSON parameter and one statement for each table: the interpreter's lock is given up twice
    for a batch, not for every row, and the event loop runs while SQLite works. The statements go
    to the driver as they are, because Django would search them for placeholders every time.
    """
    adapt = connection.ops.adapt_datetimefield_value
    batch = _sqlite_batch(tables, receipts)
    with transaction.atomic(), connection.wrap_database_errors:
        moment = occurred_at or now()
        parameters = {"moment": adapt(moment), "hour": adapt(hour_of(moment)), "batch": batch}
        for statement in _sqlite_statements(tables):
            connection.connection.execute(statement, parameters)


def _missing(tables: Tables, receipts: Sequence[AnyReceipt]) -> list[AnyReceipt]:
    """Those of ``receipts`` that have no row and may have one, each once."""
    by_id = {receipt.request_id: receipt for receipt in receipts}
    rows = tables.rows._default_manager.filter(request_id__in=by_id)
    for request_id in rows.values_list("request_id", flat=True):
        del by_id[request_id]
    # A month that is in an archive takes no row (migration 0007); PostgreSQL leaves it out by itself.
    for first_id, end_id in PrunedMonth.objects.values_list("first_id", "end_id"):
        for request_id in [each for each in by_id if first_id <= each < end_id]:
            del by_id[request_id]
    return list(by_id.values())


def _sqlite_batch(tables: Tables, receipts: Sequence[AnyReceipt]) -> str:
    """Lists of ``receipt_columns`` as Django keeps them on SQLite: a UUID as 32 hex digits."""
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
def _sqlite_statements(tables: Tables) -> tuple[str, str]:
    """Rows, then their sums, from one JSON parameter."""

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
        f'INSERT INTO "{tables.row_table}" ({listed(tables.columns)}) '  # noqa: S608
        f"SELECT {', '.join(map(column, tables.columns))} FROM json_each(:batch)"
    )
    return rows, tables.added_up(receipts, hour=":hour")


@cache
def _postgresql_statement(tables: Tables) -> str:
    """Rows and their sums from one JSON parameter; answers how many rows are new."""
    types = ", ".join(
        f'"{field.attname}" {field.db_type(connection)}' for field in tables.rows._meta.local_fields
    )
    columns = listed(tables.columns)
    return (
        f'WITH inserted AS (INSERT INTO "{tables.row_table}" ({columns}) '  # noqa: S608
        f"SELECT {columns} FROM jsonb_to_recordset(%s::jsonb) AS receipt({types}) "
        f"ON CONFLICT ({listed(tables.identity)}) DO NOTHING RETURNING *), "
        f"summed AS ({tables.added_up('inserted')}) "
        "SELECT count(*) FROM inserted"
    )


def _insert_postgresql(
    tables: Tables, receipts: Sequence[AnyReceipt], occurred_at: datetime | None
) -> int:
    connection.ensure_connection()
    moment = occurred_at or now()
    rows = [_postgresql_row(tables, receipt, moment) for receipt in receipts]
    with connection.cursor() as cursor:
        cursor.execute(_postgresql_statement(tables), [msgspec.json.encode(rows).decode()])
        new: int = cursor.fetchone()[0]
    return new


def _postgresql_row(tables: Tables, receipt: AnyReceipt, moment: datetime) -> dict[str, Any]:
    row = msgspec.structs.asdict(receipt)
    for name in tables.price_columns:
        row[name] = price_units(row[name])
    row["occurred_at"] = moment
    return row
