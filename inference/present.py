"""The chat surface as it stands now: what ``/metrics`` and the admin's list of backends show."""

from __future__ import annotations

import time
from collections.abc import Iterator

from inference import figures
from inference.catalog import catalog
from inference.pool import BackendView
from inference.service import service
from inference.snapshot import BackendRef
from svc_project.lib.metrics import Family, Sample, gauge, total
from svc_project.lib.ratelimits_redis import RedisLimiter

VIEW = "backends"
"""The name of ``backends`` among the views of the workers."""


def current_backends() -> list[BackendRef]:
    """The backends of the catalog as this process has it, by name."""
    found = {
        deployment.backend.id: deployment.backend
        for model in catalog.snapshot.models.values()
        for deployment in model.deployments
    }
    return sorted(found.values(), key=lambda backend: backend.name)


def backends() -> list[BackendView]:
    """The backends as this process sees them now."""
    now = time.time()
    models = catalog.snapshot.models.values()
    return service().egress.pool.views(
        current_backends(), [each.deployments for each in models if not each.is_retired(now)]
    )


def families() -> Iterator[Family]:
    """All figures of the chat surface."""
    yield from figures.families()
    yield total(
        "svc_poison_refusals",
        "Requests refused because model servers died of them.",
        service().egress.poison.refused,
    )
    limiter = service().limiter
    if isinstance(limiter, RedisLimiter):
        yield gauge(
            "svc_limiter_shared",
            "1 while limits are kept in Redis, 0 while this worker keeps its share of them.",
            limiter.is_shared,
        )
    yield from _backend_families(backends())


def _backend_families(views: list[BackendView]) -> Iterator[Family]:
    shown: list[tuple[str, str, list[float]]] = [
        (
            "svc_backend_ejected",
            "1 while every model that the backend serves leaves it out.",
            [view.ejected for view in views],
        ),
        (
            "svc_backend_failures_in_a_row",
            "Failures since its last success.",
            [view.failures for view in views],
        ),
        ("svc_backend_in_flight", "Slots that are taken.", [view.inflight for view in views]),
        ("svc_backend_slots", "Slots that there are.", [view.limit for view in views]),
        ("svc_backend_waiting", "Requests in its queue.", [view.waiting for view in views]),
    ]
    for name, help_, values in shown:
        samples = [
            Sample("", {"backend": view.name}, float(value))
            for view, value in zip(views, values, strict=True)
        ]
        yield Family(name, "gauge", help_, samples)
    failed = [Sample("_total", {"backend": view.name}, view.total_failures) for view in views]
    yield Family("svc_backend_failures", "counter", "Failures that it is to blame for.", failed)
    ejected = [Sample("_total", {"backend": view.name}, view.ejections) for view in views]
    yield Family("svc_backend_ejections", "counter", "Times that it was left out.", ejected)
