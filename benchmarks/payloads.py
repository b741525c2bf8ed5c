"""The requests and answers of the benchmarks, shared by stub, load generator and tables."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

PATH: Final = "/v1/chat/completions"


class Pace(StrEnum):
    """How the stub streams: given by the end of the model's name, here and in svc's catalog."""

    EACH = "each"
    """As fast as possible, one write for each frame, as model servers do."""
    BURST = "burst"
    """All frames in one write: the worst case for a gateway that parses each frame."""
    SLOW = "slow"
    """Ten frames a second."""


FAST_TOKENS: Final = 200
SLOW_TOKENS: Final = 100
SLOW_GAP_SECONDS: Final = 0.1
PROMPT_TOKENS: Final = 60

_PROMPT = (
    "Summarise the following support ticket in one sentence, then say which team should take it. "
    "The customer writes that the export of last month stops after the first page, that the "
    "cursor in the answer is not taken back, and that this began with the update of Tuesday."
)
_WORDS = (" benchmark", " streaming")
"""In turns: LiteLLM's proxy takes a hundred equal pieces for a model that hangs, and ends the stream."""
_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\n"
    b"content-type: text/event-stream; charset=utf-8\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
STREAM_END: Final = b"0\r\n\r\n"


def request_body(pace: Pace, *, stream: bool) -> bytes:
    """A chat request of about 450 bytes, the model's name first."""
    body = {
        "model": f"bench/{pace}",
        "messages": [
            {"role": "system", "content": "You are a helpful assistant."},
            {"role": "user", "content": _PROMPT},
        ],
        "temperature": 0.2,
        "max_tokens": 256,
        "stream": stream,
    }
    return msgspec.json.encode(body)


def whole_answer() -> bytes:
    """A complete HTTP answer whose JSON has about 600 bytes, in vLLM's form."""
    message = {"role": "assistant", "content": (_WORDS[0] * 16).strip(), "tool_calls": None}
    body = msgspec.json.encode(
        {
            "id": "chatcmpl-bench",
            "object": "chat.completion",
            "created": 1_767_225_600,
            "model": "bench",
            "choices": [
                {
                    "index": 0,
                    "message": message,
                    "logprobs": None,
                    "finish_reason": "stop",
                    "stop_reason": None,
                }
            ],
            "usage": {**_usage(16), "prompt_tokens_details": None},
            "service_tier": None,
            "system_fingerprint": "fp_bench",
        }
    )
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return head % len(body) + body


def stream_pieces(tokens: int) -> list[bytes]:
    """A streamed HTTP answer, one HTTP chunk for each frame as model servers send them.

    A role frame, ``tokens`` content frames with running usage, a finish frame, a usage frame and
    ``[DONE]``; the head is in the first piece, the end of the answer in the last.
    """
    frames = [_frame({"role": "assistant", "content": ""}, 0)]
    frames += [_frame({"content": _WORDS[number % 2]}, number) for number in range(1, tokens + 1)]
    frames.append(_frame({}, tokens, "stop"))
    frames.append(_event({**_chunk_head(), "choices": [], "usage": _usage(tokens)}))
    frames.append(b"data: [DONE]\n\n")
    pieces = [b"%x\r\n%s\r\n" % (len(frame), frame) for frame in frames]
    pieces[0] = _STREAM_HEAD + pieces[0]
    pieces[-1] += STREAM_END
    return pieces


def events_of(tokens: int) -> int:
    """How many events a stream of ``tokens`` has, ``[DONE]`` included."""
    return tokens + 4


def _usage(completion_tokens: int) -> dict[str, int]:
    return {
        "prompt_tokens": PROMPT_TOKENS,
        "total_tokens": PROMPT_TOKENS + completion_tokens,
        "completion_tokens": completion_tokens,
    }


def _chunk_head() -> dict[str, object]:
    return {
        "id": "chatcmpl-bench",
        "object": "chat.completion.chunk",
        "created": 1_767_225_600,
        "model": "bench",
    }


def _frame(delta: dict[str, str], tokens: int, finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return _event({**_chunk_head(), "choices": [choice], "usage": _usage(tokens)})


def _event(chunk: dict[str, object]) -> bytes:
    return b"data: " + msgspec.json.encode(chunk) + b"\n\n"
