"""The catalog in the database as the tables of a catalog file: loading them changes nothing."""

from __future__ import annotations

import uuid

from core import clock
from core.money import price_text
from inference.catalog.file import BackendTable, DeploymentTable, ModelTable, PricingTable
from inference.catalog.pricing import prices_in_force
from inference.models import Backend, Deployment, ModelEntry, Price
from inference.wire.dialects import KeepAlive, OutputCapField, RunningUsage


def stored_backends() -> list[BackendTable]:
    """Every backend by name; its key is named by its variable."""
    return [
        BackendTable(
            name=row.name,
            base_url=row.base_url,
            api_key_env=row.api_key_env,
            max_concurrency=row.max_concurrency,
            running_usage=RunningUsage(row.running_usage),
            output_cap_field=OutputCapField(row.output_cap_field),
            headers=row.headers,
            extra_fields=row.extra_fields,
            keep_alive=KeepAlive(row.keep_alive),
            enabled=row.enabled,
            first_byte_seconds=row.first_byte_seconds,
            idle_seconds=row.idle_seconds,
            total_seconds=row.total_seconds,
            disconnect_drain_seconds=row.disconnect_drain_seconds,
        )
        for row in Backend.objects.order_by("name")
    ]


def stored_models() -> list[ModelTable]:
    """Every model by identifier, with the deployments that are switched on and the price in force."""
    prices = prices_in_force(clock.now())
    serving: dict[uuid.UUID, list[DeploymentTable]] = {}
    deployments = Deployment.objects.filter(enabled=True).select_related("backend")
    for row in deployments.order_by("backend__name"):
        table = DeploymentTable(name=row.backend.name, model=row.model)
        serving.setdefault(row.weights_id, []).append(table)
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
                published=entry.published_at is not None,
                superseded_by=None if successor is None else successor.identifier,
                shutdown_at=entry.shutdown_at,
            )
        )
    return tables


def _pricing(price: Price | None) -> PricingTable | None:
    if price is None:
        return None
    return PricingTable(
        input_per_mtok=price_text(price.input_per_mtok),
        output_per_mtok=price_text(price.output_per_mtok),
        currency=price.currency,
    )
