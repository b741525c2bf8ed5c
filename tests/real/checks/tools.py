"""Tool calls and structured output."""

from __future__ import annotations

import json
from typing import Any

from jsonschema import validate
from pydantic import BaseModel

from tests.real.replies import Reply
from tests.real.servers.upstreams import Says
from tests.real.trial import HELLO, Trial
from tests.support.clients.conversation import city_tool

TOOL = city_tool("get_weather")
CALLED = [("get_weather", {"city": "Rome"}), ("get_weather", {"city": "Oslo"})]
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"rows": {"type": "integer", "enum": [1, 2]}, "paid": {"type": "boolean"}},
    "required": ["rows", "paid"],
    "additionalProperties": False,
}
SHAPED: dict[str, Any] = {
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "ledger", "strict": True, "schema": SCHEMA},
    },
    "max_tokens": 200,
}


class Paid(BaseModel):
    """What the SDK is asked to parse."""

    paid: bool


def called(reply: Reply) -> list[tuple[str, Any]]:
    """Names and arguments of the calls, which have ids of their own."""
    ids = {call.id for call in reply.calls}
    assert "" not in ids
    assert len(ids) == len(reply.calls)
    return [(call.name, json.loads(call.arguments)) for call in reply.calls]


def ask(trial: Trial, **fields: Any) -> Reply:
    return trial.ask(Says.CALLS, tools=[TOOL], max_tokens=200, **fields)


def parallel_calls(trial: Trial) -> None:
    reply = ask(trial)

    assert (called(reply), reply.finish) == (CALLED, "tool_calls")
    assert trial.gateway.row(reply.request_id).shape == "tools"


def streamed_calls(trial: Trial) -> None:
    reply = ask(trial, stream=True)

    assert (called(reply), reply.finish, reply.ended) == (CALLED, "tool_calls", True)
    assert all(call.fragments > 3 for call in reply.calls)


def required_and_named(trial: Trial) -> None:
    named = {"type": "function", "function": {"name": "get_weather"}}

    for choice in ("required", named):
        reply = ask(trial, tool_choice=choice)
        # The contract leaves the finish reason of a named call to the server.
        assert called(reply)[0] == CALLED[0]


def choice_none(trial: Trial) -> None:
    reply = ask(trial, tool_choice="none")

    assert (reply.calls, reply.finish) == ([], "stop")
    assert "get_weather" in reply.text


def one_call_at_a_time(trial: Trial) -> None:
    assert called(ask(trial, parallel_tool_calls=False)) == CALLED[:1]


def several_calls_all_the_same(trial: Trial) -> None:
    assert called(ask(trial, parallel_tool_calls=False)) == CALLED


def history(trial: Trial) -> None:
    """A call and its result in the conversation: the prompt is what the server makes of them."""
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'},
    }
    messages = [
        *HELLO,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
    ]
    reply = ask(trial, messages=messages)

    direct = trial.direct(Says.CALLS, tools=[TOOL], max_tokens=200, messages=messages)
    assert reply.tokens == direct.tokens
    assert reply.tokens[0] > ask(trial).tokens[0]


def sdk_streams_calls(trial: Trial) -> None:
    """The stream helper of openai-python puts the fragments together."""
    with trial.gateway.openai().chat.completions.stream(
        model=trial.model(Says.CALLS),
        messages=[{"role": "user", "content": "Weather?"}],
        tools=[TOOL],  # type: ignore[list-item]
        max_tokens=200,
    ) as stream:
        message = stream.get_final_completion().choices[0].message

    found = [
        (call.function.name, json.loads(call.function.arguments))
        for call in message.tool_calls or []
    ]
    assert found == CALLED


def tools_are_ignored(trial: Trial) -> None:
    reply = trial.ask(tools=[TOOL], tool_choice="required")

    assert (reply.status, reply.calls) == (200, [])
    assert reply.text != ""


def json_object(trial: Trial) -> None:
    fields: dict[str, Any] = {
        "response_format": {"type": "json_object"},
        "max_tokens": 40,
    }
    reply = trial.ask(**fields)

    assert reply.text.lstrip().startswith("{")
    assert trial.gateway.row(reply.request_id).shape == "json_object"


def json_schema(trial: Trial) -> None:
    for streamed in (False, True):
        reply = trial.ask(**SHAPED, stream=streamed)
        validate(json.loads(reply.text), SCHEMA)
        assert trial.gateway.row(reply.request_id).shape == "json_schema"


def sdk_parses_a_class(trial: Trial) -> None:
    completion = trial.gateway.openai().chat.completions.parse(
        model=trial.model(),
        messages=[{"role": "user", "content": "Paid?"}],
        response_format=Paid,
        max_tokens=200,
    )

    assert completion.choices[0].message.parsed is not None


def shapes_are_ignored(trial: Trial) -> None:
    for fields in (SHAPED, {"response_format": {"type": "json_object"}}):
        reply = trial.ask(**fields)
        assert reply.status == 200
        assert not reply.text.lstrip().startswith("{")
