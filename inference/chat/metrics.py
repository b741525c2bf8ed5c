"""Metrics of chat requests, for ``/metrics``."""

from __future__ import annotations

from collections.abc import Iterator

from core.monitoring.metrics import Counter, Family, Histogram
from inference.chat.costs import Costs
from usage.receipts import Receipt

first_token = Histogram(
    "svc_chat_first_token_seconds",
    "From a request's arrival to the first token, or to the beginning of a whole answer.",
    ("model",),
)
duration = Histogram(
    "svc_chat_duration_seconds", "From a request's arrival to its settlement.", ("model",)
)
costs = Costs()
tokens = Counter("svc_tokens", "Tokens as the ledger has them.", ("model", "kind"))
outcomes = Counter("svc_chat_outcomes", "Admitted chat requests.", ("model", "outcome"))
refusals = Counter("svc_rate_limit_refusals", "Refusals by rate limits (429).", ("scope",))
unreported_tokens = Counter(
    "svc_unreported_tokens",
    "Output tokens that the gateway counted and no backend reported: their rows cost nothing.",
    ("backend", "model"),
)
improbable_usage = Counter(
    "svc_improbable_usage",
    "Answers whose reported tokens, which are billed, exceed the model's context or the output cap.",
    ("backend", "model", "exceeded"),
)
captures = Counter("svc_captures", "Requested diagnostic captures, kept or not.", ("outcome",))


def observe(receipt: Receipt) -> None:
    """Count a request that was settled."""
    model = receipt.model_identifier
    outcomes.add(model, receipt.outcome)
    tokens.add(model, "input", by=receipt.backend_reported_input_tokens)
    tokens.add(model, "output", by=receipt.backend_reported_output_tokens)
    costs.add(receipt)
    if receipt.time_to_first_token_ms:
        first_token.observe(receipt.time_to_first_token_ms / 1000, model)
    duration.observe(receipt.total_duration_ms / 1000, model)


def families() -> Iterator[Family]:
    """Yield all metrics of this module."""
    for counted in (
        outcomes,
        tokens,
        costs,
        first_token,
        duration,
        refusals,
        unreported_tokens,
        improbable_usage,
        captures,
    ):
        yield counted.family()
