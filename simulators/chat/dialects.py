"""The dialects: how real servers answer, as data, by the names that ``dialect=`` takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from inference.wire.dialects import RunningUsage

Members = Mapping[str, Any]


class Opening(StrEnum):
    """The content of the first chunk of a stream."""

    EMPTY_CONTENT = "empty content"
    """The role and an empty ``content``."""
    NULL_CONTENT = "null content"
    """The role and a null ``content``."""
    WITH_FIRST_TOKEN = "with the first token"  # noqa: S105  # no password
    """There is no separate chunk: the role comes with the first token."""


class Calls(StrEnum):
    """How a streamed tool call is cut into pieces."""

    PIECES = "pieces"
    """As in the convention: id, type and name first, then pieces of the arguments."""
    NULLS = "nulls"
    """The later pieces have ``id: null``, ``name: null`` and the type again."""
    EMPTY_NAMES = "empty names"
    """The later pieces have ``name: ""`` and the type again."""
    WHOLE = "whole"
    """Each call comes in one piece."""


@dataclass(frozen=True, slots=True)
class InBandError:
    """The error and the end of a stream whose generation fails in the middle.

    Without a ``body`` it is an empty chunk. ``field`` is the name of the event's line.
    """

    body: Members | None
    field: str = "data"
    usage_after: bool = False
    done_after: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How one server answers where the convention leaves room, or is violated.

    ``sources`` names the source of each property: a path in the server's repository with the
    version, or an issue. ``fingerprint`` may name the model: ``{model}``.
    """

    sources: tuple[str, ...]
    output_caps: tuple[str, ...] = ("max_completion_tokens", "max_tokens")
    """The fields with the output cap, in order; the first one that is present counts."""
    running_usage: RunningUsage
    reasoning_field: str
    opening: Opening
    calls: Calls
    calls_have_index: bool = True
    """False is possible for whole calls only."""
    finishes_with_text: bool = False
    """The finish reason is on the chunk with the last token, not on a separate one."""
    fingerprint: str | None = None
    fingerprint_ends_stream: bool = False
    """The fingerprint is only on the chunks with the finish reason and with the final usage."""
    reports_reasoning: bool = False
    """The usage tells how many tokens were reasoning."""
    choice_members: Members = field(default_factory=dict)
    """Added to each choice of a chunk."""
    delta_members: Members = field(default_factory=dict)
    """Added to each delta that lacks them."""
    finish_members: Members = field(default_factory=dict)
    """Added to the choice with the finish reason, streamed or not."""
    message_members: Members = field(default_factory=dict)
    """Added to a whole answer's message that lacks them."""
    whole_members: Members = field(default_factory=dict)
    usage_members: Members = field(default_factory=dict)
    headers: tuple[tuple[bytes, bytes], ...] = ()
    """Headers of a stream."""
    closes_after_streams: bool = False
    """It closes the connection after a stream without announcing it."""
    in_band_error: InBandError
    refusal: Callable[[int, str], Members]
    """Makes the error body for a status and a message."""


def by_status(types: Mapping[int, str], other: str) -> Callable[[int], str]:
    """Make a function that returns the type of an error by its status."""
    return lambda status: types.get(status, other)


_vllm_type = by_status(
    {400: "BadRequestError", 404: "NotFoundError", 503: "ServiceUnavailable"},
    "InternalServerError",
)


def _vllm_inner(status: int, message: str) -> Members:
    return {"message": message, "type": _vllm_type(status), "param": None, "code": status}


def _vllm_refusal(status: int, message: str) -> Members:
    # The middleware that checks keys has a different error body.
    return {"error": "Unauthorized" if status == 401 else _vllm_inner(status, message)}


def _vllm_flat_refusal(status: int, message: str) -> Members:
    return {"object": "error", **_vllm_inner(status, message)}


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
        {"error": _vllm_inner(500, "EngineCore encountered an issue.")}, done_after=True
    ),
    refusal=_vllm_refusal,
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
        {"error": _vllm_flat_refusal(500, "EngineCore encountered an issue.")}, done_after=True
    ),
    refusal=_vllm_flat_refusal,
)


_sglang_type = by_status({400: "BadRequestError", 404: "NotFoundError"}, "InternalServerError")


def _sglang_refusal(status: int, message: str) -> Members:
    return {
        "object": "error",
        "message": message,
        "type": _sglang_type(status),
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
        {"error": _sglang_refusal(500, "The server ran out of memory.")},
        usage_after=True,
        done_after=True,
    ),
    refusal=_sglang_refusal,
)


_ollama_type = by_status({400: "invalid_request_error", 404: "not_found_error"}, "api_error")


def _ollama_refusal(status: int, message: str) -> Members:
    return {
        "error": {"message": message, "type": _ollama_type(status), "param": None, "code": None}
    }


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
    refusal=_ollama_refusal,
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


_FAILED = "Compute error."


# LM Studio's server is not public: these habits were read in reports with its output.
def _lm_studio_refusal(_status: int, message: str) -> Members:
    return {"error": message}


LM_STUDIO = Dialect(
    sources=(
        "lmstudio-bug-tracker issue 676: the role with the first text, the model as fingerprint, "
        "logprobs null, finish chunk with an empty delta, [DONE]; stats beside usage",
        'lmstudio-bug-tracker issue 649: later tool call pieces have the name ""',
        "zed pull request 57861: usage on streams when asked for, in a chunk without choices",
        'lmstudio-bug-tracker issue 1050: an error is {"error": "text"}, a 400 even for a crash',
        "goai pull request 110: the error in a stream",
        "AutoByteus release 1.2.60: reasoning_content, or reasoning, by setting",
    ),
    running_usage=RunningUsage.NONE,
    reasoning_field="reasoning_content",
    opening=Opening.WITH_FIRST_TOKEN,
    calls=Calls.EMPTY_NAMES,
    fingerprint="{model}",
    choice_members={"logprobs": None},
    message_members={"content": "", "tool_calls": []},
    whole_members={"stats": {}},
    in_band_error=InBandError({"error": {"message": _FAILED}, "message": _FAILED}),
    refusal=_lm_studio_refusal,
)


_llama_cpp_type = by_status(
    {
        400: "invalid_request_error",
        401: "authentication_error",
        404: "not_found_error",
        503: "unavailable_error",
    },
    "server_error",
)


def _llama_cpp_inner(status: int, message: str) -> Members:
    return {"code": status, "message": message, "type": _llama_cpp_type(status)}


def _llama_cpp_refusal(status: int, message: str) -> Members:
    return {"error": _llama_cpp_inner(status, message)}


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
    in_band_error=InBandError(_llama_cpp_refusal(500, "Compute error.")),
    refusal=_llama_cpp_refusal,
)

LLAMA_CPP_2024 = replace(
    LLAMA_CPP,
    sources=("llama.cpp pull request 16109 (September 2025): until then an `error:` line",),
    in_band_error=InBandError(_llama_cpp_inner(500, "Compute error."), field="error"),
)


_plain_type = by_status(
    {
        401: "authentication_error",
        404: "not_found_error",
        429: "rate_limit_error",
        500: "server_error",
        503: "service_unavailable_error",
    },
    "invalid_request_error",
)


def _plain_refusal(status: int, message: str) -> Members:
    return {"error": {"message": message, "type": _plain_type(status), "param": None, "code": None}}


PLAIN = replace(
    VLLM_0_9,
    sources=(
        "The convention, with members that vLLM adds to it (stop_reason, token_ids, prompt_logprobs), "
        "because a gateway must handle them",
    ),
    finishes_with_text=False,
    fingerprint="svc-simulator-1",
    fingerprint_ends_stream=True,
    reports_reasoning=True,
    message_members={
        **dict.fromkeys(("refusal", "annotations", "audio", "function_call", "reasoning_content")),
        "tool_calls": [],
    },
    in_band_error=InBandError({"error": _vllm_inner(500, "The engine died.")}, done_after=True),
    refusal=_plain_refusal,
)
"""What the simulator speaks without ``dialect=``."""


DIALECTS: Mapping[str, Dialect] = MappingProxyType(
    {
        "vllm": VLLM,
        "vllm-0.9": VLLM_0_9,
        "sglang": SGLANG,
        "ollama": OLLAMA,
        "ollama-2024": OLLAMA_2024,
        "lm-studio": LM_STUDIO,
        "llama.cpp": LLAMA_CPP,
        "llama.cpp-2024": LLAMA_CPP_2024,
    }
)


def parse_dialect(name: str) -> Dialect:
    """The dialect called ``name``, or ``none``. Raises ``ValueError`` with a message for people."""
    if name == "none":
        return PLAIN
    try:
        return DIALECTS[name]
    except KeyError:
        known = ", ".join(DIALECTS)
        raise ValueError(f"There is no dialect {name!r}. Use one of {known}.") from None
