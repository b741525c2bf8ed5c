"""What a gateway says of itself at ``/metrics``."""

from __future__ import annotations

import httpx2
from prometheus_client.parser import text_string_to_metric_families

from tests.live import NO_TLS, Gateway


class Figures:
    """One reading."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._samples = [
            sample for family in text_string_to_metric_families(text) for sample in family.samples
        ]

    def sum(self, name: str, **labels: str) -> float:
        """All samples of ``name`` that have ``labels``."""
        return sum(
            sample.value
            for sample in self._samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    def values(self, label: str) -> set[str]:
        """The values that a label has anywhere."""
        return {sample.labels[label] for sample in self._samples if label in sample.labels}


def figures(gateway: Gateway) -> Figures:
    """What ``gateway`` shows to this host now."""
    answer = httpx2.get(f"{gateway.url}/metrics", verify=NO_TLS)
    assert answer.status_code == 200, answer.text
    return Figures(answer.text)
