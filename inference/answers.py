"""The shapes of answers: what is read from a model server, and what is written to a client.

Reading is by struct, so a member that the convention does not have is dropped by not being here
(``reasoning_content``, the open-weights convention, excepted). A member of a wrong type makes the
whole answer a protocol error. Inference contract, "Chat completion response".

What is read for every frame is kept from the garbage collector (``gc=False``): it is made by the
decoder, so it cannot refer to itself.
"""

from __future__ import annotations

from typing import Any

import msgspec

from inference.mending import mended

FINISH_REASONS = frozenset({"stop", "length", "tool_calls", "content_filter", "function_call"})

# How some servers spell the convention's reasons.
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
    """Token figures as a model server reports them; untrusted."""

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
    """A part of a tool call; ``id``, ``type`` and the name stand in the first part only."""

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
    """llama.cpp's running figures. The prompt is what it took from its cache and what it read."""

    cache_n: int | None = None
    prompt_n: int | None = None
    predicted_n: int | None = None

    def usage(self) -> Usage:
        """The same figures as the convention writes them."""
        cached = self.cache_n or 0
        prompt = None if self.prompt_n is None else cached + self.prompt_n
        return Usage(prompt, self.predicted_n, prompt_tokens_details=PromptDetails(cached))


class TimedChunk(Chunk, gc=False):
    """One event of an answer streamed by llama.cpp with ``timings_per_token``."""

    timings: Timings | None = None


class FunctionCall(msgspec.Struct):
    name: str
    arguments: str


class ToolCall(msgspec.Struct):
    function: FunctionCall
    id: str = ""
    type: str = "function"


class Message(msgspec.Struct):
    """The message of a whole answer as a model server sends it."""

    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[ToolCall] | None = None


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
    tool_calls: list[ToolCall] | msgspec.UnsetType = msgspec.UNSET


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
    """What every ``chat.completion.chunk`` of a stream begins with."""

    id: str
    object: str = "chat.completion.chunk"
    created: int
    model: str
    system_fingerprint: str | msgspec.UnsetType = msgspec.UNSET
    service_tier: str | msgspec.UnsetType = msgspec.UNSET
    request_id: str | msgspec.UnsetType = msgspec.UNSET


class UsageChunk(ChunkHead, kw_only=True):
    """The last data of a stream: no choices, the whole usage."""

    choices: list[ChoiceDelta] = []
    usage: UsageObject


_decode_chunk = msgspec.json.Decoder(Chunk).decode
_decode_timed_chunk = msgspec.json.Decoder(TimedChunk).decode
_decode_completion = msgspec.json.Decoder(Completion).decode
_decode = msgspec.json.Decoder().decode
encode = msgspec.json.Encoder().encode


def decode_chunk(event: bytes) -> Chunk:
    """One event of a stream. Raises what msgspec raises, for anything that is not a chunk."""
    try:
        return _decode_chunk(event)
    except msgspec.ValidationError:
        return msgspec.convert(mended(_decode(event)), Chunk)


def decode_timed_chunk(event: bytes) -> TimedChunk:
    """``decode_chunk`` with the running figures of llama.cpp's dialect."""
    try:
        return _decode_timed_chunk(event)
    except msgspec.ValidationError:
        return msgspec.convert(mended(_decode(event)), TimedChunk)


def decode_completion(body: bytes) -> Completion:
    """A whole answer. Raises what msgspec raises, for anything that is not one."""
    try:
        return _decode_completion(body)
    except msgspec.ValidationError:
        return msgspec.convert(mended(_decode(body)), Completion)
