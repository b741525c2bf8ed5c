"""Reads a gateway's ``/metrics``."""

from __future__ import annotations

import httpx2
from prometheus_client.parser import text_string_to_metric_families

from tests.support.live import NO_TLS, Gateway


class Metrics:
    """One scrape of ``/metrics``."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._samples = [
            sample for family in text_string_to_metric_families(text) for sample in family.samples
        ]

    def sum(self, name: str, **labels: str) -> float:
        """Add up the samples of ``name`` that have ``labels``."""
        return sum(
            sample.value
            for sample in self._samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    def values(self, label: str) -> set[str]:
        """Return all values of a label."""
        return {sample.labels[label] for sample in self._samples if label in sample.labels}


def metrics(gateway: Gateway) -> Metrics:
    """Scrape ``gateway`` from this host."""
    answer = httpx2.get(f"{gateway.url}/metrics", verify=NO_TLS)
    assert answer.status_code == 200, answer.text
    return Metrics(answer.text)
