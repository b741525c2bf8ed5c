"""Token counts in the form of a dialect."""

from __future__ import annotations

from typing import Any

from inference.wire.dialects import RunningUsage
from simulators.chat.dialects.definition import Dialect
from simulators.chat.exchange import Exchange

_CACHED_TOKENS = 3
"""The tokens of each prompt that llama.cpp reports as cached."""


def usage_of(exchange: Exchange, dialect: Dialect, *, final: bool = True) -> dict[str, Any]:
    """Return the ``usage`` so far."""
    figures = exchange.usage(final=final)
    return {
        "prompt_tokens": figures.prompt_tokens,
        "completion_tokens": figures.completion_tokens,
        "total_tokens": figures.total_tokens,
        **dialect.usage_members,
    }


def running_usage_of(exchange: Exchange, dialect: Dialect) -> dict[str, Any]:
    """Return the members with running usage that a chunk has beside its choice."""
    if dialect.running_usage is RunningUsage.LLAMA_CPP:
        return {"timings": timings_of(exchange, final=False)}
    return {"usage": usage_of(exchange, dialect, final=False)}


def timings_of(exchange: Exchange, *, final: bool = True) -> dict[str, Any]:
    """Return llama.cpp's ``timings``: the prompt is ``cache_n`` plus ``prompt_n``."""
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
