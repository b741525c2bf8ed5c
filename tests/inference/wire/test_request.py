"""The fields of an accepted chat request that reach a backend, and those that do not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from core.errors import UnsupportedParameter
from inference.wire.dialects import OutputCapField, RunningUsage
from tests.support.cases.chat_requests import CALL, MINIMAL, NAMED, TOOL, refusal, request, sent

CANARY = "canary-5f1c"


def test_members_that_are_not_modelled_never_reach_the_backend() -> None:
    extra = {CANARY: {"deep": [CANARY]}, "x_" + CANARY: CANARY}
    part = {"type": "text", "text": "a", **extra}
    chat = request(
        **extra,
        messages=[
            {"role": "user", "content": [part], **extra},
            {
                "role": "assistant",
                "tool_calls": [{**CALL, "function": {**CALL["function"], **extra}, **extra}],
                **extra,
            },
            {"role": "tool", "tool_call_id": "call_1", "content": [part], **extra},
        ],
        stream=True,
        stream_options={"include_usage": False, **extra},
        tools=[{**TOOL, "function": {**TOOL["function"], **extra}, **extra}],
        tool_choice={"type": "function", "function": {"name": "weather", **extra}, **extra},
        response_format={"type": "json_schema", "json_schema": {**NAMED, **extra}, **extra},
        reasoning_effort=CANARY,
        functions=[CANARY],
        continuous_usage_stats=CANARY,
        timings_per_token=CANARY,
    )
    for dialect in RunningUsage:
        body = chat.backend_body("m", running_usage=dialect)
        assert CANARY.encode() not in body


def test_documents_of_the_caller_are_passed_on_whole() -> None:
    document = {"type": "object", "minimum": 10**30, "x": [None, {"y": None}], "é": "\u2028"}
    chat = request(
        tools=[{"type": "function", "function": {"name": "f", "parameters": document}}],
        response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": document}},
    )
    body = sent(chat)
    assert body["tools"][0]["function"]["parameters"] == document
    assert body["response_format"]["json_schema"]["schema"] == document
    assert chat.json_schema is not None
    assert chat.json_schema.schema == document
    assert chat.json_schema.name == "n"


@pytest.mark.parametrize("choice", ["auto", "none", None])
def test_tool_fields_without_tools_are_dropped(choice: str | None) -> None:
    body = sent(request(tools=[], tool_choice=choice, parallel_tool_calls=True))
    assert body == {**MINIMAL, "model": "demo-8b-awq"}


def test_stream_options_are_dropped_unless_the_request_streams() -> None:
    options = {"include_usage": True}
    for dialect in RunningUsage:
        body = sent(request(stream_options=options), running_usage=dialect)
        assert body == {**MINIMAL, "model": "demo-8b-awq"}
    assert "stream_options" not in sent(request(stream=False, stream_options=options))


@pytest.mark.parametrize("options", [{}, {"stream_options": {"include_usage": False}}])
def test_a_stream_always_asks_the_backend_for_usage(options: dict[str, Any]) -> None:
    chat = request(stream=True, **options)
    assert sent(chat)["stream_options"] == {"include_usage": True}
    assert sent(chat, running_usage=RunningUsage.VLLM)["stream_options"] == {
        "include_usage": True,
        "continuous_usage_stats": True,
    }
    timed = sent(chat, running_usage=RunningUsage.LLAMA_CPP)
    assert timed == {**sent(chat), "timings_per_token": True}


@pytest.mark.parametrize(
    ("caps", "output_cap"),
    [
        ({}, None),
        ({"max_tokens": 9}, 9),
        ({"max_completion_tokens": 8}, 8),
        ({"max_tokens": 9, "max_completion_tokens": 8}, 8),
    ],
)
def test_the_cap_is_sent_in_each_field_that_the_backend_reads(
    caps: dict[str, int], output_cap: int | None
) -> None:
    chat = request(**caps)
    assert chat.output_cap == output_cap
    names = {
        OutputCapField.BOTH: ("max_tokens", "max_completion_tokens"),
        OutputCapField.MAX_TOKENS: ("max_tokens",),
        OutputCapField.MAX_COMPLETION_TOKENS: ("max_completion_tokens",),
    }
    for field, read in names.items():
        forwarded = dict.fromkeys(read, output_cap) if output_cap else {}
        body = sent(chat, output_cap_field=field)
        assert body == {**MINIMAL, "model": "demo-8b-awq", **forwarded}
    assert sent(chat) == sent(chat, output_cap_field=OutputCapField.BOTH)


@pytest.mark.parametrize("dialect", RunningUsage)
def test_fields_of_the_operator_are_added_to_each_body(dialect: RunningUsage) -> None:
    added = b'"top_k":40,"chat_template_kwargs":{"enable_thinking":false}'
    for chat in (request(), request(stream=True)):
        assert sent(chat, running_usage=dialect, extra_fields=added) == {
            **sent(chat, running_usage=dialect),
            "top_k": 40,
            "chat_template_kwargs": {"enable_thinking": False},
        }


def test_tools_are_not_sent_to_a_model_without_tool_calling() -> None:
    chat = request(tools=[TOOL], tool_choice="none", parallel_tool_calls=True)
    assert sent(chat, send_tools=False) == {**MINIMAL, "model": "demo-8b-awq"}
    assert sent(chat)["tools"] == [TOOL]


def test_making_a_body_leaves_the_request_as_it_was() -> None:
    chat = request(stream=True, tools=[TOOL])
    before = msgspec.json.encode(chat)
    chat.backend_body("other", running_usage=RunningUsage.VLLM, send_tools=False)
    assert msgspec.json.encode(chat) == before


SCHEMA_FORMAT = {"type": "json_schema", "json_schema": NAMED}


@pytest.mark.parametrize(
    ("fields", "shape"),
    [
        ({}, "chat"),
        ({"response_format": {"type": "text"}}, "chat"),
        ({"response_format": {"type": "json_object"}}, "json_object"),
        ({"response_format": SCHEMA_FORMAT}, "json_schema"),
        ({"tools": [TOOL]}, "tools"),
        ({"tools": [TOOL], "response_format": SCHEMA_FORMAT}, "tools"),
        ({"tools": [TOOL], "tool_choice": "none"}, "chat"),
        ({"tools": [TOOL], "tool_choice": "none", "response_format": SCHEMA_FORMAT}, "json_schema"),
        ({"tools": []}, "chat"),
    ],
)
def test_the_shape_of_a_request(fields: dict[str, Any], shape: str) -> None:
    chat = request(**fields)
    assert chat.shape == shape
    assert chat.is_tool_request is (shape == "tools")


def test_n_above_one_is_unsupported_but_only_after_everything_else() -> None:
    with pytest.raises(UnsupportedParameter) as caught:
        request(n=2)
    assert (caught.value.param, caught.value.code) == ("n", "unsupported_parameter")
    assert refusal(n=2, temperature=3).param == "temperature"
    assert refusal(n=2, tool_choice="required").param == "tool_choice"


def test_the_repr_of_a_request_shows_no_content() -> None:
    assert "Hello" not in repr(request())
