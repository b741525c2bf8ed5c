"""The bodies that the simulator reads, and those of its refusals."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from simulators.application import Rejected

Count = Annotated[int, Meta(gt=0)]
Penalty = Annotated[float, Meta(ge=-2, le=2)]


class FunctionName(Struct, frozen=True):
    name: Annotated[str, Meta(min_length=1)]


class FunctionDefinition(FunctionName, frozen=True):
    description: str | None = None
    parameters: dict[str, Any] | None = None


class Tool(Struct, frozen=True):
    type: Literal["function"]
    function: FunctionDefinition


class NamedToolChoice(Struct, frozen=True):
    type: Literal["function"]
    function: FunctionName


class JsonSchemaFormat(Struct, frozen=True):
    name: str
    schema: dict[str, Any] | bool | None = None


class ResponseFormat(Struct, frozen=True):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchemaFormat | None = None


class StreamOptions(Struct, frozen=True):
    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None


class Message(Struct, frozen=True):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[dict[str, Any]] | None = None
    name: str | None = None
    tool_call_id: str | None = None

    @property
    def text(self) -> str:
        """Return the string content, or the text parts, one per line."""
        if not isinstance(self.content, list):
            return self.content or ""
        texts = (part.get("text") for part in self.content if part.get("type") == "text")
        return "\n".join(text for text in texts if isinstance(text, str))


class ChatBody(Struct, frozen=True):
    """The body of ``POST /v1/chat/completions``; other fields are ignored."""

    model: str
    messages: Annotated[list[Message], Meta(min_length=1)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    timings_per_token: bool | None = None
    max_completion_tokens: Count | None = None
    max_tokens: Count | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    frequency_penalty: Penalty | None = None
    presence_penalty: Penalty | None = None
    n: Annotated[int, Meta(ge=1, le=1)] | None = None
    stop: str | list[str] | None = None
    seed: int | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    tools: list[Tool] | None = None
    tool_choice: Literal["auto", "none", "required"] | NamedToolChoice | None = None
    parallel_tool_calls: bool | None = None
    response_format: ResponseFormat | None = None

    @property
    def stop_sequences(self) -> list[str]:
        stops = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return [stop for stop in stops if stop]


class TopLogprob(Struct, frozen=True):
    token: str
    logprob: float
    bytes: list[int]


class TokenLogprob(TopLogprob, frozen=True):
    top_logprobs: list[TopLogprob]


class Logprobs(Struct, frozen=True):
    content: list[TokenLogprob]


class ErrorObject(Struct, frozen=True):
    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorBody(Struct, frozen=True):
    error: ErrorObject


class Rejection(Rejected):
    """The request is answered with ``status`` and the convention's error object."""

    def __init__(self, status: int, error: ErrorObject) -> None:
        super().__init__(status, ErrorBody(error), error.message)


def bad_request(message: str, param: str | None = None) -> Rejection:
    """Build a 400 that names the field ``param``."""
    return Rejection(400, ErrorObject(message, "invalid_request_error", param))


def parse_object(body: bytes) -> dict[str, Any]:
    """Parse the JSON object in ``body``. Raises ``Rejection``."""
    try:
        parsed = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise bad_request(f"The body is not valid JSON: {error}.") from None
    if not isinstance(parsed, dict):
        raise bad_request("The body must be a JSON object.")
    return parsed


def parse_chat(fields: dict[str, Any]) -> ChatBody:
    """Validate the request. Raises ``Rejection`` that names the field."""
    try:
        body = msgspec.convert(fields, ChatBody)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$")
        path = path.rstrip("`")
        if missing := re.search(r"missing required field `(\w+)`", problem):
            path += "." + missing[1]
        raise bad_request(problem, path.removeprefix(".") or None) from None
    if body.tool_choice not in (None, "none") and not body.tools:
        raise bad_request("tool_choice needs tools.", "tool_choice")
    if isinstance(body.tool_choice, NamedToolChoice):
        wanted = body.tool_choice.function.name
        if all(tool.function.name != wanted for tool in body.tools or ()):
            raise bad_request(f"tool_choice names {wanted!r}, which tools lacks.", "tool_choice")
    form = body.response_format
    if (
        form
        and form.type == "json_schema"
        and (not form.json_schema or form.json_schema.schema is None)
    ):
        raise bad_request("A json_schema response format needs a schema.", "response_format")
    return body
