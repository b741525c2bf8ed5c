"""What model servers do differently, as operators say it of a backend; plain data."""

from __future__ import annotations

from enum import StrEnum


class RunningUsage(StrEnum):
    """How a server reports token figures while a stream runs, when it is asked to."""

    NONE = "none"
    """Only at the end."""
    VLLM = "vllm"
    """``usage`` on every chunk, asked for by ``stream_options.continuous_usage_stats``."""
    LLAMA_CPP = "llama.cpp"
    """``timings`` on every chunk, asked for by ``timings_per_token``."""


class OutputCapField(StrEnum):
    """The name under which a server reads the most tokens that it may generate."""

    BOTH = "both"
    """Either: the same figure is sent twice."""
    MAX_TOKENS = "max_tokens"
    MAX_COMPLETION_TOKENS = "max_completion_tokens"


class KeepAlive(StrEnum):
    """Whether connections to a backend are used again for the next request."""

    AUTO = "auto"
    """They are; after streams not, where the server is seen to close them."""
    OFF = "off"
    """Each request has a new one."""
