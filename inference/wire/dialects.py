"""Differences between model servers that operators configure on a backend; plain data."""

from __future__ import annotations

from enum import StrEnum


class RunningUsage(StrEnum):
    """How a server reports token counts while a stream runs, when it is asked to."""

    NONE = "none"
    """Only at the end."""
    VLLM = "vllm"
    """``usage`` on every chunk, asked for by ``stream_options.continuous_usage_stats``."""
    LLAMA_CPP = "llama.cpp"
    """``timings`` on every chunk, asked for by ``timings_per_token``."""


class OutputCapField(StrEnum):
    """The field in which a server expects the largest number of tokens to generate."""

    BOTH = "both"
    """Both fields are sent, with the same number."""
    MAX_TOKENS = "max_tokens"
    MAX_COMPLETION_TOKENS = "max_completion_tokens"


class KeepAlive(StrEnum):
    """Whether connections to a backend are reused for the next request."""

    AUTO = "auto"
    """They are reused, except after streams where the server was seen to close them."""
    OFF = "off"
    """Each request gets a new connection."""
