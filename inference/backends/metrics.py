"""Metrics of connections to model servers, for ``/metrics``."""

from __future__ import annotations

from collections.abc import Iterator

from core.monitoring.metrics import Counter, Family, Histogram

stale_connections = Counter(
    "svc_backend_stale_connections",
    "Kept connections that the backend had closed when a request took them.",
    ("backend",),
)
placements = Counter(
    "svc_placements",
    "Requests for models of several deployments, by why their backend was chosen.",
    ("reason",),
)
waits = Histogram(
    "svc_backend_wait_seconds",
    "Waits for a slot, of requests that found none free; also those that were refused or cancelled.",
    ("priority",),
)
prompt_tokens = Counter(
    "svc_prompt_tokens",
    "Prompt tokens of answers whose backend reported how many it had cached.",
    ("backend", "model"),
)
cached_prompt_tokens = Counter(
    "svc_cached_prompt_tokens",
    "Those of svc_prompt_tokens that the backend had in its prefix cache.",
    ("backend", "model"),
)


def families() -> Iterator[Family]:
    """Yield all metrics of this module."""
    for each in (stale_connections, placements, waits, prompt_tokens, cached_prompt_tokens):
        yield each.family()
