"""Builders of catalog rows with defaults."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import count
from typing import Any

from core import clock
from inference.catalog import lifecycle
from inference.models import Backend, Deployment, ModelEntry, Price, WeightsRecord

_numbers = count(1)


def weights(name: str = "", **columns: Any) -> WeightsRecord:
    name = name or f"acme/weights-{next(_numbers)}@1"
    return WeightsRecord.objects.create(name=name, **{"source": "acme", **columns})


def backend(name: str = "", **columns: Any) -> Backend:
    name = name or f"gpu-{next(_numbers)}"
    return Backend.objects.create(name=name, **{"base_url": "http://127.0.0.1:9000/v1", **columns})


def draft(identifier: str = "acme/demo-8b", **columns: Any) -> ModelEntry:
    """Create a draft without a price and without a deployment."""
    figures: dict[str, Any] = {
        "context_length": 32768,
        "max_request_bytes": 1_048_576,
        "default_max_output_tokens": 2048,
    }
    pinned = columns.pop("weights", None) or weights()
    return ModelEntry.objects.create(
        identifier=identifier, weights=pinned, **{**figures, **columns}
    )


def price(entry: ModelEntry, effective_from: datetime | None = None, **columns: Any) -> Price:
    """Create a price, by default in force since an hour ago."""
    terms = {"input_per_mtok": "0.15", "output_per_mtok": "0.60", "currency": "USD"}
    moment = effective_from or clock.now() - timedelta(hours=1)
    return Price.objects.create(entry=entry, effective_from=moment, **{**terms, **columns})


def ready(identifier: str = "acme/demo-8b", **columns: Any) -> ModelEntry:
    """Create a draft that can be published."""
    entry = draft(identifier, **columns)
    price(entry)
    deployed(entry)
    return entry


def deployed(entry: ModelEntry, on: Backend | None = None, **columns: Any) -> Deployment:
    facts = {"backend": on or backend(), "model": "demo-on-backend", **columns}
    return Deployment.objects.create(weights=entry.weights, **facts)


def serving(address: str, model: str = "/models/qwen") -> Backend:
    """Create a backend at ``address`` that serves the draft ``acme/tested`` as ``model``."""
    return deployed(draft("acme/tested"), backend(base_url=address), model=model).backend


def published(identifier: str = "acme/demo-8b", **columns: Any) -> ModelEntry:
    entry = ready(identifier, **columns)
    lifecycle.publish(entry)
    return entry


def retired(identifier: str = "acme/old", successor: ModelEntry | None = None) -> ModelEntry:
    """Create an entry whose shutdown date passed a day ago."""
    entry = published(identifier)
    lifecycle.supersede(
        entry,
        successor or published(f"{identifier}-next"),
        clock.now() - timedelta(days=1),
        restoring=True,
    )
    return entry
