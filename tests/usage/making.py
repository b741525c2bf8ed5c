"""Plain builders of receipts and of what the journal holds."""

from __future__ import annotations

from decimal import Decimal
from itertools import count
from typing import Any

from svc_project.lib.ids import NIL_UUID, request_id
from usage.receipts import Progress, Receipt

_numbers = count(1)


def receipt(**facts: Any) -> Receipt:
    """A whole, successful, small request, unless told."""
    identity = str(NIL_UUID)
    return Receipt(
        **{
            "request_id": request_id(),
            "organization_id": identity,
            "api_key_id": identity,
            "model_identifier": "acme/demo-8b",
            "model_id": identity,
            "model_version_id": identity,
            "outcome": "success",
            "streamed": False,
            "shape": "chat",
            "http_status": 200,
            "backend_reported_output_tokens": next(_numbers),
            "input_price_per_mtok": Decimal("0.15"),
            "output_price_per_mtok": Decimal("12.34567891"),
            "price_currency": "USD",
            **facts,
        }
    )


def admitted(**facts: Any) -> Receipt:
    """A request that runs: as a row it would be interrupted."""
    return receipt(
        **{
            "outcome": "interrupted",
            "http_status": 500,
            "error_code": "internal_error",
            "backend_reported_output_tokens": 0,
            **facts,
        }
    )


def progress(request_id: str, tokens: int) -> Progress:
    return Progress(request_id, 11, tokens, 0, tokens, tokens)
