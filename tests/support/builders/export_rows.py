"""Rows for the export's tests, and their expected export, computed independently."""

from __future__ import annotations

import random
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal, localcontext
from typing import Any

from usage.models import Outcome, Reconciliation, Shape, UsageRow
from usage.queries.periods import Period
from usage.queries.selection import Filters

ALL = Filters()
START = datetime(2026, 10, 30, tzinfo=UTC)
NOVEMBER = Period(datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC))
WHOLE = Period(START, START + timedelta(days=90))
KEYS = [uuid.UUID(int=0), *(uuid.UUID(int=(7 << 96) + number) for number in range(3))]
MODELS = ["acme/demo-8b", "acme/demo-mini"]
PRICES = [
    (Decimal("0.15"), Decimal("0.60")),
    (Decimal(2), Decimal("8.00000001")),
    (Decimal("0.00000125"), Decimal("9999999999.99999999")),
    (Decimal(0), Decimal("0.1")),
]
_MILLION = Decimal(1_000_000)
_FOURTEEN = Decimal("0.00000000000001")

COLUMNS = [
    *("occurred_at", "request_id", "organization_id", "api_key_id", "model_identifier", "model_id"),
    *("model_version_id", "outcome", "streamed", "shape", "http_status", "error_code"),
    *("backend_reported_input_tokens", "backend_reported_output_tokens"),
    *("backend_reported_reasoning_tokens", "generated_output_tokens", "delivered_output_tokens"),
    *("svc_counted_input_tokens", "svc_counted_output_tokens", "reconciliation"),
    *("reconciliation_divergence", "system_fingerprint", "input_price_per_mtok"),
    *("output_price_per_mtok", "price_currency", "input_cost", "output_cost", "total_cost"),
    *("cost_provisional", "time_to_first_token_ms", "total_duration_ms"),
]
"""The contract's table, in its order."""


def request_id(chance: random.Random) -> str:
    return f"req_{chance.getrandbits(128):032x}"


def make(organization_id: uuid.UUID, occurred_at: datetime, **fields: Any) -> UsageRow:
    """An unsaved row with random counts, prices and ids, seeded by its time."""
    chance = random.Random(repr((organization_id, occurred_at, sorted(fields.items()))))
    input_price, output_price = chance.choice(PRICES)
    output = chance.choice([0, 1, chance.randrange(10_000), 10**12])
    generated = chance.randrange(output + 1)
    counted = chance.random() < 0.3
    values: dict[str, Any] = {
        "request_id": request_id(chance),
        "occurred_at": occurred_at,
        "organization_id": organization_id,
        "api_key_id": chance.choice(KEYS),
        "model_identifier": chance.choice(MODELS),
        "model_id": uuid.UUID(int=chance.getrandbits(128)),
        "model_version_id": uuid.UUID(int=chance.getrandbits(128)),
        "outcome": chance.choice(Outcome.values),
        "streamed": chance.random() < 0.5,
        "shape": chance.choice(Shape.values),
        "http_status": chance.choice([200, 499, 500]),
        "error_code": chance.choice([None, "backend_error"]),
        "backend_reported_input_tokens": chance.choice([0, chance.randrange(10_000), 10**12]),
        "backend_reported_output_tokens": output,
        "backend_reported_reasoning_tokens": chance.randrange(output + 1),
        "generated_output_tokens": generated,
        "delivered_output_tokens": chance.randrange(generated + 1),
        "svc_counted_input_tokens": 12 if counted else None,
        "svc_counted_output_tokens": 0 if counted else None,
        "reconciliation": Reconciliation.DIVERGED if counted else None,
        "reconciliation_divergence": "-0.0123" if counted else None,
        "system_fingerprint": chance.choice([None, "fp_44709d6fcb"]),
        "input_price_per_mtok": input_price,
        "output_price_per_mtok": output_price,
        "price_currency": chance.choice(["USD", "EUR"]),
        "cost_provisional": chance.random() < 0.5,
        "time_to_first_token_ms": chance.randrange(5000),
        "total_duration_ms": chance.randrange(60_000),
    }
    return UsageRow(**{**values, **fields})


def save(rows: Sequence[UsageRow]) -> list[UsageRow]:
    """Save ``rows``; return them in the export's order."""
    UsageRow.objects.bulk_create(rows, batch_size=500)
    return sorted(rows, key=lambda row: (row.occurred_at, row.request_id))


def some(organization_id: uuid.UUID, count: int, seed: int = 0) -> list[UsageRow]:
    """``count`` saved rows over the weeks around a month's end, many at the same moment."""
    chance = random.Random(seed)
    moments = [
        START + timedelta(milliseconds=chance.randrange(5 * 86_400_000))
        for _ in range(max(1, count // 4))
    ]
    return save(
        [
            make(organization_id, chance.choice(moments), total_duration_ms=number)
            for number in range(count)
        ]
    )


def cost(tokens: int, price: Decimal) -> Decimal:
    """The cost, computed with more digits than any cost here has."""
    with localcontext(prec=60):
        return (Decimal(tokens) / _MILLION * price).quantize(_FOURTEEN)


def price(value: Decimal) -> str:
    """The price with as many decimals as needed, at least two."""
    text = f"{value:.8f}"
    while text.endswith("0") and len(text.partition(".")[2]) > 2:
        text = text[:-1]
    return text


def expected(row: UsageRow) -> dict[str, Any]:
    """The expected JSON export of ``row``."""
    said = {name: getattr(row, name, None) for name in COLUMNS}
    for name in ("organization_id", "api_key_id", "model_id", "model_version_id"):
        said[name] = str(said[name])
    moment = row.occurred_at.astimezone(UTC).isoformat(timespec="milliseconds")
    said["occurred_at"] = moment.replace("+00:00", "Z")
    input_cost = cost(row.backend_reported_input_tokens, row.input_price_per_mtok)
    output_cost = cost(row.backend_reported_output_tokens, row.output_price_per_mtok)
    said["input_cost"] = f"{input_cost:f}"
    said["output_cost"] = f"{output_cost:f}"
    with localcontext(prec=60):
        said["total_cost"] = f"{input_cost + output_cost:f}"
    said["input_price_per_mtok"] = price(row.input_price_per_mtok)
    said["output_price_per_mtok"] = price(row.output_price_per_mtok)
    return said


def expected_csv(row: UsageRow) -> dict[str, str]:
    """The expected CSV line of ``row``."""
    words = {None: "", True: "true", False: "false"}
    return {
        name: words[value] if value is None or isinstance(value, bool) else str(value)
        for name, value in expected(row).items()
    }
