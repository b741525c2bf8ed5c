"""The usage summary as it is sent (inference contract, "Usage summary" and the tables it names).

Field for field in the contract's order; plain shapes, without Django. Timestamps are ISO 8601 in
UTC with milliseconds, money is decimal text with 14 decimals.
"""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

MixedCurrency = bool | UnsetType
"""True or absent: the contract sets ``mixed_currency`` only where currencies mix."""


class SummaryPeriod(msgspec.Struct, frozen=True):
    """``end`` is exclusive; ``bucket`` is that of the ``time`` breakdown."""

    start: str
    end: str
    bucket: str


class SummaryFilters(msgspec.Struct, frozen=True):
    """The filters of the summary; null is no restriction."""

    model: str | None
    api_key_id: str | None


class TokenFigures(msgspec.Struct, frozen=True):
    """Sums of tokens (inference contract, "Token figures").

    ``backend_reported_output`` includes reasoning. ``svc_counted_*`` cover the sampled
    ``svc_counted_requests`` only.
    """

    backend_reported_input: int
    backend_reported_output: int
    backend_reported_reasoning: int
    generated_output: int
    delivered_output: int
    svc_counted_input: int
    svc_counted_output: int
    svc_counted_requests: int


class Cost(msgspec.Struct, frozen=True):
    """The cost of the backend-reported tokens at the prices stamped on the rows."""

    input: str
    output: str
    total: str
    currency: str
    provisional: bool = True


class ModelKey(msgspec.Struct, frozen=True):
    """``model_id`` is the UUID of the catalog entry."""

    model_identifier: str
    model_id: str


class ApiKeyKey(msgspec.Struct, frozen=True):
    """Label and prefix are null for the unattributed group and for keys of no organization here."""

    api_key_id: str
    api_key_label: str | None
    api_key_prefix: str | None


class TimeKey(msgspec.Struct, frozen=True):
    """The first moment of an hour or of a UTC day."""

    bucket_start: str


Key = TypeVar("Key")


class BreakdownEntry(msgspec.Struct, Generic[Key], frozen=True):
    """The sums of one key; ``cost`` is null only where this entry itself mixes currencies."""

    key: Key
    requests: int
    tokens: TokenFigures
    cost: Cost | None
    mixed_currency: MixedCurrency = UNSET


class Breakdowns(msgspec.Struct, frozen=True):
    """The requested breakdowns; others are absent."""

    model: list[BreakdownEntry[ModelKey]] | UnsetType = UNSET
    api_key: list[BreakdownEntry[ApiKeyKey]] | UnsetType = UNSET
    time: list[BreakdownEntry[TimeKey]] | UnsetType = UNSET


class ThrottledEntry(msgspec.Struct, frozen=True):
    """Refusals (429) by one kind of limit for one model."""

    limit_scope: str
    model_identifier: str
    count: int


class Throttled(msgspec.Struct, frozen=True):
    """``total`` is null, never zero, where counting was disabled."""

    source: Literal["rejection_counters", "unavailable"]
    total: int | None
    by_limit_scope: list[ThrottledEntry]


class UsagePricing(msgspec.Struct, frozen=True):
    """Whether amounts are billed: projections of a beta unless ``billing_enabled``."""

    provisional: bool
    billing_enabled: bool
    reasoning_tokens_billed_as: Literal["output"] = "output"
    reasoning_tokens_included_in_output: bool = True


class CostUnits(msgspec.Struct, frozen=True):
    """The units of the amounts."""

    decimals: int = 14
    basis: Literal["price_per_million_tokens_stamped_on_row"] = (
        "price_per_million_tokens_stamped_on_row"
    )


class UsageSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of ``GET /v1/usage``."""

    organization_id: str
    period: SummaryPeriod
    filters: SummaryFilters
    requests: int
    tokens: TokenFigures
    cost: Cost | None
    mixed_currency: MixedCurrency = UNSET
    breakdowns: Breakdowns
    throttled: Throttled
    pricing: UsagePricing
    cost_units: CostUnits
