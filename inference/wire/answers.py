"""The structs of answers: those parsed from a model server, and those written to a client.

The structs are an allow-list, so members that the convention does not have are dropped (except
``reasoning_content``, the open-weights convention). A member of a wrong type makes the whole answer
a protocol error. Inference contract, "Chat completion response".

Structs that are parsed for every frame are hidden from the garbage collector (``gc=False``): they
come from the decoder, so they cannot contain reference cycles.
"""

from __future__ import annotations

from typing import Any

import msgspec

from inference.wire.dialects import normalized

FINISH_REASONS = frozenset({"stop", "length", "tool_calls", "content_filter", "function_call"})

# The convention's reasons in the spelling of some servers.
FINISH_ALIASES = {
    "eos": "stop",
    "eos_token": "stop",
    "stop_sequence": "stop",
    "end_turn": "stop",
    "max_tokens": "length",
}
FAILED_REASONS = frozenset({"abort", "error"})


class CompletionDetails(msgspec.Struct, gc=False):
    reasoning_tokens: int | None = None


class PromptDetails(msgspec.Struct, gc=False):
    cached_tokens: int | None = None


class Usage(msgspec.Struct, gc=False):
    """Token counts as a model server reports them; untrusted."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    completion_tokens_details: CompletionDetails | None = None
    prompt_tokens_details: PromptDetails | None = None


class TopLogprob(msgspec.Struct):
    token: str
    logprob: float
    bytes: list[int] | None = None


class TokenLogprob(msgspec.Struct):
    token: str
    logprob: float
    bytes: list[int] | None = None
    top_logprobs: list[TopLogprob] = []


class Logprobs(msgspec.Struct):
    content: list[TokenLogprob] | None = None
    refusal: list[TokenLogprob] | None = None


class FunctionFragment(msgspec.Struct, omit_defaults=True):
    name: str | None = None
    arguments: str | None = None


class ToolCallFragment(msgspec.Struct, omit_defaults=True):
    """A part of a tool call; only the first part has ``id``, ``type`` and the name."""

    index: int | None = None
    id: str | None = None
    type: str | None = None
    function: FunctionFragment | None = None


class Delta(msgspec.Struct, omit_defaults=True, gc=False):
    role: str | None = None
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[ToolCallFragment] | None = None


class ChoiceDelta(msgspec.Struct, gc=False):
    index: int = 0
    delta: Delta = msgspec.field(default_factory=Delta)
    logprobs: Logprobs | None = None
    finish_reason: str | None = None


class Chunk(msgspec.Struct, gc=False):
    """One event of a streamed answer."""

    choices: list[ChoiceDelta] | None = None
    usage: Usage | None = None
    system_fingerprint: str | None = None
    service_tier: str | None = None
    error: Any = None


class Timings(msgspec.Struct, gc=False):
    """llama.cpp's running counts; the prompt is the tokens from its cache plus those it processed."""

    cache_n: int | None = None
    prompt_n: int | None = None
    predicted_n: int | None = None

    def usage(self) -> Usage:
        """Return the same counts in the convention's form; none without ``cache_n``.

        llama.cpp sends it since September 2025. Before, the tokens from the cache are not told.
        """
        if self.cache_n is None:
            return Usage()
        prompt = None if self.prompt_n is None else self.cache_n + self.prompt_n
        return Usage(prompt, self.predicted_n, prompt_tokens_details=PromptDetails(self.cache_n))


class TimedChunk(Chunk, gc=False):
    """One event of an answer streamed by llama.cpp with ``timings_per_token``."""

    timings: Timings | None = None


def is_timed_by_llama_cpp(chunk: Chunk) -> bool:
    """Whether ``chunk`` has llama.cpp's counts, with the tokens from its cache."""
    timings = chunk.timings if isinstance(chunk, TimedChunk) else None
    return timings is not None and timings.cache_n is not None


class FunctionCall(msgspec.Struct):
    name: str
    arguments: str


class AnsweredToolCall(msgspec.Struct):
    function: FunctionCall
    id: str = ""
    type: str = "function"


class Message(msgspec.Struct):
    """The message of a whole answer as a model server sends it."""

    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[AnsweredToolCall] | None = None


class Choice(msgspec.Struct):
    message: Message
    index: int = 0
    logprobs: Logprobs | None = None
    finish_reason: str | None = None


class Completion(msgspec.Struct):
    """A whole answer as a model server sends it."""

    choices: list[Choice] | None = None
    usage: Usage | None = None
    system_fingerprint: str | None = None
    service_tier: str | None = None
    error: Any = None


class MessageObject(msgspec.Struct):
    """The message of a whole answer as a client gets it."""

    role: str
    content: str | None
    refusal: str | None
    reasoning_content: str | msgspec.UnsetType = msgspec.UNSET
    tool_calls: list[AnsweredToolCall] | msgspec.UnsetType = msgspec.UNSET


class ChoiceObject(msgspec.Struct):
    index: int
    message: MessageObject
    logprobs: Logprobs | None
    finish_reason: str


class CompletionDetailsObject(msgspec.Struct):
    reasoning_tokens: int


class PromptDetailsObject(msgspec.Struct):
    cached_tokens: int


class UsageObject(msgspec.Struct):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    completion_tokens_details: CompletionDetailsObject
    prompt_tokens_details: PromptDetailsObject | msgspec.UnsetType = msgspec.UNSET


class CompletionObject(msgspec.Struct, kw_only=True):
    """``chat.completion``: the whole answer as a client gets it."""

    id: str
    object: str = "chat.completion"
    created: int
    model: str
    system_fingerprint: str | msgspec.UnsetType = msgspec.UNSET
    service_tier: str | msgspec.UnsetType = msgspec.UNSET
    choices: list[ChoiceObject]
    usage: UsageObject
    request_id: str


class ChunkHead(msgspec.Struct, kw_only=True):
    """The members with which every ``chat.completion.chunk`` of a stream begins."""

    id: str
    object: str = "chat.completion.chunk"
    created: int
    model: str
    system_fingerprint: str | msgspec.UnsetType = msgspec.UNSET
    service_tier: str | msgspec.UnsetType = msgspec.UNSET
    request_id: str | msgspec.UnsetType = msgspec.UNSET


class UsageChunk(ChunkHead, kw_only=True):
    """The last chunk of a stream: no choices, and the usage of the whole answer."""

    choices: list[ChoiceDelta] = []
    usage: UsageObject


exact_chunk = msgspec.json.Decoder(Chunk).decode
exact_timed_chunk = msgspec.json.Decoder(TimedChunk).decode
_decode_completion = msgspec.json.Decoder(Completion).decode
_decode = msgspec.json.Decoder().decode
encode = msgspec.json.Encoder().encode


def decode_chunk(event: bytes) -> Chunk:
    """Parse one event of a stream, also where it deviates from the convention.

    Raises msgspec's errors for anything that is not a chunk.
    """
    try:
        return exact_chunk(event)
    except msgspec.ValidationError:
        return msgspec.convert(normalized(_decode(event)), Chunk)


def decode_timed_chunk(event: bytes) -> TimedChunk:
    """Parse like ``decode_chunk``, with the running counts of llama.cpp's dialect."""
    try:
        return exact_timed_chunk(event)
    except msgspec.ValidationError:
        return msgspec.convert(normalized(_decode(event)), TimedChunk)


def decode_any_chunk(event: bytes) -> Chunk:
    """Parse like ``decode_timed_chunk``, but ignore ``timings`` that are not llama.cpp's."""
    try:
        return decode_timed_chunk(event)
    except msgspec.ValidationError:
        return decode_chunk(event)


def decode_completion(body: bytes) -> Completion:
    """Parse a whole answer. Raises msgspec's errors for anything that is not one."""
    try:
        return _decode_completion(body)
    except msgspec.ValidationError:
        return msgspec.convert(normalized(_decode(body)), Completion)
