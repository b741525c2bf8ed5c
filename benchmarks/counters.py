"""``python -m benchmarks.counters``: what counting a chat request for ``/metrics`` costs, in CPU time.

The six counts of a chat are made with this project's counters and with prometheus_client's, in turns
in one process. Prints a Markdown table of medians, and what docs/decisions/0013 says of them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry
from prometheus_client import Counter as TheirCounter
from prometheus_client import Histogram as TheirHistogram

from core.monitoring.metrics import LATENCY_SECONDS, Counter, Histogram

ROUNDS = 15
REQUESTS = 20_000
MODEL = "acme/demo-8b"
_REQUEST = ("surface", "route", "status", "code")


def own() -> Callable[[], None]:
    """One chat request, counted with this project's classes."""
    requests = Counter("requests", "", _REQUEST)
    tokens = Counter("tokens", "", ("model", "kind"))
    outcomes = Counter("outcomes", "", ("model", "outcome"))
    seconds = Histogram("seconds", "", ("model",))

    def count() -> None:
        requests.add("inference", "chat", "200", "")
        outcomes.add(MODEL, "success")
        tokens.add(MODEL, "input", by=100)
        tokens.add(MODEL, "output", by=12)
        seconds.observe(0.12, MODEL)
        seconds.observe(0.4, MODEL)

    return count


def theirs() -> Callable[[], None]:
    """The same request, counted with prometheus_client's classes."""
    registry = CollectorRegistry()
    requests = TheirCounter("requests", "", _REQUEST, registry=registry)
    tokens = TheirCounter("tokens", "", ("model", "kind"), registry=registry)
    outcomes = TheirCounter("outcomes", "", ("model", "outcome"), registry=registry)
    seconds = TheirHistogram("seconds", "", ("model",), registry=registry, buckets=LATENCY_SECONDS)

    def count() -> None:
        requests.labels("inference", "chat", "200", "").inc()
        outcomes.labels(MODEL, "success").inc()
        tokens.labels(MODEL, "input").inc(100)
        tokens.labels(MODEL, "output").inc(12)
        seconds.labels(MODEL).observe(0.12)
        seconds.labels(MODEL).observe(0.4)

    return count


def _microseconds(count: Callable[[], None]) -> float:
    began = time.process_time()
    for _ in range(REQUESTS):
        count()
    return (time.process_time() - began) / REQUESTS * 1e6


def main() -> None:
    measured: dict[str, list[float]] = {"own": [], "prometheus_client": []}
    counts = {"own": own(), "prometheus_client": theirs()}
    for _ in range(ROUNDS):
        for name, count in counts.items():
            measured[name].append(_microseconds(count))
    medians = {name: statistics.median(each) for name, each in measured.items()}
    print("| counters | µs a request | ratio |\n|---|---|---|")
    for name, median in medians.items():
        print(f"| {name} | {median:.2f} | {median / medians['own']:.1f} |")


if __name__ == "__main__":
    main()
