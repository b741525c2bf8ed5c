"""llama.cpp's server: newest, and before September 2025."""

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
    {
        400: "invalid_request_error",
        401: "authentication_error",
        404: "not_found_error",
        503: "unavailable_error",
    },
    "server_error",
)


def _inner(status: int, message: str) -> Members:
    return {"code": status, "message": message, "type": _type(status)}


def _refusal(status: int, message: str) -> Members:
    return {"error": _inner(status, message)}


LLAMA_CPP = Dialect(
    sources=(
        "tools/server/server-task.cpp at 00efb3e: role chunk with null content, no logprobs unless "
        "asked for, finish chunk with an empty delta, timings on the last chunk, and on all with "
        "timings_per_token",
        "tools/server/server-common.cpp at 006639c: error bodies",
        "tools/server/server-context.cpp: an error in a stream is its last event, without [DONE]",
        "tools/server/server-http.cpp at 00dd081: a stream's provider ends with false, whereupon "
        "the HTTP library closes the connection, which its headers had promised to keep",
        "common/chat.cpp, common_chat_msg_diff_to_json_oaicompat: tool call pieces",
    ),
    running_usage=RunningUsage.LLAMA_CPP,
    reasoning_field="reasoning_content",
    opening=Opening.NULL_CONTENT,
    calls=Calls.PIECES,
    fingerprint="b6789-0123abcd",
    headers=((b"keep-alive", b"timeout=5, max=100"), (b"x-accel-buffering", b"no")),
    closes_after_streams=True,
    in_band_error=InBandError(_refusal(500, "Compute error.")),
    refusal=_refusal,
)

LLAMA_CPP_2024 = replace(
    LLAMA_CPP,
    sources=("llama.cpp pull request 16109 (September 2025): until then an `error:` line",),
    in_band_error=InBandError(_inner(500, "Compute error."), field="error"),
)
