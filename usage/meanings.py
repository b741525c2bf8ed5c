"""What the figures and outcomes of the ledger mean, in the words of the console.

The rules behind them: inference contract, "Token figures", and docs/explain/metering.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from usage.models import Outcome


@dataclass(frozen=True, slots=True)
class Figure:
    """A token figure with its name and its meaning."""

    name: str
    meaning: str
    value: int | None


_FIGURES = (
    (
        "backend_reported_input",
        "Input, reported by the backend",
        "The meter of record. The input cost is computed from it.",
    ),
    (
        "backend_reported_output",
        "Output, reported by the backend",
        "The meter of record. The output cost is computed from it.",
    ),
    (
        "backend_reported_reasoning",
        "of which reasoning",
        "Already inside the output figure. Never add the two.",
    ),
    (
        "generated_output",
        "Output, generated",
        "What the model produced, whether or not it reached the client.",
    ),
    (
        "delivered_output",
        "Output, delivered",
        "What reached the client. Less than generated when the client disconnected.",
    ),
    (
        "svc_counted_input",
        "Input, counted independently",
        "Our own count, for a sample of requests only. Not a billing figure.",
    ),
    (
        "svc_counted_output",
        "Output, counted independently",
        "Our own count, for a sample of requests only. Not a billing figure.",
    ),
)

OUTCOMES: Mapping[str, str] = MappingProxyType(
    {
        Outcome.SUCCESS: "The whole answer was sent.",
        Outcome.CLIENT_DISCONNECTED: "The client left before the answer was complete. What the "
        "model generated is metered.",
        Outcome.BACKEND_REJECTED: "The model server refused the request.",
        Outcome.BACKEND_UNAVAILABLE: "The model server could not be reached or had no room.",
        Outcome.BACKEND_TIMEOUT: "The model server did not answer in time.",
        Outcome.BACKEND_PROTOCOL_ERROR: "The model server sent an answer that is not valid.",
        Outcome.BACKEND_ERROR: "The model server failed while it handled the request.",
        Outcome.INTERNAL_ERROR: "The gateway failed while it handled the request.",
        Outcome.INTERRUPTED: "The gateway stopped while the request ran. The figures are the last "
        "ones it noted.",
    }
)


def figures(source: Any, suffix: str = "") -> list[Figure]:
    """The token figures of ``source``: a summary's, or, with suffix ``_tokens``, a row's."""
    return [
        Figure(name, meaning, getattr(source, attribute + suffix))
        for attribute, name, meaning in _FIGURES
    ]
