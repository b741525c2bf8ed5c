"""Changes the catalog of the live gateway as an operator would."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from core.clock import now
from inference.catalog import lifecycle
from inference.models import Backend, Deployment, ModelEntry
from tests.support.builders import catalog_rows
from tests.support.live import Gateway, free_port
from tests.support.until import until

_numbers = count(1)


def backend(gateway: Gateway, **columns: Any) -> Backend:
    """Create another backend for the simulator, with its own limits and timeouts."""
    name = f"backend-{gateway.organization.pk}-{next(_numbers)}"
    return catalog_rows.backend(name, **{"base_url": gateway.simulator.base_url, **columns})


def nowhere(gateway: Gateway) -> Backend:
    """Create a backend at an address where nothing listens."""
    return backend(gateway, base_url=f"http://127.0.0.1:{free_port()}/v1")


def ready(
    gateway: Gateway, *backends: Backend, served_as: str = "name-on-the-backend", **columns: Any
) -> ModelEntry:
    """Create a draft that can be published; ``served_as`` is its name on ``backends``."""
    number = next(_numbers)
    entry = catalog_rows.draft(
        f"test/{gateway.organization.pk}-{number}",
        **{
            "weights": catalog_rows.weights(f"test/{gateway.organization.pk}-{number}@1"),
            **columns,
        },
    )
    catalog_rows.price(entry)
    for each in backends or (backend(gateway),):
        Deployment.objects.create(weights=entry.weights, backend=each, model=served_as)
    return entry


def publish(gateway: Gateway, *backends: Backend, **columns: Any) -> ModelEntry:
    """Publish a model, and wait until ``gateway`` serves it."""
    entry = ready(gateway, *backends, **columns)
    lifecycle.publish(entry)
    until(lambda: entry.identifier in served_models(gateway))
    return entry


def served_models(gateway: Gateway) -> dict[str, Any]:
    """Return the catalog that ``gateway`` serves, by identifier."""
    listed = gateway.get("/models").json()
    return {entry["id"]: entry for entry in listed["data"]}


def soon() -> datetime:
    """Return the nearest shutdown date that cannot pass while it is entered."""
    return now() + timedelta(milliseconds=200)


def wait_until_served(gateway: Gateway, look: Callable[[dict[str, Any]], Any]) -> None:
    """Wait until ``look`` is true of the catalog that ``gateway`` serves."""
    until(lambda: look(served_models(gateway)))
