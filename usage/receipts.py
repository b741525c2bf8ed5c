"""Receipts: the facts of one chat or speech request, as they go into the ledger."""

from __future__ import annotations

from decimal import Decimal

import msgspec


class Receipt(msgspec.Struct, kw_only=True):
    """One usage row before it is written: a field for each column but ``occurred_at``.

    Ids are UUID texts. Prices are per million tokens, as stamped at admission. The ledger sets
    ``occurred_at`` when it writes the row, so that rows become visible in the order of their times.
    """

    request_id: str
    organization_id: str
    api_key_id: str
    model_identifier: str
    model_id: str
    model_version_id: str
    outcome: str
    streamed: bool
    shape: str
    http_status: int
    error_code: str | None = None
    backend_reported_input_tokens: int = 0
    backend_reported_output_tokens: int = 0
    backend_reported_reasoning_tokens: int = 0
    generated_output_tokens: int = 0
    delivered_output_tokens: int = 0
    svc_counted_input_tokens: int | None = None
    svc_counted_output_tokens: int | None = None
    reconciliation: str | None = None
    reconciliation_divergence: str | None = None
    system_fingerprint: str | None = None
    input_price_per_mtok: Decimal
    output_price_per_mtok: Decimal
    price_currency: str
    cost_provisional: bool = True
    time_to_first_token_ms: int = 0
    total_duration_ms: int = 0
    cached_input_tokens: int | None = None
    """Those of the reported input that the backend had cached; None where it reported none."""
    model_server: str | None = None
    """The backend that the last attempt was made at; of an interrupted request the first."""
    attempts: int | None = None
    """How often the request was sent to a model server; None of an interrupted request."""
    queue_ms: int | None = None
    """How long it waited for a slot of a backend."""


class Progress(msgspec.Struct, array_like=True):
    """Token counts of a running request, journaled so that a crash loses at most one step."""

    request_id: str
    backend_reported_input_tokens: int
    backend_reported_output_tokens: int
    backend_reported_reasoning_tokens: int
    generated_output_tokens: int
    delivered_output_tokens: int
    cached_input_tokens: int | None = None


class SpeechReceipt(msgspec.Struct, kw_only=True):
    """The facts of one speech request or WebSocket session: a field for each column of
    ``SpeechRow`` but ``occurred_at``.

    ``day`` is the UTC day (``2026-11-20``) of the admission, whose quota the characters count
    against. ``characters`` are those charged, less refunds. ``upstream_ms`` is the engine's wall
    time (overlapping calls counted once), ``gateway_ms`` the whole duration.
    """

    request_id: str
    organization_id: str
    api_key_id: str
    day: str
    voice: str
    cloned: bool
    engine: str
    """Name of the speech backend, or ``espeak``."""
    response_format: str
    transport: str
    """``http`` or ``websocket``."""
    outcome: str
    http_status: int
    error_type: str | None = None
    close_code: int | None = None
    """The close code of a WebSocket session that the gateway ended early."""
    characters: int = 0
    sentences: int = 0
    audio_ms: int = 0
    """Audio sent to the client, in milliseconds."""
    upstream_ms: int = 0
    first_audio_ms: int = 0
    gateway_ms: int = 0


class SpeechProgress(msgspec.Struct, array_like=True):
    """Totals of a running speech request, journaled so that a crash loses at most one step."""

    request_id: str
    characters: int
    sentences: int
    audio_ms: int
    upstream_ms: int


AnyReceipt = Receipt | SpeechReceipt
AnyProgress = Progress | SpeechProgress


def withheld(receipt: AnyReceipt, begun: bool | None = None) -> AnyReceipt:
    """Return ``receipt`` as it is when the end of its answer is withheld, because its row could not
    be stored.

    The client gets an internal error (inside the answer if it has ``begun``), so the row says that
    too. The counts are real and stay, but an answer that had not begun delivered nothing. By
    default a streamed answer has begun. A request that had failed before is returned unchanged: the
    client gets that error.
    """
    if receipt.outcome != "success":
        return receipt
    if isinstance(receipt, SpeechReceipt):
        by_socket = receipt.transport == "websocket"
        if begun is None:
            begun = receipt.response_format == "pcm"
        return msgspec.structs.replace(
            receipt,
            outcome="internal_error",
            http_status=receipt.http_status if begun or by_socket else 500,
            error_type="proxy_error",
            close_code=1011 if by_socket else None,
            audio_ms=receipt.audio_ms if begun or by_socket else 0,
        )
    if begun is None:
        begun = receipt.streamed
    return msgspec.structs.replace(
        receipt,
        outcome="internal_error",
        http_status=receipt.http_status if begun else 500,
        error_code="internal_error",
        delivered_output_tokens=receipt.delivered_output_tokens if begun else 0,
    )
