"""Shared chat requests: valid and invalid values for each rule of the contract."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.errors import InvalidField
from inference.wire import ChatRequest

USER: dict[str, Any] = {"role": "user", "content": "Hello"}
MINIMAL: dict[str, Any] = {"model": "acme/demo-8b", "messages": [USER]}
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "x-any": [None, 1]}},
}
CALL: dict[str, Any] = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "weather", "arguments": '{"city": '},
}
SCHEMA: dict[str, Any] = {"type": "object", "x-not-checked-here": [None]}
NAMED: dict[str, Any] = {"name": "person", "schema": SCHEMA}

ACCEPTED: dict[str, list[Any]] = {
    "model": ["a", "acme/demo-8b"],
    "messages": [[USER], [{"role": "system", "content": "x"}, USER]],
    "stream": [True, False],
    "stream_options": [{}, {"include_usage": True}, {"include_usage": None}],
    "max_completion_tokens": [1, 2**40],
    "max_tokens": [1, 2**40],
    "temperature": [0, 2, 0.7],
    "top_p": [0, 1, 0.5],
    "frequency_penalty": [-2, 2, 0.1],
    "presence_penalty": [-2, 2, 0.1],
    "stop": ["END", ["a"], ["a", "b", "c", "d"]],
    "seed": [0, -(2**63), 2**63 - 1],
    "logit_bias": [{}, {"50256": -100, "7": 0.5}],
    "logprobs": [True, False],
    "top_logprobs": [0, 20],
    "tools": [[], [TOOL], [{"type": "function", "function": {"name": "a.b-C_9"}}]],
    "tool_choice": [
        "auto", "none", "required", {"type": "function", "function": {"name": "weather"}},
    ],
    "parallel_tool_calls": [True, False],
    "response_format": [
        {"type": "text"},
        {"type": "json_object"},
        {"type": "json_schema", "json_schema": NAMED},
        {"type": "json_schema", "json_schema": {**NAMED, "strict": True}},
    ],
    "n": [1],
    "user": ["u"],
    "safety_identifier": ["s"],
    "prompt_cache_key": ["k"],
    "service_tier": ["auto", "anything"],
    "store": [True, False],
    "metadata": [{}, {"team": "a"}],
}  # fmt: skip
REFUSED: dict[str, list[Any]] = {
    "model": ["", 5, None],
    "messages": [[], {}, "x", None],
    "stream": [1, "true", {}],
    "stream_options": [True, []],
    "max_completion_tokens": [0, -1, 1.5, "5", True, 2**63],
    "max_tokens": [0, -1, 1.5, "5", False, 2**70],
    "temperature": [-0.1, 2.1, "1", True, [], 10**400],
    "top_p": [-0.1, 1.1, "1", True],
    "frequency_penalty": [-2.1, 2.1, "1", False],
    "presence_penalty": [-2.1, 2.1, "1", False],
    "stop": [["a"] * 5, 5, {}],
    "seed": [1.5, 2**63, -(2**63) - 1, "1", True],
    "logit_bias": [{"a": 1}, {"": 1}, {"-1": 1}, {"1\n": 1}, {"1": "x"}, {"1": True}, [], 5],
    "logprobs": [1, "true"],
    "top_logprobs": [-1, 21, 1.5, True, "5"],
    "tools": [{}, "weather", 5],
    "tool_choice": ["any", 5, [], True],
    "parallel_tool_calls": [1, "true"],
    "response_format": ["json_object", [], 5],
    "n": [0, -1, 1.5, True, "1"],
    "user": [5, {}],
    "safety_identifier": [5],
    "prompt_cache_key": [5],
    "service_tier": [5],
    "store": [1, "true"],
    "metadata": [{"a": 1}, {"a": None}, [], "x"],
}
NEEDS: dict[str, dict[str, Any]] = {
    "tool_choice": {"tools": [TOOL]},
    "parallel_tool_calls": {"tools": [TOOL]},
    "stream_options": {"stream": True},
}


INVALID_MESSAGES: list[tuple[Any, str]] = [
    (5, "messages[1]"),
    ({}, "messages[1].role"),
    ({"role": None, "content": "x"}, "messages[1].role"),
    ({"role": "function", "content": "x"}, "messages[1].role"),
    ({"role": "x' - at `$.user`", "content": "x"}, "messages[1].role"),
    ({"role": "user"}, "messages[1].content"),
    ({"role": "user", "content": None}, "messages[1].content"),
    ({"role": "user", "content": 5}, "messages[1].content"),
    ({"role": "user", "content": {"type": "text"}}, "messages[1].content"),
    ({"role": "user", "content": ["x"]}, "messages[1].content[0]"),
    (
        {"role": "user", "content": [{"type": "text", "text": "x"}, {}]},
        "messages[1].content[1].type",
    ),
    ({"role": "user", "content": [{"type": 5}]}, "messages[1].content[0].type"),
    ({"role": "user", "content": [{"type": "text"}]}, "messages[1].content[0].text"),
    ({"role": "user", "content": [{"type": "text", "text": 5}]}, "messages[1].content[0].text"),
    ({"role": "user", "content": "x", "name": 5}, "messages[1].name"),
    ({"role": "system", "content": None}, "messages[1].content"),
    ({"role": "assistant"}, "messages[1].content"),
    ({"role": "assistant", "content": None, "tool_calls": []}, "messages[1].content"),
    ({"role": "assistant", "content": 5}, "messages[1].content"),
    ({"role": "assistant", "content": "x", "refusal": 5}, "messages[1].refusal"),
    (
        {"role": "assistant", "content": "x", "reasoning_content": {}},
        "messages[1].reasoning_content",
    ),
    ({"role": "assistant", "tool_calls": {}}, "messages[1].tool_calls"),
    ({"role": "assistant", "tool_calls": [5]}, "messages[1].tool_calls[0]"),
    ({"role": "assistant", "tool_calls": [CALL, {}]}, "messages[1].tool_calls[1].id"),
    ({"role": "assistant", "tool_calls": [{**CALL, "id": 5}]}, "messages[1].tool_calls[0].id"),
    (
        {"role": "assistant", "tool_calls": [{**CALL, "type": "x"}]},
        "messages[1].tool_calls[0].type",
    ),
    (
        {"role": "assistant", "tool_calls": [{**CALL, "function": "x"}]},
        "messages[1].tool_calls[0].function",
    ),
    (
        {"role": "assistant", "tool_calls": [{**CALL, "function": {"arguments": "{}"}}]},
        "messages[1].tool_calls[0].function.name",
    ),
    (
        {"role": "assistant", "tool_calls": [{**CALL, "function": {"name": "f", "arguments": {}}}]},
        "messages[1].tool_calls[0].function.arguments",
    ),
    ({"role": "tool", "content": "x"}, "messages[1].tool_call_id"),
    ({"role": "tool", "content": "x", "tool_call_id": None}, "messages[1].tool_call_id"),
    ({"role": "tool", "tool_call_id": "call_1"}, "messages[1].content"),
]


INVALID_NESTED: list[tuple[dict[str, Any], str]] = [
    ({"tools": [5]}, "tools[0]"),
    ({"tools": [TOOL, {}]}, "tools[1].type"),
    ({"tools": [{**TOOL, "type": "web_search"}]}, "tools[0].type"),
    ({"tools": [{"type": "function"}]}, "tools[0].function"),
    ({"tools": [{"type": "function", "function": []}]}, "tools[0].function"),
    *(
        ({"tools": [{"type": "function", "function": function}]}, f"tools[0].function.{member}")
        for member, function in [
            ("name", {}),
            ("name", {"name": ""}),
            ("name", {"name": "a" * 65}),
            ("name", {"name": "a b"}),
            ("name", {"name": "a\n"}),
            ("name", {"name": 5}),
            ("description", {"name": "a", "description": 5}),
            ("parameters", {"name": "a", "parameters": []}),
            ("parameters", {"name": "a", "parameters": "{}"}),
            ("strict", {"name": "a", "strict": "yes"}),
        ]
    ),
    ({"tools": [TOOL], "tool_choice": {}}, "tool_choice.type"),
    ({"tools": [TOOL], "tool_choice": {"type": "tool"}}, "tool_choice.type"),
    ({"tools": [TOOL], "tool_choice": {"type": "function"}}, "tool_choice.function"),
    (
        {"tools": [TOOL], "tool_choice": {"type": "function", "function": 5}},
        "tool_choice.function",
    ),
    (
        {"tools": [TOOL], "tool_choice": {"type": "function", "function": {}}},
        "tool_choice.function.name",
    ),
    (
        {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "other"}}},
        "tool_choice.function.name",
    ),
    ({"response_format": {}}, "response_format.type"),
    ({"response_format": {"type": "xml"}}, "response_format.type"),
    ({"response_format": {"type": 5}}, "response_format.type"),
    ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
    *(
        (
            {"response_format": {"type": "json_schema", "json_schema": document}},
            f"response_format.json_schema{member}",
        )
        for member, document in [
            ("", 5),
            (".name", {"schema": SCHEMA}),
            (".name", {"name": "", "schema": SCHEMA}),
            (".name", {"name": 5, "schema": SCHEMA}),
            (".schema", {"name": "person"}),
            (".strict", {**NAMED, "strict": "yes"}),
        ]
    ),
    ({"stream": True, "stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
    ({"stop": ["a", 5]}, "stop[1]"),
    ({"tool_choice": "required"}, "tool_choice"),
    ({"tool_choice": "required", "tools": []}, "tool_choice"),
    ({"tool_choice": {"type": "function", "function": {"name": "weather"}}}, "tool_choice"),
]


def request(**fields: Any) -> ChatRequest:
    return ChatRequest.from_fields({**MINIMAL, **fields})


def sent(chat: ChatRequest, **options: Any) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(chat.backend_body("demo-8b-awq", **options))
    return body


def refusal(**fields: Any) -> InvalidField:
    with pytest.raises(InvalidField) as caught:
        request(**fields)
    return caught.value
