"""Changes to the catalog of the live gateway, made as an operator makes them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from inference import lifecycle
from inference.models import Backend, Deployment, ModelEntry
from svc_project.lib.clock import now
from tests.inference import making
from tests.live import Gateway, eventually, free_port

_numbers = count(1)


def backend(gateway: Gateway, **columns: Any) -> Backend:
    """Another way to the simulator, with limits and time-outs of its own."""
    name = f"backend-{gateway.organization.pk}-{next(_numbers)}"
    return making.backend(name, **{"base_url": gateway.simulator.base_url, **columns})


def nowhere(gateway: Gateway) -> Backend:
    """A backend at an address where nothing listens."""
    return backend(gateway, base_url=f"http://127.0.0.1:{free_port()}/v1")


def publish_hasty(gateway: Gateway, *, running_usage: str = "vllm") -> str:
    """The identifier of a model whose backend is given up after half a second of silence."""
    hasty = backend(
        gateway,
        first_byte_seconds=0.5,
        idle_seconds=0.5,
        running_usage=running_usage,
    )
    return publish(gateway, hasty).identifier


def ready(
    gateway: Gateway, *backends: Backend, served_as: str = "name-on-the-backend", **columns: Any
) -> ModelEntry:
    """A draft that could be published; ``backends`` know it by the name ``served_as``."""
    number = next(_numbers)
    entry = making.draft(
        f"test/{gateway.organization.pk}-{number}",
        **{
            "weights": making.weights(f"test/{gateway.organization.pk}-{number}@1"),
            **columns,
        },
    )
    making.price(entry)
    for each in backends or (backend(gateway),):
        Deployment.objects.create(weights=entry.weights, backend=each, model=served_as)
    return entry


def publish(gateway: Gateway, *backends: Backend, **columns: Any) -> ModelEntry:
    """A published model that ``gateway`` serves by now."""
    entry = ready(gateway, *backends, **columns)
    lifecycle.publish(entry)
    eventually(lambda: entry.identifier in served_models(gateway))
    return entry


def served_models(gateway: Gateway) -> dict[str, Any]:
    """The catalog as ``gateway`` serves it, by identifier."""
    listed = gateway.get("/models").json()
    return {entry["id"]: entry for entry in listed["data"]}


def soon() -> datetime:
    """The nearest shutdown date that has surely not passed while it is entered."""
    return now() + timedelta(milliseconds=200)


def taken_over(gateway: Gateway, look: Callable[[dict[str, Any]], Any]) -> None:
    """Return when ``look`` is true of what ``gateway`` serves."""
    eventually(lambda: look(served_models(gateway)))
