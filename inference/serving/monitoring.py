"""The current state of the chat surface, for ``/metrics`` and the admin's list of backends."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from core.limits.redis import RedisLimiter
from core.monitoring.metrics import Family, Sample, gauge, total
from core.sharing.priority import Priority
from inference.backends import metrics as backend_metrics
from inference.backends.pooled import BackendView
from inference.catalog.catalog import catalog
from inference.catalog.snapshot import BackendRef
from inference.chat import metrics as chat_metrics
from inference.serving.wiring import service

STATS_NAME = "backends"
"""The key of ``backends`` in the workers' statistics."""


def current_backends() -> list[BackendRef]:
    """Return the backends of this process's catalog, by name."""
    found = {
        deployment.backend.id: deployment.backend
        for model in catalog.snapshot.models.values()
        for deployment in (*model.deployments, *model.draining)
    }
    return sorted(found.values(), key=lambda backend: backend.name)


def backends() -> list[BackendView]:
    """Return the current state of the backends in this process."""
    now = time.time()
    models = catalog.snapshot.models.values()
    views = service().egress.pool.views(
        current_backends(), [each.deployments for each in models if not each.is_retired(now)]
    )
    draining: dict[str, set[str]] = defaultdict(set)
    for model in models:
        for each in model.draining:
            draining[each.backend.id].add(each.model)
    return [
        msgspec.structs.replace(view, draining=sorted(draining[view.id]))
        if view.id in draining
        else view
        for view in views
    ]


def is_draining() -> bool:
    """Whether any deployment of this process's catalog drains."""
    return any(model.draining for model in catalog.snapshot.models.values())


def families() -> Iterator[Family]:
    """Yield all metrics of the chat surface."""
    yield from chat_metrics.families()
    yield from backend_metrics.families()
    yield total(
        "svc_poison_refusals",
        "Requests refused because model servers crashed on them.",
        service().egress.quarantine.refused,
    )
    limiter = service().limiter
    if isinstance(limiter, RedisLimiter):
        yield gauge(
            "svc_limiter_shared",
            "1 while limits are kept in Redis, 0 while this worker keeps its share of them.",
            limiter.is_shared,
        )
    yield from _backend_families(backends())


_GAUGES: Final[tuple[tuple[str, str, Callable[[BackendView], float]], ...]] = (
    (
        "ejected",
        "1 while no model sends requests to the backend, because it keeps failing.",
        lambda view: view.ejected,
    ),
    ("failures_in_a_row", "Failures since the backend's last success.", lambda view: view.failures),
    (
        "last_answer_timestamp_seconds",
        "When it last gave this worker a complete answer; 0 for never.",
        lambda view: view.last_answer,
    ),
    (
        "last_failure_timestamp_seconds",
        "When it last failed for this worker; 0 for never.",
        lambda view: view.last_failure,
    ),
    ("in_flight", "Slots that are taken.", lambda view: view.inflight),
    ("slots", "Slots in all: of all workers and hosts together.", lambda view: view.slots),
    ("slots_held", "The part of them that this worker may hand out now.", lambda view: view.held),
)


def _backend_families(views: list[BackendView]) -> Iterator[Family]:
    for name, help_, value in _GAUGES:
        samples = [Sample("", {"backend": view.name}, float(value(view))) for view in views]
        yield Family(f"svc_backend_{name}", "gauge", help_, samples)
    waiting = [
        Sample("", {"backend": view.name, "priority": each.label}, float(count))
        for view in views
        for each, count in zip(Priority, view.waiting_by_class, strict=True)
    ]
    yield Family("svc_backend_waiting", "gauge", "Requests in its queue, by their class.", waiting)
    yield from _outcomes(views)


def _outcomes(views: list[BackendView]) -> Iterator[Family]:
    counted: list[tuple[str, str, list[int]]] = [
        ("failures", "Failures that count against it.", [view.total_failures for view in views]),
        ("ejections", "Times that it was ejected.", [view.ejections for view in views]),
    ]
    for name, help_, counts in counted:
        samples = [
            Sample("_total", {"backend": view.name}, count)
            for view, count in zip(views, counts, strict=True)
        ]
        yield Family(f"svc_backend_{name}", "counter", help_, samples)
