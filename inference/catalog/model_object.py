"""The model object of the API, with exactly the fields of the inference contract (Model entry)."""

from __future__ import annotations

from typing import Literal

import msgspec
from django.conf import settings

from core.clock import iso_milliseconds
from core.money import price_text
from inference.catalog.snapshot import PublishedModel

JSON_SCHEMA_SUBSET = "svc-json-schema-subset-v1"
"""The schema subset in use (inference contract, Structured-output schema subset)."""


class Capabilities(msgspec.Struct, frozen=True):
    tool_calling: bool
    structured_output: bool
    json_schema_subset: str | None


class Pricing(msgspec.Struct, frozen=True):
    input_per_mtok: str
    output_per_mtok: str
    currency: str
    provisional: bool
    reasoning_tokens_billed_as: Literal["output"]


class Lifecycle(msgspec.Struct, frozen=True):
    status: Literal["active", "superseded"]
    superseded_by: str | None
    shutdown_at: str | None


class ModelObject(msgspec.Struct, frozen=True):
    """One entry of the catalog, as served."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    context_length: int
    max_request_bytes: int
    capabilities: Capabilities
    pricing: Pricing
    lifecycle: Lifecycle


class ModelList(msgspec.Struct, frozen=True):
    """The list envelope."""

    object: Literal["list"]
    data: list[ModelObject]


def served(model: PublishedModel, now: float) -> ModelObject:
    """Return ``model`` as the API shows it with the price of ``now``, in seconds since the epoch."""
    price = model.price_at(now)
    return ModelObject(
        id=model.id,
        object="model",
        created=model.created,
        owned_by=settings.SVC_BRAND,
        context_length=model.context_length,
        max_request_bytes=model.max_request_bytes,
        capabilities=Capabilities(
            tool_calling=model.tool_calling,
            structured_output=model.structured_output,
            json_schema_subset=JSON_SCHEMA_SUBSET if model.structured_output else None,
        ),
        pricing=Pricing(
            input_per_mtok=price_text(price.input),
            output_per_mtok=price_text(price.output),
            currency=price.currency,
            provisional=price.provisional,
            reasoning_tokens_billed_as="output",
        ),
        lifecycle=Lifecycle(
            status="superseded" if model.superseded_by else "active",
            superseded_by=model.superseded_by,
            shutdown_at=iso_milliseconds(model.shutdown_at) if model.shutdown_at else None,
        ),
    )
