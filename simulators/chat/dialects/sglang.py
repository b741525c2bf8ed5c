"""SGLang."""

from __future__ import annotations

from inference.wire.dialects import RunningUsage
from simulators.chat.dialects.definition import (
    Calls,
    Dialect,
    InBandError,
    Members,
    Opening,
    by_status,
)

_type = by_status({400: "BadRequestError", 404: "NotFoundError"}, "InternalServerError")


def _refusal(status: int, message: str) -> Members:
    return {
        "object": "error",
        "message": message,
        "type": _type(status),
        "param": None,
        "code": status,
    }


SGLANG = Dialect(
    sources=(
        "python/sglang/srt/entrypoints/openai/serving_chat.py at 002897c: role chunk, finish chunk "
        "with matched_stop, an error under status_code followed by the usage chunk and [DONE], "
        "metadata.weight_version, content is never null",
        "python/sglang/srt/entrypoints/openai/sse_utils.py: reasoning_content in every delta, "
        "null or not",
        "python/sglang/srt/entrypoints/openai/protocol.py: flat ErrorResponse; tool call pieces "
        "with every member, null where it is not set",
    ),
    running_usage=RunningUsage.VLLM,
    reasoning_field="reasoning_content",
    opening=Opening.EMPTY_CONTENT,
    calls=Calls.NULLS,
    choice_members={"logprobs": None, "matched_stop": None},
    delta_members={"reasoning_content": None},
    finish_members={"matched_stop": 151645},
    message_members={"content": "", "reasoning_content": None, "tool_calls": None},
    whole_members={"metadata": {"weight_version": "default"}},
    usage_members={"prompt_tokens_details": None, "reasoning_tokens": 0},
    in_band_error=InBandError(
        {"error": _refusal(500, "The server ran out of memory.")},
        usage_after=True,
        done_after=True,
    ),
    refusal=_refusal,
)
