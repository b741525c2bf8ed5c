"""vLLM: newest, and as it was up to 0.9."""

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

_type = by_status(
    {400: "BadRequestError", 404: "NotFoundError", 503: "ServiceUnavailable"},
    "InternalServerError",
)


def _inner(status: int, message: str) -> Members:
    return {"message": message, "type": _type(status), "param": None, "code": status}


def _refusal(status: int, message: str) -> Members:
    # The middleware that checks keys has a different error body.
    return {"error": "Unauthorized" if status == 401 else _inner(status, message)}


def _flat_refusal(status: int, message: str) -> Members:
    return {"object": "error", **_inner(status, message)}


VLLM = Dialect(
    sources=(
        "vllm/entrypoints/openai/chat_completion/serving.py at 006c49d: role chunk, delta.reasoning, "
        "finish_reason and stop_reason on the chunk with the last text, usage on every chunk "
        "(continuous_usage_stats), fingerprint on the usage chunk, error and [DONE] at the end",
        "vllm/entrypoints/openai/engine/serving.py: create_error_response, code is the status",
        "vllm issue 35705: the last content and finish_reason share a chunk",
    ),
    running_usage=RunningUsage.VLLM,
    reasoning_field="reasoning",
    opening=Opening.EMPTY_CONTENT,
    calls=Calls.PIECES,
    finishes_with_text=True,
    choice_members={"logprobs": None, "token_ids": None},
    finish_members={"stop_reason": None},
    message_members={
        "refusal": None,
        "annotations": None,
        "audio": None,
        "function_call": None,
        "tool_calls": [],
        "reasoning": None,
    },
    whole_members={
        "service_tier": None,
        "system_fingerprint": None,
        "prompt_logprobs": None,
        "prompt_token_ids": None,
        "kv_transfer_params": None,
    },
    usage_members={"prompt_tokens_details": None},
    in_band_error=InBandError(
        {"error": _inner(500, "EngineCore encountered an issue.")}, done_after=True
    ),
    refusal=_refusal,
)

VLLM_0_9 = replace(
    VLLM,
    sources=(
        "vllm/entrypoints/openai/serving_engine.py up to 0.9: ErrorResponse is flat, with "
        '"object": "error", and is put under "error" in a stream',
        "vllm/entrypoints/openai/protocol.py up to 0.9: reasoning_content",
    ),
    reasoning_field="reasoning_content",
    message_members={"tool_calls": [], "reasoning_content": None},
    in_band_error=InBandError(
        {"error": _flat_refusal(500, "EngineCore encountered an issue.")}, done_after=True
    ),
    refusal=_flat_refusal,
)
