"""Token figures as a dialect writes them."""

from __future__ import annotations

from typing import Any

from inference.dialects import RunningUsage
from inference.simulator.dialects.habits import Dialect
from inference.simulator.exchange import Exchange

_CACHED_TOKENS = 3
"""Of each prompt, as llama.cpp tells them apart."""


def usage_of(exchange: Exchange, dialect: Dialect, *, final: bool = True) -> dict[str, Any]:
    """``usage`` so far."""
    figures = exchange.usage(final=final)
    return {
        "prompt_tokens": figures.prompt_tokens,
        "completion_tokens": figures.completion_tokens,
        "total_tokens": figures.total_tokens,
        **dialect.usage_members,
    }


def running_figures(exchange: Exchange, dialect: Dialect) -> dict[str, Any]:
    """What a chunk carries beside its choice while the stream runs."""
    if dialect.running_usage is RunningUsage.LLAMA_CPP:
        return {"timings": timings_of(exchange, final=False)}
    return {"usage": usage_of(exchange, dialect, final=False)}


def timings_of(exchange: Exchange, *, final: bool = True) -> dict[str, Any]:
    """llama.cpp's ``timings``: the prompt is ``cache_n`` and ``prompt_n`` together."""
    figures = exchange.usage(final=final)
    cached = min(_CACHED_TOKENS, figures.prompt_tokens)
    return {
        "cache_n": cached,
        "prompt_n": figures.prompt_tokens - cached,
        "prompt_ms": 12.5,
        "prompt_per_token_ms": 1.25,
        "prompt_per_second": 800.0,
        "predicted_n": figures.completion_tokens,
        "predicted_ms": 25.0,
        "predicted_per_token_ms": 2.5,
        "predicted_per_second": 400.0,
    }
