"""The SQL that puts receipts into the ledger: one statement for a whole batch.

A receipt whose ``request_id`` is already there changes nothing, so writing a batch again after an
unclear commit is harmless.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
from django.db import connection, transaction

from svc_project.lib.money import price_units
from usage.models import UsageRow
from usage.receipts import Receipt

_FIELDS = [field.attname for field in UsageRow._meta.local_fields]
_TABLE = UsageRow._meta.db_table
_COLUMNS = ", ".join(f'"{name}"' for name in _FIELDS)


def insert(receipts: Sequence[Receipt], occurred_at: datetime) -> None:
    """Write ``receipts`` in one transaction, durable when this returns.

    Raises ``django.db.Error``: ``IntegrityError`` or ``DataError`` when a receipt breaks a
    constraint (then none is written), anything else when the database did not do its part.
    """
    if connection.vendor == "postgresql":
        _insert_postgresql(receipts, occurred_at)
    else:
        _insert_sqlite(receipts, occurred_at)


def _values(receipt: Receipt) -> dict[str, Any]:
    values = msgspec.structs.asdict(receipt)
    values["input_price_per_mtok"] = price_units(receipt.input_price_per_mtok)
    values["output_price_per_mtok"] = price_units(receipt.output_price_per_mtok)
    return values


def _insert_sqlite(receipts: Sequence[Receipt], occurred_at: datetime) -> None:
    moment = connection.ops.adapt_datetimefield_value(occurred_at)
    rows = []
    for receipt in receipts:
        values = _values(receipt)
        values["occurred_at"] = moment
        # Django keeps a UUID as 32 hex digits on SQLite.
        for name in ("organization_id", "api_key_id", "model_id", "model_version_id"):
            values[name] = values[name].replace("-", "")
        rows.append([values[name] for name in _FIELDS])
    places = ", ".join(["%s"] * len(_FIELDS))
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.executemany(
            f'INSERT INTO "{_TABLE}" ({_COLUMNS}) VALUES ({places}) '  # noqa: S608  # names are ours
            f'ON CONFLICT ("request_id") DO NOTHING',
            rows,
        )


def _insert_postgresql(receipts: Sequence[Receipt], occurred_at: datetime) -> None:
    types = ", ".join(
        f'"{field.attname}" {field.db_type(connection)}' for field in UsageRow._meta.local_fields
    )
    rows = [{**_values(receipt), "occurred_at": occurred_at} for receipt in receipts]
    with connection.cursor() as cursor:
        cursor.execute(
            f'INSERT INTO "{_TABLE}" ({_COLUMNS}) '  # noqa: S608  # names are ours
            f"SELECT {_COLUMNS} FROM jsonb_to_recordset(%s::jsonb) AS receipt({types}) "
            f'ON CONFLICT ("request_id") DO NOTHING',
            [msgspec.json.encode(rows).decode()],
        )
