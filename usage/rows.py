"""The SQL that puts receipts into the ledger: rows and roll-ups of a whole batch, together.

A receipt whose ``request_id`` is already there changes nothing, so writing a batch again after an
unclear commit is harmless. Roll-ups are added to in the same transaction, only by rows that are
new, and in the order of their keys, so that two writers cannot wait for each other in a circle.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
from django.db import connection, transaction

from svc_project.lib.money import price_units
from usage.models import UsageRollup, UsageRow
from usage.receipts import Receipt

_ROWS = UsageRow._meta.db_table
_ROLLUPS = UsageRollup._meta.db_table
_COLUMNS = [field.attname for field in UsageRow._meta.local_fields]
_UUID_COLUMNS = ("organization_id", "api_key_id", "model_id", "model_version_id")

ROLLUP_KEY = (
    "organization_id",
    "hour",
    "api_key_id",
    "model_id",
    "model_identifier",
    "price_currency",
    "input_price_per_mtok",
    "output_price_per_mtok",
)
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


def insert(receipts: Sequence[Receipt], occurred_at: datetime) -> int:
    """Write ``receipts`` in one transaction, durable when this returns; returns how many are new.

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


def _insert_sqlite(receipts: Sequence[Receipt], occurred_at: datetime) -> int:
    moment = connection.ops.adapt_datetimefield_value(occurred_at)
    with transaction.atomic(), connection.cursor() as cursor:
        # The transaction is the only writer (BEGIN IMMEDIATE): what is looked up stays true.
        there = set(
            UsageRow.objects.filter(
                request_id__in=[receipt.request_id for receipt in receipts]
            ).values_list("request_id", flat=True)
        )
        rows = []
        for receipt in receipts:
            if receipt.request_id in there:
                continue
            there.add(receipt.request_id)
            values = _values(receipt)
            values["occurred_at"] = moment
            for name in _UUID_COLUMNS:
                # Django keeps a UUID as 32 hex digits on SQLite.
                values[name] = values[name].replace("-", "")
            rows.append(values)
        cursor.executemany(
            f'INSERT INTO "{_ROWS}" ({_listed(_COLUMNS)}) '  # noqa: S608  # names are ours
            f"VALUES ({', '.join(['%s'] * len(_COLUMNS))})",
            [[row[name] for name in _COLUMNS] for row in rows],
        )
        _add_sqlite(cursor, rows, occurred_at)
    return len(rows)


def _add_sqlite(cursor: Any, rows: Sequence[dict[str, Any]], occurred_at: datetime) -> None:
    hour = connection.ops.adapt_datetimefield_value(
        occurred_at.replace(minute=0, second=0, microsecond=0)
    )
    sums: defaultdict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0] * len(ROLLUP_SUMS))
    for row in rows:
        key = tuple(hour if name == "hour" else row[name] for name in ROLLUP_KEY)
        counted = row["svc_counted_input_tokens"] is not None
        for index, figure in enumerate((1, *(row[name] or 0 for name in SUMMED), int(counted))):
            sums[key][index] += figure
    names = (*ROLLUP_KEY, *ROLLUP_SUMS)
    cursor.executemany(
        f'INSERT INTO "{_ROLLUPS}" ({_listed(names)}) '  # noqa: S608  # names are ours
        f"VALUES ({', '.join(['%s'] * len(names))}) {_ROLLUP_CONFLICT}",
        [[*key, *figures] for key, figures in sums.items()],
    )


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


def _insert_postgresql(receipts: Sequence[Receipt], occurred_at: datetime) -> int:
    types = ", ".join(
        f'"{field.attname}" {field.db_type(connection)}' for field in UsageRow._meta.local_fields
    )
    rows = [{**_values(receipt), "occurred_at": occurred_at} for receipt in receipts]
    columns = _listed(_COLUMNS)
    with connection.cursor() as cursor:
        cursor.execute(
            f'WITH inserted AS (INSERT INTO "{_ROWS}" ({columns}) '  # noqa: S608  # names are ours
            f"SELECT {columns} FROM jsonb_to_recordset(%s::jsonb) AS receipt({types}) "
            'ON CONFLICT ("request_id", "organization_id") DO NOTHING RETURNING *), '
            f'rolled AS (INSERT INTO "{_ROLLUPS}" ({_listed((*ROLLUP_KEY, *ROLLUP_SUMS))}) '
            f"{rollup_select('inserted')} {_ROLLUP_CONFLICT}) "
            "SELECT count(*) FROM inserted",
            [msgspec.json.encode(rows).decode()],
        )
        new: int = cursor.fetchone()[0]
    return new
