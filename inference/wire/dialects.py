"""Differences between model servers: what operators configure, and what is read all the same."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec


class RunningUsage(StrEnum):
    """How a server reports token counts while a stream runs, when it is asked to."""

    AUTO = "auto"
    """Learnt from its first streams, which ask in each dialect at once."""
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
    """They are reused, those that carried a stream after a rest."""
    OFF = "off"
    """Each request gets a new connection."""


class PrefixCache(StrEnum):
    """Who shares what a server keeps of prompts: what ``cache_salt`` in a request's body says."""

    ORGANIZATION = "organization"
    """The requests of one organization: its salt is a keyed hash of its id."""
    SHARED = "shared"
    """All requests: no salt is sent."""
    NONE = "none"
    """No two requests: each has a random salt."""


_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def normalized(answer: Any) -> Any:
    """Normalize ``answer``, a decoded chunk or whole answer, in place, and return it.

    Called only for an answer that failed to parse, so a valid one costs nothing.

    ``arguments`` that are an object become its JSON text, null becomes an empty string; a ``delta``
    that is null becomes an empty object.
    """
    choices = answer.get("choices") if isinstance(answer, dict) else None
    for choice in choices if isinstance(choices, list) else ():
        if not isinstance(choice, dict):
            continue
        if "delta" in choice and choice["delta"] is None:
            choice["delta"] = {}
        for name in ("delta", "message"):
            _normalize_calls(choice.get(name))
    return answer


def is_flat_error(said: bytes) -> bool:
    """Whether a chunk or whole answer without choices is an error outside an ``error`` member.

    vLLM's and SGLang's errors have ``"object": "error"``; llama.cpp's, before September 2025, have
    a message and a code.
    """
    try:
        answer = _decode(said)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    if not isinstance(answer, dict):
        return False
    return answer.get("object") == "error" or ("message" in answer and "code" in answer)


def _normalize_calls(said: Any) -> None:
    calls = said.get("tool_calls") if isinstance(said, dict) else None
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            continue
        arguments = function.get("arguments")
        if arguments is None:
            function["arguments"] = ""
        elif isinstance(arguments, dict):
            function["arguments"] = _encode(arguments).decode()
