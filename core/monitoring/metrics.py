"""Metrics of this process: plain counters that ``/metrics`` reads.

Counting is one addition to a dictionary's entry; names, help and the exposition format are added
when ``/metrics`` is read (docs/decisions/0013). Labels come from a fixed set, the catalog or the
operator, never from a request's content.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final, Literal

import msgspec

Kind = Literal["counter", "gauge", "histogram"]

LATENCY_SECONDS: Final = (0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class Sample(msgspec.Struct, array_like=True):
    """One line: the suffix of the family's name, labels by name, and the value."""

    suffix: str
    labels: dict[str, str]
    value: float


class Family(msgspec.Struct):
    """All samples of one name. A counter's name has no ``_total``."""

    name: str
    kind: Kind
    help: str
    samples: list[Sample]


class Counter:
    """Counts events by label values; ``name`` without ``_total``."""

    __slots__ = ("_counts", "_help", "_labels", "_name")

    def __init__(self, name: str, help_: str, labels: tuple[str, ...] = ()) -> None:
        self._name = name
        self._help = help_
        self._labels = labels
        self._counts: dict[tuple[str, ...], float] = {} if labels else {(): 0}

    def add(self, *values: str, by: float = 1) -> None:
        """Count; ``values`` are the labels' values, in their order."""
        self._counts[values] = self._counts.get(values, 0) + by

    def family(self) -> Family:
        samples = [
            Sample("_total", dict(zip(self._labels, values, strict=True)), count)
            for values, count in list(self._counts.items())
        ]
        return Family(self._name, "counter", self._help, samples)


class Histogram:
    """Distributes durations in seconds over ``LATENCY_SECONDS``, by label values."""

    __slots__ = ("_help", "_labels", "_name", "_series")

    def __init__(self, name: str, help_: str, labels: tuple[str, ...]) -> None:
        self._name = name
        self._help = help_
        self._labels = labels
        self._series: dict[tuple[str, ...], tuple[list[int], list[float]]] = {}

    def observe(self, seconds: float, *values: str) -> None:
        """Count one duration; ``values`` are the labels' values, in their order."""
        series = self._series.get(values)
        if series is None:
            series = self._series[values] = ([0] * (len(LATENCY_SECONDS) + 1), [0.0])
        series[0][bisect_left(LATENCY_SECONDS, seconds)] += 1
        series[1][0] += seconds

    def family(self) -> Family:
        samples = []
        for values, (counts, total) in list(self._series.items()):
            labels = dict(zip(self._labels, values, strict=True))
            so_far = 0
            for bound, count in zip((*LATENCY_SECONDS, float("inf")), counts, strict=True):
                so_far += count
                edge = "+Inf" if bound == float("inf") else repr(bound)
                samples.append(Sample("_bucket", {**labels, "le": edge}, so_far))
            samples.append(Sample("_count", labels, so_far))
            samples.append(Sample("_sum", labels, total[0]))
        return Family(self._name, "histogram", self._help, samples)


def gauge(name: str, help_: str, value: float) -> Family:
    """A family of one current value."""
    return Family(name, "gauge", help_, [Sample("", {}, float(value))])


def total(name: str, help_: str, value: float) -> Family:
    """A counter kept elsewhere; ``name`` without ``_total``."""
    return Family(name, "counter", help_, [Sample("_total", {}, value)])


requests = Counter(
    "svc_requests",
    "Requests that were answered, refused ones too. code: the contract's error code, in-band ones "
    "too; empty for none.",
    ("surface", "route", "status", "code"),
)
"""Requests of every surface: consumers count their own, ``SurfaceRouter`` counts Django's."""
