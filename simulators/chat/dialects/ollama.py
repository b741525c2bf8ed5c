"""Ollama: newest, and as it was in 2024."""

from __future__ import annotations

from dataclasses import replace

from inference.wire.dialects import RunningUsage
from simulators.chat.dialects.definition import (
    Calls,
    Dialect,
    InBandError,
    Members,
    Opening,
    by_status,
)

_type = by_status({400: "invalid_request_error", 404: "not_found_error"}, "api_error")


def _refusal(status: int, message: str) -> Members:
    return {"error": {"message": message, "type": _type(status), "param": None, "code": None}}


OLLAMA = Dialect(
    sources=(
        "openai/openai.go at fb30760: reads max_tokens only; fp_ollama; delta.reasoning with an "
        "empty content beside it; a tool call in one piece; usage chunk without choices; code null",
        "middleware/openai.go at fb30760: the role stands in the first chunk, with its text; the "
        "finish chunk has an empty delta",
        'server/routes.go at fb30760, streamResponse, writes {"error": "..."} when generation '
        "fails in mid-stream, and middleware/openai.go reads it as a chunk that says nothing: the "
        "client gets an empty chunk without a model, then a proper end without finish or [DONE]",
        "ollama issue 17118: such a stream closes cleanly, curl exits with 0",
    ),
    output_caps=("max_tokens",),
    running_usage=RunningUsage.NONE,
    reasoning_field="reasoning",
    opening=Opening.WITH_FIRST_TOKEN,
    calls=Calls.WHOLE,
    fingerprint="fp_ollama",
    delta_members={"content": ""},
    message_members={"content": ""},
    in_band_error=InBandError(None),
    refusal=_refusal,
)

OLLAMA_2024 = replace(
    OLLAMA,
    sources=(
        'ollama issue 4357: finish_reason is "" until the end, the role in every chunk',
        "ollama issue 7881: tool calls have no index (fixed in 0.5)",
    ),
    calls_have_index=False,
    choice_members={"finish_reason": ""},
    delta_members={"role": "assistant", "content": ""},
)
