"""Builders of receipts and of the journal's records."""

from __future__ import annotations

from decimal import Decimal
from itertools import count
from typing import Any

from accounts.keys.refusals import Refusal
from core.clock import now
from core.ids import NIL_UUID, request_id
from usage.receipts import Progress, Receipt, SpeechReceipt

_numbers = count(1)


def receipt(**facts: Any) -> Receipt:
    """A small successful request, unless ``facts`` say otherwise."""
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
    """A running chat request, as the interrupted row it would become."""
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


def refusal(organization_id: str, **facts: Any) -> Refusal:
    """A chat request of now that was refused, for a model that does not exist."""
    return Refusal(
        **{
            "request_id": request_id(),
            "occurred_at": now(),
            "organization_id": organization_id,
            "api_key_id": "",
            "digests": (),
            "route": "chat",
            "status": 404,
            "error": "model_not_found",
            "param": "model",
            "message": "The model 'gpt-9' does not exist.",
            "model": "",
            **facts,
        }
    )


def speech_receipt(**facts: Any) -> SpeechReceipt:
    """One sentence over HTTP, spoken whole, unless ``facts`` say otherwise."""
    identity = str(NIL_UUID)
    return SpeechReceipt(
        **{
            "request_id": request_id(),
            "organization_id": identity,
            "api_key_id": identity,
            "day": "2026-11-20",
            "voice": "amber",
            "cloned": False,
            "engine": "espeak",
            "response_format": "wav",
            "transport": "http",
            "outcome": "success",
            "http_status": 200,
            "characters": 40,
            "sentences": 1,
            "audio_ms": 2500,
            "upstream_ms": 30,
            "first_audio_ms": 31,
            "gateway_ms": 33,
            **facts,
        }
    )


def speech_admitted(**facts: Any) -> SpeechReceipt:
    """A running speech request, as the interrupted row it would become."""
    return speech_receipt(
        **{
            "outcome": "interrupted",
            "http_status": 500,
            "error_type": "proxy_error",
            "characters": 0,
            "sentences": 0,
            "audio_ms": 0,
            "upstream_ms": 0,
            "first_audio_ms": 0,
            "gateway_ms": 0,
            **facts,
        }
    )
