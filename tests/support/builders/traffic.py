"""Mixed traffic for the usage tests, and its summary computed without the product.

The sums here are computed from lists in memory, row by row, with ``Decimal``; of ``usage`` only the
writer of rows is used.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal, localcontext
from typing import Any

from core.ids import NIL_UUID
from tests.support.builders.receipts import receipt
from usage.ledger import rows
from usage.receipts import Receipt

NIL = str(NIL_UUID)
DEMO, PLAIN, EURO = "acme/demo-8b", "acme/plain-8b", "acme/euro-8b"
MODEL_IDS = {name: str(uuid.uuid5(NIL_UUID, name)) for name in (DEMO, PLAIN, EURO)}
PRICE_CHANGE = datetime(2026, 11, 10, 12, 30, tzinfo=UTC)
MOMENTS_THAT_MATTER = [
    datetime(2026, 10, 31, 23, 59, 59, 999_000, tzinfo=UTC),
    datetime(2026, 11, 1, tzinfo=UTC),
    datetime(2026, 11, 10, 5, 30, tzinfo=UTC),
    datetime(2026, 11, 10, 12, 15, tzinfo=UTC),
    datetime(2026, 11, 10, 12, 44, 59, 999_000, tzinfo=UTC),
    datetime(2026, 11, 10, 12, 45, tzinfo=UTC),
    datetime(2026, 11, 30, 23, 59, 59, 999_000, tzinfo=UTC),
    datetime(2026, 12, 1, tzinfo=UTC),
]


@dataclass(frozen=True)
class Written:
    """A written row and its time."""

    receipt: Receipt
    occurred_at: datetime


def write(occurred_at: datetime, **facts: Any) -> Written:
    """Write one row as the ledger does, at a given time."""
    one = receipt(**facts)
    rows.insert([one], occurred_at)
    return Written(one, occurred_at)


def mixed(organization_id: str, api_key_ids: Sequence[str], seed: int = 1) -> list[Written]:
    """Some eighty rows from late October to early December 2026.

    Three models, one of which changes its price and one of which is paid in euros; every key of
    ``api_key_ids`` and none; answers cut by the client; failures that cost nothing; sampled ones.
    """
    chance = random.Random(seed)  # the same traffic every time
    first = datetime(2026, 10, 25, tzinfo=UTC)
    moments = [
        first + timedelta(milliseconds=chance.randrange(41 * 24 * 3_600_000)) for _ in range(70)
    ]
    return [
        write(moment, organization_id=organization_id, **_facts(moment, api_key_ids, chance))
        for moment in (*MOMENTS_THAT_MATTER, *moments)
    ]


def _facts(moment: datetime, api_key_ids: Sequence[str], chance: random.Random) -> dict[str, Any]:
    model = chance.choice([DEMO, DEMO, PLAIN, EURO])
    output = chance.choice([0, 1, 7, 512, 2**31 - 1])
    generated = output or 3
    facts: dict[str, Any] = {
        "api_key_id": chance.choice([*api_key_ids, NIL]),
        "model_identifier": model,
        "model_id": MODEL_IDS[model],
        "backend_reported_input_tokens": chance.randrange(100_000),
        "backend_reported_output_tokens": output,
        "backend_reported_reasoning_tokens": output // 3,
        "generated_output_tokens": generated,
        "delivered_output_tokens": generated,
        **_prices(model, moment),
    }
    if chance.random() < 0.2:
        facts |= {
            "outcome": "client_disconnected",
            "http_status": 499,
            "error_code": "client_disconnected",
            "delivered_output_tokens": generated // 2,
        }
    if chance.random() < 0.3:
        facts |= {
            "svc_counted_input_tokens": chance.randrange(100),
            "svc_counted_output_tokens": 0,
            "reconciliation": "diverged",
        }
    return facts


def _prices(model: str, moment: datetime) -> dict[str, Any]:
    prices = {
        DEMO: ("0.15", "0.60", "USD") if moment < PRICE_CHANGE else ("0.13", "0.65", "USD"),
        PLAIN: ("0.00000125", "12.34567891", "USD"),
        EURO: ("1.1", "3.3", "EUR"),
    }
    input_price, output_price, currency = prices[model]
    return {
        "input_price_per_mtok": Decimal(input_price),
        "output_price_per_mtok": Decimal(output_price),
        "price_currency": currency,
    }


# -- the summary, computed without the product ---------------------------------------------------


def figures(written: Iterable[Written]) -> dict[str, Any]:
    """``requests``, ``tokens``, ``cost`` (and ``mixed_currency``) of some rows."""
    receipts = [each.receipt for each in written]
    counted = [each for each in receipts if each.svc_counted_input_tokens is not None]
    found: dict[str, Any] = {
        "requests": len(receipts),
        "tokens": {
            "backend_reported_input": sum(r.backend_reported_input_tokens for r in receipts),
            "backend_reported_output": sum(r.backend_reported_output_tokens for r in receipts),
            "backend_reported_reasoning": sum(
                r.backend_reported_reasoning_tokens for r in receipts
            ),
            "generated_output": sum(r.generated_output_tokens for r in receipts),
            "delivered_output": sum(r.delivered_output_tokens for r in receipts),
            "svc_counted_input": sum(r.svc_counted_input_tokens or 0 for r in counted),
            "svc_counted_output": sum(r.svc_counted_output_tokens or 0 for r in counted),
            "svc_counted_requests": len(counted),
        },
        "cost": None,
    }
    currencies = {each.price_currency for each in receipts} or {"USD"}
    if len(currencies) > 1:
        found["mixed_currency"] = True
        return found
    with localcontext(prec=100):
        million = Decimal(1_000_000)
        inputs = sum(
            (r.backend_reported_input_tokens / million * r.input_price_per_mtok for r in receipts),
            Decimal(0),
        )
        outputs = sum(
            (
                r.backend_reported_output_tokens / million * r.output_price_per_mtok
                for r in receipts
            ),
            Decimal(0),
        )
        found["cost"] = {
            "input": f"{inputs:.14f}",
            "output": f"{outputs:.14f}",
            "total": f"{inputs + outputs:.14f}",
            "currency": currencies.pop(),
            "provisional": True,
        }
    return found


def grouped(
    written: Iterable[Written], key: Callable[[Written], tuple[Any, ...]], names: Sequence[str]
) -> list[dict[str, Any]]:
    """The entries of a breakdown by ``key``, sorted by it."""
    groups: dict[tuple[Any, ...], list[Written]] = {}
    for each in written:
        groups.setdefault(key(each), []).append(each)
    return [
        {"key": dict(zip(names, value, strict=True)), **figures(groups[value])}
        for value in sorted(groups, key=lambda value: [part or "" for part in value])
    ]


def by_model(written: Iterable[Written]) -> list[dict[str, Any]]:
    return grouped(
        written,
        lambda each: (each.receipt.model_identifier, each.receipt.model_id),
        ("model_identifier", "model_id"),
    )


def by_key(
    written: Iterable[Written], names: dict[str, tuple[str | None, str | None]]
) -> list[dict[str, Any]]:
    """``names``: label and prefix of the organization's keys, by id."""
    return grouped(
        written,
        lambda each: (
            each.receipt.api_key_id,
            *names.get(each.receipt.api_key_id, (None, None)),
        ),
        ("api_key_id", "api_key_label", "api_key_prefix"),
    )


def by_time(written: Iterable[Written], bucket: str) -> list[dict[str, Any]]:
    form = {"hour": "%Y-%m-%dT%H:00:00.000Z", "day": "%Y-%m-%dT00:00:00.000Z"}[bucket]
    return grouped(written, lambda each: (each.occurred_at.strftime(form),), ("bucket_start",))
