"""The catalog in the database as the tables of a catalog file: loading them changes nothing."""

from __future__ import annotations

import uuid
from typing import Final

from core import clock
from core.money import price_text
from inference.catalog.file import (
    BackendTable,
    DeploymentTable,
    LimitTable,
    ModelTable,
    PricingTable,
)
from inference.catalog.pricing import prices_in_force
from inference.models import Backend, Deployment, ModelEntry, ModelLimit, Price

_BACKEND_COLUMNS: Final = [
    name for name in BackendTable.__struct_fields__ if name != "continuous_usage"
]


def stored_backends() -> list[BackendTable]:
    """Every backend by name; its key is named by its variable."""
    return [
        # As it is stored: a value that a newer release wrote is shown, and refused when it is sent back.
        BackendTable(**{name: getattr(row, name) for name in _BACKEND_COLUMNS})
        for row in Backend.objects.order_by("name")
    ]


def stored_models() -> list[ModelTable]:
    """Every model by identifier, with the deployments that are switched on and the price in force."""
    prices = prices_in_force(clock.now())
    serving: dict[uuid.UUID, list[DeploymentTable]] = {}
    deployments = Deployment.objects.filter(enabled=True).select_related("backend")
    for row in deployments.order_by("backend__name"):
        table = DeploymentTable(
            name=row.backend.name, model=row.model, weight=row.weight, draining=row.draining
        )
        serving.setdefault(row.weights_id, []).append(table)
    limits = _limits()
    entries = ModelEntry.objects.select_related("weights", "superseded_by").order_by("identifier")
    tables = []
    for entry in entries:
        successor = entry.superseded_by
        tables.append(
            ModelTable(
                id=entry.identifier,
                weights=entry.weights.name,
                backends=serving.get(entry.weights_id, []),
                context_length=entry.context_length,
                max_request_bytes=entry.max_request_bytes,
                default_max_output_tokens=entry.default_max_output_tokens,
                pricing=_pricing(prices.get(entry.pk)),
                tokenizer=entry.weights.tokenizer or None,
                tool_calling=entry.tool_calling,
                structured_output=entry.structured_output,
                extra_fields=entry.extra_fields,
                defaults=entry.defaults,
                keep_alive_seconds=entry.keep_alive_seconds,
                limits=limits.get(entry.pk, []),
                published=entry.published_at is not None,
                superseded_by=None if successor is None else successor.identifier,
                shutdown_at=entry.shutdown_at,
            )
        )
    return tables


def _limits() -> dict[uuid.UUID, list[LimitTable]]:
    """The limits of organizations on each entry."""
    found: dict[uuid.UUID, list[LimitTable]] = {}
    rows = ModelLimit.objects.select_related("organization")
    for row in rows.order_by("organization__name"):
        table = LimitTable(
            organization=row.organization.name,
            requests_per_minute=row.requests_per_minute,
            tokens_per_minute=row.tokens_per_minute,
        )
        found.setdefault(row.entry_id, []).append(table)
    return found


def _pricing(price: Price | None) -> PricingTable | None:
    if price is None:
        return None
    return PricingTable(
        input_per_mtok=price_text(price.input_per_mtok),
        output_per_mtok=price_text(price.output_per_mtok),
        currency=price.currency,
    )
