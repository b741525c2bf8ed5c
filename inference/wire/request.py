"""Parses ``POST /v1/chat/completions``: ``ChatRequest`` is its field table.

The structs are an allow-list: fields that they do not name are dropped while parsing and never
reach a backend. Two kinds of document are passed on whole: ``tools[].function.parameters`` and
``response_format.json_schema.schema``. Content parts that are not text are passed on whole, too, as
the contract requires. ``reasoning_content`` is the open-weights convention's name for an
assistant's reasoning: it is modelled so that an assistant message can be appended as received.
"""

from __future__ import annotations

from copy import copy
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from core.asgi.json_object import parse_object
from core.errors import UnsupportedParameter
from inference.wire import wording
from inference.wire.dialects import OutputCapField, RunningUsage

_EXAMPLE = '{"model": ..., "messages": ...}'


def parse_body(body: bytes) -> dict[str, Any]:
    """Parse the body's fields. Raises ``InvalidField`` unless it is a JSON object (``json_object``)."""
    return parse_object(body, _EXAMPLE)


class _Glimpse(msgspec.Struct):
    model: str = ""


_glimpse = msgspec.json.Decoder(_Glimpse).decode


def glimpse_model(body: bytes) -> str:
    """Return the model that ``body`` names, or an empty string when the body is invalid.

    All other members are skipped, which takes at most a tenth of the time of parsing them.
    """
    try:
        return _glimpse(body).model
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""


def model_of(fields: dict[str, Any]) -> str:
    """Return the model identifier of the request.

    Raises ``InvalidField`` for ``model`` when it is absent or is not a non-empty string.
    """
    model = fields.get("model")
    if model is None:
        raise wording.missing("model")
    if type(model) is not str or not model:
        raise wording.wrong("model", type(model).__name__)
    return model


Content = str | list[dict[str, Any]]
"""A string, or content parts: each an object with a string ``type``."""


class _Message(Struct, tag_field="role", omit_defaults=True):
    content: Content
    name: str | None = None


class SystemMessage(_Message, tag="system"):
    pass


class DeveloperMessage(_Message, tag="developer"):
    pass


class UserMessage(_Message, tag="user"):
    pass


class ToolMessage(Struct, tag_field="role", tag="tool", omit_defaults=True):
    tool_call_id: str
    content: Content
    name: str | None = None


class CalledFunction(Struct):
    """``arguments`` is JSON in a string, as the model wrote it: not always valid."""

    name: str
    arguments: str


class ToolCall(Struct):
    id: str
    type: Literal["function"]
    function: CalledFunction


class AssistantMessage(Struct, tag_field="role", tag="assistant", omit_defaults=True):
    """``content`` is passed on unchanged: null stays null, absent stays absent."""

    content: Content | UnsetType | None = UNSET
    name: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[ToolCall] | None = None


Message = SystemMessage | DeveloperMessage | UserMessage | AssistantMessage | ToolMessage


def settle_messages(messages: list[Message]) -> None:
    """Apply in place the rules that concern more than one member of a message.

    Raises ``InvalidField`` for an invalid content part, and for an assistant message without any
    content.
    """
    for index, message in enumerate(messages):
        content = message.content
        if type(content) is list:
            message.content = [
                _part(part, f"messages[{index}].content[{place}]")
                for place, part in enumerate(content)
            ]
        if type(message) is AssistantMessage:
            message.tool_calls = message.tool_calls or None
            if content is None or content is UNSET:
                _require_substitute(message, f"messages[{index}].content")


def _part(part: dict[str, Any], path: str) -> dict[str, Any]:
    kind = part.get("type")
    if kind is None:
        raise wording.missing(f"{path}.type")
    if type(kind) is not str:
        raise wording.wrong(f"{path}.type", type(kind).__name__)
    if kind != "text":
        return part
    text = part.get("text")
    if text is None:
        raise wording.missing(f"{path}.text")
    if type(text) is not str:
        raise wording.wrong(f"{path}.text", type(text).__name__)
    return {"type": "text", "text": text}


def _require_substitute(message: AssistantMessage, path: str) -> None:
    said = (message.tool_calls, message.refusal, message.reasoning_content)
    if all(part is None for part in said):
        raise wording.refused(
            path,
            "is required in an assistant message without 'tool_calls', 'refusal' or "
            "'reasoning_content'. Send a string or an array of content parts.",
        )


Shape = Literal["chat", "tools", "json_object", "json_schema"]
"""The ``shape`` column of a usage row."""

_INT64_MAX = 2**63 - 1
Positive = Annotated[int, Meta(ge=1, le=_INT64_MAX)]
Int64 = Annotated[int, Meta(ge=-_INT64_MAX - 1, le=_INT64_MAX)]
Penalty = Annotated[float, Meta(ge=-2, le=2)]
TokenId = Annotated[str, Meta(pattern=r"^[0-9]+\Z")]
FunctionName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,64}\Z")]


class StreamOptions(Struct):
    include_usage: bool | None = None


class ContinuousUsage(StreamOptions):
    """Asks vLLM for usage on every chunk (``continuous_usage_stats``)."""

    continuous_usage_stats: bool = True


class FunctionDefinition(Struct, omit_defaults=True):
    name: FunctionName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(Struct):
    type: Literal["function"]
    function: FunctionDefinition


class NamedFunction(Struct):
    name: str


class FunctionChoice(Struct):
    type: Literal["function"]
    function: NamedFunction


class TextFormat(Struct, tag_field="type", tag="text"):
    pass


class JsonObjectFormat(Struct, tag_field="type", tag="json_object"):
    pass


class NamedSchema(Struct, omit_defaults=True):
    """``schema`` may be any JSON value here: the schema subset refuses invalid ones."""

    name: Annotated[str, Meta(min_length=1)]
    schema: Any
    description: str | None = None
    strict: bool | None = None


class JsonSchemaFormat(Struct, tag_field="type", tag="json_schema"):
    json_schema: NamedSchema


class ChatRequest(Struct, omit_defaults=True):
    """One validated request. None means absent: an explicit null of an optional field is dropped.

    Contract: inference, "POST /v1/chat/completions", field table.
    """

    model: Annotated[str, Meta(min_length=1)]
    messages: Annotated[list[Message], Meta(min_length=1)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_completion_tokens: Positive | None = None
    max_tokens: Positive | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    frequency_penalty: Penalty | None = None
    presence_penalty: Penalty | None = None
    stop: str | Annotated[list[str], Meta(max_length=4)] | None = None
    seed: Int64 | None = None
    logit_bias: dict[TokenId, float] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    tools: list[Tool] | None = None
    tool_choice: Literal["auto", "none", "required"] | FunctionChoice | None = None
    parallel_tool_calls: bool | None = None
    response_format: TextFormat | JsonObjectFormat | JsonSchemaFormat | None = None
    n: Annotated[int, Meta(ge=1)] | None = None
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    service_tier: str | None = None
    store: bool | None = None
    metadata: dict[str, str] | None = None

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> ChatRequest:
        """Validate ``fields``, and apply the rules between them.

        Raises ``InvalidField`` with the path of the first wrong field, and, when there is none,
        ``UnsupportedParameter`` for ``n`` above 1.
        """
        for name in _INTEGERS:
            value = fields.get(name)
            # 1.0 is an integer in JSON Schema, and some languages have only floats.
            if type(value) is float and value.is_integer():
                fields = {**fields, name: int(value)}
        try:
            request = msgspec.convert(fields, cls, strict=True)
        except msgspec.ValidationError as error:
            raise wording.translated(str(error)) from None
        request._settle()
        return request

    @property
    def output_cap(self) -> int | None:
        """The largest number of tokens to generate, or None when the caller set no limit."""
        return self.max_completion_tokens or self.max_tokens

    @property
    def is_flex(self) -> bool:
        """Whether the request asks for OpenAI's tier ``flex``, which is slower: others go first."""
        return self.service_tier == "flex"

    @property
    def is_tool_request(self) -> bool:
        """Whether the request has tools that the model may call.

        Contract: with ``tool_choice: 'none'`` a request is not a tool-calling one.
        """
        return self.tools is not None and self.tool_choice != "none"

    @property
    def shape(self) -> Shape:
        """The request's shape; tools take precedence over the response format."""
        if self.is_tool_request:
            return "tools"
        if type(self.response_format) is JsonSchemaFormat:
            return "json_schema"
        return "json_object" if type(self.response_format) is JsonObjectFormat else "chat"

    @property
    def json_schema(self) -> NamedSchema | None:
        """The schema that the answer must match, to be checked against the subset, or None."""
        answer = self.response_format
        return answer.json_schema if type(answer) is JsonSchemaFormat else None

    def backend_body(
        self,
        model: str,
        *,
        running_usage: RunningUsage = RunningUsage.NONE,
        output_cap_field: OutputCapField = OutputCapField.BOTH,
        extra_fields: bytes = b"",
        send_tools: bool = True,
    ) -> bytes:
        """Encode the JSON body for a backend whose name for the model is ``model``.

        A stream always asks for usage, and for running usage in the backend's dialect, or in all
        of them (``AUTO``). The output cap is sent in the fields that the backend reads.
        ``extra_fields`` are encoded members of a JSON object that the request does not have. Without
        ``send_tools`` the three tool fields are left out.
        """
        body = copy(self)
        body.model = model
        if not send_tools:
            body.tools = body.tool_choice = body.parallel_tool_calls = None
        cap = self.output_cap
        if cap is not None:
            by_new_name = output_cap_field is not OutputCapField.MAX_TOKENS
            by_old_name = output_cap_field is not OutputCapField.MAX_COMPLETION_TOKENS
            body.max_completion_tokens = cap if by_new_name else None
            body.max_tokens = cap if by_old_name else None
        if self.stream:
            vllm = running_usage in (RunningUsage.VLLM, RunningUsage.AUTO)
            body.stream_options = _CONTINUOUS_USAGE if vllm else _USAGE
            if running_usage in (RunningUsage.LLAMA_CPP, RunningUsage.AUTO):
                # Not a field of ChatRequest, so a caller cannot set it.
                extra_fields = b"%b,%b" % (extra_fields, _TIMINGS) if extra_fields else _TIMINGS
        encoded = _encode(body)
        return b"%b,%b}" % (encoded[:-1], extra_fields) if extra_fields else encoded

    def __repr__(self) -> str:
        """Return a text without any content of the request, so that logs cannot contain it."""
        return f"<ChatRequest {self.shape}>"

    def _settle(self) -> None:
        """Apply the rules that concern more than one field, ``n`` last."""
        settle_messages(self.messages)
        if self.tools or self.tool_choice is not None or self.parallel_tool_calls is not None:
            self._settle_tools()
        self.tools = self.tools or None
        self.stop = None if self.stop == [] else self.stop
        if self.max_completion_tokens is not None:
            self.max_tokens = None
        if not self.stream:
            self.stream_options = None
        if self.n is not None and self.n > 1:
            raise UnsupportedParameter(
                "'n' must be 1. For more choices send the request more than once.", param="n"
            )

    def _settle_tools(self) -> None:
        choice = self.tool_choice
        if not self.tools:
            if choice not in (None, "auto", "none"):
                raise wording.refused("tool_choice", "needs 'tools'. Send them, or leave it out.")
            self.tool_choice = self.parallel_tool_calls = None
        elif type(choice) is FunctionChoice:
            name = choice.function.name
            if all(tool.function.name != name for tool in self.tools):
                raise wording.wrong("tool_choice.function.name")


_INTEGERS = ("max_completion_tokens", "max_tokens", "seed", "top_logprobs", "n")
_encode = msgspec.json.Encoder().encode
_TIMINGS = b'"timings_per_token":true'
_USAGE = StreamOptions(include_usage=True)
_CONTINUOUS_USAGE = ContinuousUsage(include_usage=True)
