"""Prepared answers for benchmarks, which cost almost no work per request."""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import UNSET

from simulators.chat.options import DEFAULT_MODEL, Options
from simulators.chat.responses import read_body
from simulators.chat.wire import (
    AnswerMessage,
    Chunk,
    ChunkChoice,
    Completion,
    CompletionChoice,
    Delta,
    Usage,
)
from simulators.serving import JSON

PROMPT_TOKENS = 20
USUAL_FRAMES = 200
MOST_FRAMES = 20_000
_ID, _CREATED = "chatcmpl-0123456789abcdef0123456789abcdef", 1_767_225_600
_WORD = " benchmark"
_SSE_HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8")]


class _Ask(msgspec.Struct):
    stream: bool | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None


async def answer_fast(options: Options, receive: Any, send: Any) -> None:
    """Send a fixed answer of about 600 bytes, or a stream of ``max_tokens`` frames of about 250.

    The stream goes out in one write, or frame by frame when the options set a pace. Raises
    ``msgspec.DecodeError`` on a body that is not a JSON object.
    """
    ask = msgspec.json.decode(await read_body(receive), type=_Ask)
    if not ask.stream:
        await send({"type": "http.response.start", "status": 200, "headers": _WHOLE_HEADERS})
        await send({"type": "http.response.body", "body": _WHOLE})
        return
    frames = ask.max_completion_tokens or ask.max_tokens or USUAL_FRAMES
    first, text, last = _stream(min(frames, MOST_FRAMES))
    await send({"type": "http.response.start", "status": 200, "headers": _SSE_HEADERS})
    if options.tokens_per_second:
        await asyncio.sleep(options.first_token_delay)
        await _paced(send, first, text, 1 / options.tokens_per_second)
        await send({"type": "http.response.body", "body": last})
    else:
        await send({"type": "http.response.body", "body": first + b"".join(text) + last})


async def _paced(send: Any, first: bytes, frames: list[bytes], gap: float) -> None:
    clock = asyncio.get_running_loop().time
    due = clock()
    await send({"type": "http.response.body", "body": first, "more_body": True})
    for frame in frames:
        due += gap
        await asyncio.sleep(max(0, due - clock()))
        await send({"type": "http.response.body", "body": frame, "more_body": True})


@lru_cache(maxsize=64)
def _stream(frames: int) -> tuple[bytes, list[bytes], bytes]:
    """Make the role frame, ``frames`` content frames, and finish, usage and ``[DONE]`` together."""
    finish = _frame([ChunkChoice(delta=Delta(), finish_reason="stop")])
    usage = _frame([], _usage(frames))
    return (
        _frame([ChunkChoice(delta=Delta(role="assistant", content=""))]),
        [_frame([ChunkChoice(delta=Delta(content=_WORD))])] * frames,
        finish + usage + b"data: [DONE]\n\n",
    )


def _frame(choices: list[ChunkChoice], usage: Usage | None = None) -> bytes:
    chunk = Chunk(
        id=_ID, created=_CREATED, model=DEFAULT_MODEL, choices=choices, usage=usage or UNSET
    )
    return b"data: " + msgspec.json.encode(chunk) + b"\n\n"


def _usage(completion_tokens: int) -> Usage:
    return Usage(PROMPT_TOKENS, PROMPT_TOKENS + completion_tokens, completion_tokens)


_MESSAGE = AnswerMessage(content=(_WORD * 8).strip())
_WHOLE = msgspec.json.encode(
    Completion(
        id=_ID,
        created=_CREATED,
        model=DEFAULT_MODEL,
        choices=[CompletionChoice(message=_MESSAGE, finish_reason="stop")],
        usage=_usage(8),
    )
)
_WHOLE_HEADERS = [(b"content-type", JSON), (b"content-length", str(len(_WHOLE)).encode())]
