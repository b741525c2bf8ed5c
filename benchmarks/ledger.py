"""A ledger to measure: many rows generated in SQL, and batches written as the gateway does.

Imported after Django is set up (``benchmarks.usage``).
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from statistics import median

import msgspec
from django.db import connection

from core.clock import day_of, now
from core.ids import request_id
from core.money import price_units
from usage.ledger import rows
from usage.models import UsageRollup, UsageRow, partitions
from usage.models.statements import CHAT, SPEECH
from usage.queries.cursors import Cursor
from usage.receipts import Receipt

KEYS, MODELS = 20, 6
RARE_KEY = str(uuid.UUID(int=((1 << 32) + 999) << 64))
DAYS = 93

_ROWS = UsageRow._meta.db_table
_FIELDS = UsageRow._meta.local_fields
_NAMES = ", ".join(field.attname for field in _FIELDS)
_NUMBERS = (
    "(SELECT i, md5(i::text || %(id)s) AS chance,"
    " (%(start)s + i::numeric * %(length)s / %(many)s)::bigint AS ms"
    " FROM generate_series(0, %(many)s - 1) AS i) AS numbers"
)
"""SQL of the numbers of rows, each with its moment in milliseconds."""


Write = Callable[[list[Receipt]], None]


@dataclass(frozen=True, slots=True)
class Span:
    """The 93 days that end with today (UTC)."""

    start: datetime
    end: datetime


def span() -> Span:
    end = day_of(now()) + timedelta(days=1)
    return Span(end - timedelta(days=DAYS), end)


def fill(organization_id: str, others: list[str], count: int) -> None:
    """Insert ``count`` rows of the organization, and a tenth as many of the others.

    20 keys and a rare one (a row in 1000), 6 models of which a key uses two, a price change in the
    middle, 1 % sampled.
    """
    period = span()
    until = now() - timedelta(minutes=1)
    for month in range(DAYS // 28 + 1):
        partitions.ensure(period.start + timedelta(days=28 * month))
    with connection.cursor() as cursor:
        for owner, many in (
            (organization_id, count),
            *((other, count // 10 // len(others)) for other in others),
        ):
            values: dict[str, str | int] = {
                "id": owner,
                "many": many,
                "start": int(period.start.timestamp() * 1000),
                "length": (until - period.start) // timedelta(milliseconds=1),
            }
            cursor.execute(f"INSERT INTO {_ROWS} ({_NAMES}) {_made()}", values)
        cursor.execute(CHAT.insert_sums(_ROWS))
        # Autovacuum would do this in time.
        cursor.execute("VACUUM ANALYZE")


def fill_speech(organization_id: str, count: int) -> None:
    """Insert ``count`` rows of speech over the same days: 5 keys, 8 voices, 1 % failed."""
    period = span()
    until = now() - timedelta(minutes=1)
    made = {
        "request_id": "'req_' || lpad(to_hex(ms), 12, '0') || '7' || substr(chance, 1, 19)",
        "occurred_at": "to_timestamp(ms / 1000.0)",
        "organization_id": "%(id)s::uuid",
        "api_key_id": f"{_key('i %% 5')}",
        "day": "(to_timestamp(ms / 1000.0) AT TIME ZONE 'UTC')::date",
        "voice": "'voice-' || i %% 8",
        "cloned": "i %% 8 = 7",
        "engine": "'espeak'",
        "response_format": "'wav'",
        "transport": "CASE WHEN i %% 3 = 0 THEN 'websocket' ELSE 'http' END",
        "outcome": "CASE WHEN i %% 100 = 0 THEN 'backend_error' ELSE 'success' END",
        "http_status": "CASE WHEN i %% 100 = 0 THEN 502 ELSE 200 END",
        "error_type": "CASE WHEN i %% 100 = 0 THEN 'proxy_error' END",
        "close_code": "NULL",
        "characters": "20 + i %% 900",
        "sentences": "1 + i %% 9",
        "audio_ms": "(20 + i %% 900) * 62",
        "upstream_ms": "40",
        "first_audio_ms": "15 + i %% 60",
        "gateway_ms": "30 + i %% 60",
    }
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {SPEECH.row_table} ({', '.join(SPEECH.columns)}) "
            f"SELECT {', '.join(made[name] for name in SPEECH.columns)} FROM {_NUMBERS}",
            {
                "id": organization_id,
                "many": count,
                "start": int(period.start.timestamp() * 1000),
                "length": (until - period.start) // timedelta(milliseconds=1),
            },
        )
        cursor.execute(SPEECH.insert_sums(SPEECH.row_table))
        cursor.execute("VACUUM ANALYZE")


def _key(number: str) -> str:
    """SQL of the id of a key: a UUID's 128 bits do not fit a bigint, the number is in the upper half."""
    return f"(lpad(to_hex((1::bigint << 32) + {number}), 16, '0') || repeat('0', 16))::uuid"


def _made() -> str:
    """SQL that generates the rows, column by column. Each key has two models."""
    model = f"(i %% {KEYS} + i / {KEYS} %% 2) %% {MODELS}"
    made = {
        "request_id": "'req_' || lpad(to_hex(ms), 12, '0') || '7' || substr(chance, 1, 19)",
        "occurred_at": "to_timestamp(ms / 1000.0)",
        "organization_id": "%(id)s::uuid",
        "api_key_id": _key(f"CASE WHEN i %% 1000 = 7 THEN 999 ELSE i %% {KEYS} END"),
        "model_identifier": f"'acme/model-' || {model}",
        "model_id": f"lpad(({model})::text, 32, '2')::uuid",
        "model_version_id": f"lpad(({model})::text, 32, '3')::uuid",
        "outcome": "CASE WHEN i %% 50 = 0 THEN 'client_disconnected' ELSE 'success' END",
        "streamed": "i %% 3 <> 0",
        "shape": "CASE WHEN i %% 7 = 0 THEN 'tools' ELSE 'chat' END",
        "http_status": "CASE WHEN i %% 50 = 0 THEN 499 ELSE 200 END",
        "error_code": "CASE WHEN i %% 50 = 0 THEN 'client_disconnected' END",
        "backend_reported_input_tokens": "100 + i %% 3000",
        "backend_reported_output_tokens": "50 + i %% 900",
        "backend_reported_reasoning_tokens": "i %% 50",
        "generated_output_tokens": "50 + i %% 900",
        "delivered_output_tokens": "50 + i %% 900",
        "svc_counted_input_tokens": "CASE WHEN i %% 100 = 0 THEN 100 + i %% 3000 END",
        "svc_counted_output_tokens": "CASE WHEN i %% 100 = 0 THEN 50 + i %% 900 END",
        "reconciliation": "CASE WHEN i %% 100 = 0 THEN 'matched' END",
        "reconciliation_divergence": "CASE WHEN i %% 100 = 0 THEN '0.0000' END",
        "system_fingerprint": "'fp_' || substr(chance, 1, 10)",
        "input_price_per_mtok": f"15000000 + ({model}) * 125 + (i * 2 / %(many)s) * 1000000",
        "output_price_per_mtok": "60000000",
        "price_currency": "'USD'",
        "cost_provisional": "true",
        "time_to_first_token_ms": "120 + i %% 300",
        "total_duration_ms": "900 + i %% 4000",
        "cached_input_tokens": "CASE WHEN i %% 4 > 0 THEN (100 + i %% 3000) / 2 END",
        "model_server": "'gpu-' || i %% 4",
        "attempts": "1",
        "queue_ms": "i %% 5",
    }
    columns = ", ".join(made[field.attname] for field in _FIELDS)
    return f"SELECT {columns} FROM {_NUMBERS}"


def rollups(organization_id: str) -> int:
    """The number of roll-ups that a summary of the whole period adds up."""
    return UsageRollup.objects.filter(organization_id=organization_id).count()


def position(organization_id: str, rows_before_the_end: int) -> Cursor:
    """The position ``rows_before_the_end`` rows before the end of the organization's rows."""
    row = UsageRow.objects.filter(organization_id=organization_id).order_by(
        "-occurred_at", "-request_id"
    )[rows_before_the_end]
    return Cursor(row.occurred_at.astimezone(UTC), row.request_id)


def commit_milliseconds(organization_id: str, batch: int, rounds: int) -> tuple[float, float]:
    """The median times to commit a batch without and with its roll-ups, in turns."""
    taken: dict[Write, list[float]] = {_without_rollups: [], _with_rollups: []}
    for _ in range(rounds):
        for write, times in taken.items():
            receipts = [receipt(organization_id, number) for number in range(batch)]
            began = time.perf_counter()
            write(receipts)
            times.append((time.perf_counter() - began) * 1000)
    return median(taken[_without_rollups]), median(taken[_with_rollups])


def _with_rollups(receipts: list[Receipt]) -> None:
    """Write as the gateway does."""
    rows.insert(receipts, now())


def _without_rollups(receipts: list[Receipt]) -> None:
    """Run the same statement without its second half."""
    types = ", ".join(f"{field.attname} {field.db_type(connection)}" for field in _FIELDS)
    moment = now()
    prices = ("input_price_per_mtok", "output_price_per_mtok")
    values = [
        {
            **msgspec.structs.asdict(receipt),
            **{name: price_units(getattr(receipt, name)) for name in prices},
            "occurred_at": moment,
        }
        for receipt in receipts
    ]
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {_ROWS} ({_NAMES}) SELECT {_NAMES}"
            f" FROM jsonb_to_recordset(%s::jsonb) AS receipt({types})"
            " ON CONFLICT (request_id, organization_id) DO NOTHING",
            [msgspec.json.encode(values).decode()],
        )


def receipt(organization_id: str, number: int) -> Receipt:
    return Receipt(
        request_id=request_id(),
        organization_id=organization_id,
        api_key_id=str(uuid.UUID(int=((1 << 32) + number % KEYS) << 64)),
        model_identifier=f"acme/model-{number % MODELS}",
        model_id=str(uuid.UUID(int=number % MODELS)),
        model_version_id=str(uuid.UUID(int=number % MODELS)),
        outcome="success",
        streamed=True,
        shape="chat",
        http_status=200,
        backend_reported_input_tokens=1000,
        backend_reported_output_tokens=200,
        generated_output_tokens=200,
        delivered_output_tokens=200,
        input_price_per_mtok=Decimal("0.15"),
        output_price_per_mtok=Decimal("0.60"),
        price_currency="USD",
    )
