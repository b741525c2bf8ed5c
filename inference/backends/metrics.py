"""Metrics of connections to model servers, for ``/metrics``."""

from __future__ import annotations

from collections.abc import Iterator

from core.monitoring.metrics import Counter, Family

stale_connections = Counter(
    "svc_backend_stale_connections",
    "Kept connections that the backend had closed when a request took them.",
    ("backend",),
)


def families() -> Iterator[Family]:
    """Yield all metrics of this module."""
    yield stale_connections.family()
