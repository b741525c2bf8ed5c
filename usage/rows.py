"""The SQL that puts receipts into the ledger: rows and roll-ups of a whole batch, together.

A receipt whose ``request_id`` is already there changes nothing, so writing a batch again after an
unclear commit is harmless. Roll-ups are added to in the same transaction, only by rows that are
new, and in the order of their keys, so that two writers cannot wait for each other in a circle.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import Any

import msgspec
from django.db import IntegrityError, connection, transaction

from svc_project.lib.clock import hour_of, now
from svc_project.lib.money import price_units
from usage.models import UsageRollup, UsageRow
from usage.receipts import Receipt

_ROWS = UsageRow._meta.db_table
_ROLLUPS = UsageRollup._meta.db_table
_COLUMNS = [field.attname for field in UsageRow._meta.local_fields]
_RECEIPT_COLUMNS = [name for name in _COLUMNS if name != "occurred_at"]
_UUID_COLUMNS = ("organization_id", "api_key_id", "model_id", "model_version_id")
_UUID_PLACES = [_RECEIPT_COLUMNS.index(name) for name in _UUID_COLUMNS]
_PRICE_COLUMNS = ("input_price_per_mtok", "output_price_per_mtok")
_PRICE_PLACES = [_RECEIPT_COLUMNS.index(name) for name in _PRICE_COLUMNS]
_receipt_values = attrgetter(*_RECEIPT_COLUMNS)

ROLLUP_KEY = tuple(field.attname for field in UsageRollup._meta.pk_fields)
SUMMED = (
    "backend_reported_input_tokens",
    "backend_reported_output_tokens",
    "backend_reported_reasoning_tokens",
    "generated_output_tokens",
    "delivered_output_tokens",
    "svc_counted_input_tokens",
    "svc_counted_output_tokens",
)
ROLLUP_SUMS = ("requests", *SUMMED, "svc_counted_requests")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


_ADD = ", ".join(f'"{name}" = "{_ROLLUPS}"."{name}" + excluded."{name}"' for name in ROLLUP_SUMS)
_ROLLUP_CONFLICT = f"ON CONFLICT ({_listed(ROLLUP_KEY)}) DO UPDATE SET {_ADD}"


def insert(receipts: Sequence[Receipt], occurred_at: datetime | None = None) -> int:
    """Write ``receipts`` in one transaction, durable when this returns; returns how many are new.

    ``occurred_at`` is the moment of writing by default: taken when the database is reached and, on
    SQLite, the write lock is held, so that rows are committed close to the order of their times.

    Raises ``django.db.Error``: ``IntegrityError`` or ``DataError`` when a receipt breaks a
    constraint (then none is written), anything else when the database did not do its part.
    """
    if connection.vendor == "postgresql":
        return _insert_postgresql(receipts, occurred_at)
    return _insert_sqlite(receipts, occurred_at)


def _values(receipt: Receipt) -> dict[str, Any]:
    values = msgspec.structs.asdict(receipt)
    values["input_price_per_mtok"] = price_units(receipt.input_price_per_mtok)
    values["output_price_per_mtok"] = price_units(receipt.output_price_per_mtok)
    return values


def _insert_sqlite(receipts: Sequence[Receipt], occurred_at: datetime | None) -> int:
    try:
        _write_sqlite(receipts, occurred_at)
    except IntegrityError:
        # Rows that are there already break the primary key; anything else must be told.
        missing = _missing(receipts)
        if len(missing) == len(receipts):
            raise
        _write_sqlite(missing, occurred_at)
        return len(missing)
    return len(receipts)


def _write_sqlite(receipts: Sequence[Receipt], occurred_at: datetime | None) -> None:
    """Write receipts that are not there yet.

    One JSON parameter and one statement for each table: the interpreter's lock is given up twice
    for a batch, not for every row, and the event loop runs while SQLite works. The statements go
    to the driver as they are, because Django would search them for placeholders every time.
    """
    adapt = connection.ops.adapt_datetimefield_value
    batch = msgspec.json.encode([_sqlite_row(receipt) for receipt in receipts]).decode()
    with transaction.atomic(), connection.wrap_database_errors:
        moment = occurred_at or now()
        connection.connection.execute(_SQLITE_ROWS, (adapt(moment), batch))
        connection.connection.execute(_SQLITE_ROLLUPS, (adapt(hour_of(moment)), batch))


def _missing(receipts: Sequence[Receipt]) -> list[Receipt]:
    """Those of ``receipts`` that have no row, each once."""
    by_id = {receipt.request_id: receipt for receipt in receipts}
    there = UsageRow.objects.filter(request_id__in=by_id).values_list("request_id", flat=True)
    for request_id in there:
        del by_id[request_id]
    return list(by_id.values())


def _sqlite_row(receipt: Receipt) -> list[Any]:
    """The values of ``_RECEIPT_COLUMNS`` as Django keeps them on SQLite: a UUID as 32 hex digits."""
    values = list(_receipt_values(receipt))
    for index in _UUID_PLACES:
        values[index] = values[index].replace("-", "")
    for index in _PRICE_PLACES:
        values[index] = price_units(values[index])
    return values


def _sqlite_column(name: str) -> str:
    if name == "occurred_at":
        return "?"
    return f"json_extract(value, '$[{_RECEIPT_COLUMNS.index(name)}]')"


def rollup_select(source: str, hour: str = "date_trunc('hour', occurred_at, 'UTC')") -> str:
    """SQL of the roll-ups of the rows in ``source``, a table or the name of a query.

    ``hour``: SQL of a row's hour; PostgreSQL's by default.
    """
    keys = ", ".join(hour if name == "hour" else f'"{name}"' for name in ROLLUP_KEY)
    figures = ", ".join(f'coalesce(sum("{name}"), 0)' for name in SUMMED)
    numbers = ", ".join(str(number) for number in range(1, len(ROLLUP_KEY) + 1))
    return (
        f'SELECT {keys}, count(*), {figures}, count("svc_counted_input_tokens") '  # noqa: S608
        f"FROM {source} GROUP BY {numbers} ORDER BY {numbers}"
    )


_SQLITE_ROWS = (
    f'INSERT INTO "{_ROWS}" ({_listed(_COLUMNS)}) '  # noqa: S608  # names are ours
    f"SELECT {', '.join(map(_sqlite_column, _COLUMNS))} FROM json_each(?)"
)
_SUMMED_UP = (*(name for name in ROLLUP_KEY if name != "hour"), *SUMMED)
_SQLITE_RECEIPTS = (
    "(SELECT "  # noqa: S608  # names are ours
    + ", ".join(f'{_sqlite_column(name)} AS "{name}"' for name in _SUMMED_UP)
    + " FROM json_each(?)) AS receipt"
)
_SQLITE_ROLLUPS = (
    f'INSERT INTO "{_ROLLUPS}" ({_listed((*ROLLUP_KEY, *ROLLUP_SUMS))}) '
    f"{rollup_select(_SQLITE_RECEIPTS, hour='?')} {_ROLLUP_CONFLICT}"
)


@cache
def _postgresql_statement() -> str:
    """Rows and their roll-ups from one JSON parameter; answers how many rows are new."""
    types = ", ".join(
        f'"{field.attname}" {field.db_type(connection)}' for field in UsageRow._meta.local_fields
    )
    columns = _listed(_COLUMNS)
    return (
        f'WITH inserted AS (INSERT INTO "{_ROWS}" ({columns}) '  # noqa: S608  # names are ours
        f"SELECT {columns} FROM jsonb_to_recordset(%s::jsonb) AS receipt({types}) "
        'ON CONFLICT ("request_id", "organization_id") DO NOTHING RETURNING *), '
        f'rolled AS (INSERT INTO "{_ROLLUPS}" ({_listed((*ROLLUP_KEY, *ROLLUP_SUMS))}) '
        f"{rollup_select('inserted')} {_ROLLUP_CONFLICT}) "
        "SELECT count(*) FROM inserted"
    )


def _insert_postgresql(receipts: Sequence[Receipt], occurred_at: datetime | None) -> int:
    connection.ensure_connection()
    moment = occurred_at or now()
    rows = [{**_values(receipt), "occurred_at": moment} for receipt in receipts]
    with connection.cursor() as cursor:
        cursor.execute(_postgresql_statement(), [msgspec.json.encode(rows).decode()])
        new: int = cursor.fetchone()[0]
    return new
