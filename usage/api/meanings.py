"""What each field of the usage operations means (inference contract, "Token figures", "Cost object")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_INPUT: Final = "Input tokens as the model servers reported them: cost is computed from them."
_OUTPUT: Final = "Output tokens as the model servers reported them: cost is computed from them."
_REASONING: Final = "Already inside the reported output: never add the two."
_GENERATED: Final = "Tokens that the model produced. Never priced."
_DELIVERED: Final = "Tokens that reached you; fewer where you left early. Never priced."
_KEY_ID: Final = "The id of the key; the nil UUID for requests without one."
_IDENTIFIER: Final = "What was sent as `model`."
_MODEL_ID: Final = "The id of the model's entry in the catalog."
_ENTRY: Final = {
    "key": "What the entry is about.",
    "requests": "Its rows.",
    "tokens": "Its sums of tokens.",
    "cost": "Its cost; null where the entry itself mixes currencies.",
    "mixed_currency": "True, and only there, where `cost` is null.",
}

SUMMARY: Final[Mapping[str, Mapping[str, str]]] = {
    "UsageSummary": {
        "organization_id": "Whose figures these are: the key's organization.",
        "period": "What was asked for, in UTC.",
        "filters": "What the figures are restricted to.",
        "requests": "Admitted requests, whatever became of them: one row each.",
        "tokens": "Sums of tokens of all these rows.",
        "cost": "What the reported tokens cost at the prices on their rows; null where the period "
        "mixes currencies.",
        "mixed_currency": "True, and only there, where `cost` is null.",
        "breakdowns": "One array for each value of `group_by`, sorted by key.",
        "throttled": "Requests that a limit refused. They have no rows.",
        "pricing": "How to read the amounts.",
        "cost_units": "The decimals of the amounts, and what they are made of.",
    },
    "SummaryPeriod": {
        "start": "The first moment.",
        "end": "The first moment after the period.",
        "bucket": "The size of the steps of the breakdown by time.",
    },
    "SummaryFilters": {
        "model": "The only model, or null for all.",
        "api_key_id": "The only key, or null for all.",
    },
    "TokenFigures": {
        "backend_reported_input": _INPUT,
        "backend_reported_output": _OUTPUT,
        "backend_reported_reasoning": _REASONING,
        "generated_output": _GENERATED,
        "delivered_output": _DELIVERED,
        "svc_counted_input": "The gateway's own count of the sampled requests. Never billed.",
        "svc_counted_output": "The gateway's own count of the sampled requests. Never billed.",
        "svc_counted_requests": "How many requests the two counts cover.",
    },
    "Cost": {
        "input": "The cost of the input, exact, with 14 decimals.",
        "output": "The cost of the output, exact, with 14 decimals.",
        "total": "The sum of the two. Round it for display only.",
        "currency": "The currency of the three amounts.",
        "provisional": "True during the beta.",
    },
    "Breakdowns": {
        "model": "By model.",
        "api_key": "By key.",
        "time": "By hour or UTC day; steps without requests are left out.",
    },
    "BreakdownEntry_ModelKey_": _ENTRY,
    "BreakdownEntry_ApiKeyKey_": _ENTRY,
    "BreakdownEntry_TimeKey_": _ENTRY,
    "ModelKey": {"model_identifier": _IDENTIFIER, "model_id": _MODEL_ID},
    "ApiKeyKey": {
        "api_key_id": f"{_KEY_ID} The filter of the same name takes it.",
        "api_key_label": "The label of the key. Null for requests without one, and for a key of "
        "another organization.",
        "api_key_prefix": "The beginning of the key, which is no secret. Null as the label.",
    },
    "TimeKey": {"bucket_start": "The first moment of the hour or UTC day."},
    "Throttled": {
        "source": "`unavailable` where nothing was counted: then `total` is null, and not zero.",
        "total": "How many requests were refused with 429, some seconds late.",
        "by_limit_scope": "The same by the kind of limit and by model.",
    },
    "ThrottledEntry": {
        "limit_scope": "Which limit it was: `requests`, `tokens` or `budget`.",
        "model_identifier": "The model that was asked for.",
        "count": "How often it refused.",
    },
    "UsagePricing": {
        "provisional": "Always true during the beta.",
        "billing_enabled": "Whether anybody is charged these amounts.",
        "reasoning_tokens_billed_as": "Always `output`.",
        "reasoning_tokens_included_in_output": "Always true: never add reasoning to the output.",
    },
    "CostUnits": {
        "decimals": "Decimals of every amount.",
        "basis": "Amounts are tokens times the price on their row, and never the current price.",
    },
}

ROW: Final[Mapping[str, str]] = {
    "occurred_at": "When the request had ended and was settled, so that a closed period does not change.",
    "request_id": "As in the header `x-request-id`. It never means two rows.",
    "organization_id": "The organization of the key.",
    "api_key_id": _KEY_ID,
    "model_identifier": _IDENTIFIER,
    "model_id": _MODEL_ID,
    "model_version_id": "The id of the weights that the model is pinned to.",
    "outcome": "`success`, `client_disconnected`, `backend_rejected`, `backend_unavailable`, "
    "`backend_timeout`, `backend_protocol_error`, `backend_error`, `internal_error` or `interrupted`.",
    "streamed": "Whether the answer was a stream.",
    "shape": "`chat`, `tools`, `json_object` or `json_schema`; `tools` wins over the others.",
    "http_status": "What you were sent; 499 where you left. A stream that failed later keeps 200.",
    "error_code": "The code of the error, or null.",
    "backend_reported_input_tokens": _INPUT,
    "backend_reported_output_tokens": _OUTPUT,
    "backend_reported_reasoning_tokens": _REASONING,
    "generated_output_tokens": _GENERATED,
    "delivered_output_tokens": _DELIVERED,
    "svc_counted_input_tokens": "The gateway's own count; null outside of the sample. Never billed.",
    "svc_counted_output_tokens": "The gateway's own count; null outside of the sample. Never billed.",
    "reconciliation": "`matched`, `diverged` or `unavailable`; null outside of the sample.",
    "reconciliation_divergence": "(counted - reported) / reported over input and output, as a decimal.",
    "system_fingerprint": "As the model server sent it.",
    "input_price_per_mtok": "The price when the request was admitted. It is never changed.",
    "output_price_per_mtok": "The price when the request was admitted. It is never changed.",
    "price_currency": "The currency of prices and costs. Never add two of them.",
    "input_cost": "Reported input tokens / 10^6 x price, exact, with 14 decimals.",
    "output_cost": "Reported output tokens / 10^6 x price, exact, with 14 decimals.",
    "total_cost": "The sum of the two, exactly.",
    "cost_provisional": "True during the beta.",
    "time_to_first_token_ms": "Milliseconds from the request to the first piece of the answer.",
    "total_duration_ms": "Milliseconds from the request to its end.",
}
PAGE: Final[Mapping[str, str]] = {
    "columns": "The names of the columns, in the order of a CSV.",
    "rows": "The rows of this page, oldest first.",
    "next_cursor": "Send it as `cursor` for the next page; null on the last one.",
}
