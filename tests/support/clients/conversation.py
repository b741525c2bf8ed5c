"""The shared conversation of all clients, and the comparison of their view with the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import BaseModel

from accounts.keys.keys import mint
from accounts.models import Organization, Scope
from tests.support.live import Gateway

MODEL = "acme/demo-8b"

FIRST_TURN = "say: Good morning, Ada."
SECOND_TURN = "say: It is noon."
ANSWERS = ("Good morning, Ada.", "It is noon.")

QUESTION = "What is the weather in Paris?"
TOOL_RESULT = "14 degrees and rain"
TOOL_ANSWER = "Here is what I found: 14 degrees and rain."
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Current weather in a city",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
            },
            "required": ["city", "unit"],
        },
    },
}


def city_tool(name: str) -> dict[str, Any]:
    """A tool that takes a city."""
    city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    return {
        "type": "function",
        "function": {"name": name, "parameters": {**city, "additionalProperties": False}},
    }


READING_QUESTION = 'Read the thermometer in "Lyon": 21 degrees.'


class Reading(BaseModel):
    """A structured answer; the schema subset expresses optional by a union with null."""

    city: str
    degrees: int
    note: str | None


@dataclass(frozen=True)
class Seen:
    """One answer as its client saw it; the usage row must agree."""

    request_id: str
    model: str
    input: int
    output: int
    streamed: bool
    shape: str = "chat"


def seen_whole(completion: ChatCompletion, shape: str = "chat") -> Seen:
    """Convert a whole answer of the SDK; ``_request_id`` is its documented public name."""
    assert completion.usage is not None
    assert completion._request_id is not None
    return Seen(
        completion._request_id,
        completion.model,
        completion.usage.prompt_tokens,
        completion.usage.completion_tokens,
        streamed=False,
        shape=shape,
    )


def seen_stream(chunks: Sequence[ChatCompletionChunk], shape: str = "chat") -> Seen:
    """Convert a streamed answer of the SDK, read to its end."""
    usage = chunks[-1].usage
    assert usage is not None
    return Seen(
        getattr(chunks[0], "request_id", ""),
        chunks[-1].model,
        usage.prompt_tokens,
        usage.completion_tokens,
        streamed=True,
        shape=shape,
    )


def assert_ledger_agrees(gateway: Gateway, seen: Iterable[Seen]) -> None:
    """Assert that the ledger has exactly the answers ``seen``, in order, each a success."""
    expected = list(seen)
    rows = gateway.rows_when(len(expected))
    assert [
        Seen(
            row.request_id,
            row.model_identifier,
            row.backend_reported_input_tokens,
            row.backend_reported_output_tokens,
            row.streamed,
            row.shape,
        )
        for row in rows
    ] == expected
    for row in rows:
        assert (row.outcome, row.http_status, row.error_code) == ("success", 200, None)
        assert row.generated_output_tokens == row.backend_reported_output_tokens
        assert row.delivered_output_tokens == row.backend_reported_output_tokens
        assert str(row.api_key_id) == str(gateway.api_key.pk)


def limited(gateway: Gateway, **limits: int) -> Gateway:
    """Return ``gateway`` for another organization with ``limits``."""
    organization = Organization.objects.create(
        name=f"limited {gateway.organization.pk}",
        **{"requests_per_minute": None, "tokens_per_minute": None, **limits},
    )
    minted = mint(organization, Scope.INFERENCE, "test")
    return replace(gateway, organization=organization, api_key=minted.api_key, key=minted.secret)


def text_of(chunks: Iterable[ChatCompletionChunk]) -> str:
    """Return the text of a streamed answer."""
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)


def message_of(chunks: Iterable[ChatCompletionChunk]) -> dict[str, Any]:
    """Assemble the assistant message of a stream, with tool calls by their ``index``."""
    calls: dict[int, dict[str, Any]] = {}
    content = None
    for chunk in chunks:
        for choice in chunk.choices:
            if choice.delta.content is not None:
                content = (content or "") + choice.delta.content
            for fragment in choice.delta.tool_calls or []:
                function = fragment.function
                assert function is not None
                if fragment.index not in calls:
                    calls[fragment.index] = {
                        "id": fragment.id,
                        "type": fragment.type,
                        "function": {"name": function.name, "arguments": ""},
                    }
                calls[fragment.index]["function"]["arguments"] += function.arguments or ""
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    return message
