"""Chat requests: valid and invalid fields, answers of each shape, and failing model servers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.answers.cases import CHAT, Case, chat, say

TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
CLOCK: dict[str, Any] = {"type": "function", "function": {"name": "clock"}}
CALL: dict[str, Any] = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "weather", "arguments": '{"city": "Paris"}'},
}
NAMED: dict[str, Any] = {
    "name": "person",
    "strict": True,
    "schema": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"],
        "additionalProperties": False,
    },
}
SCHEMA = {"type": "json_schema", "json_schema": NAMED}

VALUES: dict[str, list[Any]] = {
    "model": ["", 5, None, "acme/unknown", "acme/draft"],
    "messages": [[], {}, "x", None, [5], [{}], [{"role": "robot", "content": "x"}]],
    "stream": [1, "true", {}, None, False],
    "stream_options": [True, [], {"include_usage": 1}, {"include_usage": True}],
    "max_completion_tokens": [0, -1, 1.5, "5", True, 2**63, 1, 7, 7.0],
    "max_tokens": [0, -1, 1.5, "5", False, 2**70, 1, 9],
    "temperature": [-0.1, 2.1, "1", True, [], 0.7],
    "top_p": [-0.1, 1.1, "1", True, 0.5],
    "frequency_penalty": [-2.1, 2.1, "1", False, 0.1],
    "presence_penalty": [-2.1, 2.1, "1", False, 0.1],
    "stop": [["a"] * 5, 5, {}, ["a", 5], "e", ["a", "b"]],
    "seed": [1.5, 2**63, "1", True, 42],
    "logit_bias": [{"a": 1}, {"1": "x"}, [], 5, {"50256": -100}],
    "logprobs": [1, "true", True],
    "top_logprobs": [-1, 21, 1.5, True, "5"],
    "tools": [{}, "weather", 5, [5], [{}], [{**TOOL, "type": "x"}], [TOOL]],
    "tool_choice": ["any", 5, [], True, "required"],
    "parallel_tool_calls": [1, "true"],
    "response_format": ["json_object", [], 5, {}, {"type": "xml"}, {"type": "json_schema"},
                        {"type": "json_object"}, {"type": "text"}],
    "n": [0, -1, 1.5, True, "1", 1, 2],
    "user": [5, {}, "u"],
    "service_tier": [5, "auto"],
    "store": [1, True],
    "metadata": [{"a": 1}, [], "x", {"team": "a"}],
    "unknown_field": [1, None, {"a": []}],
}  # fmt: skip

MESSAGES: list[Any] = [
    {"role": "user"},
    {"role": "user", "content": None},
    {"role": "user", "content": [{"type": "text"}]},
    {"role": "user", "content": [{"type": "text", "text": "say: parts"}]},
    {"role": "user", "content": "x", "name": 5},
    {"role": "assistant"},
    {"role": "assistant", "content": 5},
    {"role": "assistant", "tool_calls": [{**CALL, "type": "x"}]},
    {"role": "assistant", "tool_calls": [CALL, {}]},
    {"role": "tool", "content": "x"},
    {"role": "tool", "tool_call_id": "call_1"},
    {"role": "developer", "content": "Be brief."},
]

BODIES: dict[str, bytes] = {
    "empty": b"",
    "not JSON": b"{",
    "an array": b"[]",
    "null": b"null",
    "no model": b"{}",
    "not UTF-8": b'{"model": "\xff"}',
    "NaN": b'{"model": "acme/demo-8b", "temperature": NaN}',
    "a lone surrogate": b'{"model": "acme/demo-8b", "user": "\\ud800"}',
    "nested too deep": b'{"model": "acme/demo-8b", "messages": ' + b"[" * 100 + b"]" * 100 + b"}",
    "a number too large": b'{"model": "acme/demo-8b", "temperature": 1e999}',
    "duplicate names": b'{"model": "x", "model": "acme/demo-8b", "messages": []}',
}

SCHEMAS: list[Any] = [
    {"type": "string"},
    {"type": "object", "properties": {"a": {"$ref": "http://x"}}},
    {"type": "object", "properties": {"a": {"type": "x"}}, "additionalProperties": True},
    {"type": "object", "patternProperties": {}},
    {"oneOf": [{"type": "null"}]},
    {},
]

SHAPES: dict[str, dict[str, Any]] = {
    "text": say("say: Hello, world! \u2028 \u00e9\u4f60 \U0001f600"),
    "question": say("What is a bee?"),
    "reasoning": say("Please think about bees."),
    "tool": say("What is the weather in Paris?", tools=[TOOL]),
    "two tools": say("What is the weather in Paris, and the clock?", tools=[TOOL, CLOCK]),
    "required tool": say("Hi", tools=[TOOL], tool_choice="required"),
    "named tool": say(
        "Hi", tools=[TOOL], tool_choice={"type": "function", "function": {"name": "weather"}}
    ),
    "tool_choice none": say("What is the weather?", tools=[TOOL], tool_choice="none"),
    "schema": say("A person, please.", response_format=SCHEMA),
    "json object": say("An object, please.", response_format={"type": "json_object"}),
    "cap": say("What is a bee?", max_completion_tokens=3),
    "both caps": say("What is a bee?", max_completion_tokens=3, max_tokens=9),
    "stop": say("say: one END two", stop="END"),
    "logprobs": say("say: one two", logprobs=True, top_logprobs=2),
    "after a tool": {
        "model": "acme/demo-8b",
        "messages": [
            {"role": "user", "content": "What is the weather in Paris?"},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "call_1", "content": "Sunny."},
        ],
        "tools": [TOOL],
    },
}

FAULTS = (
    *("status=400", "status=401", "status=404", "status=413", "status=422", "status=429"),
    *("status=500", "status=503", "redirect", "html", "empty", "null", "error_200", "cut", "cut@3"),
    *("reset", "reset@3", "hang@3", "garbage@0", "garbage@3", "error_frame@0", "error_frame@3"),
    *("no_usage", "usage_twice", "negative_usage", "decreasing_usage", "absurd_usage"),
    *("usage_every_chunk", "no_finish", "no_done", "after_done", "repeat_role"),
    *("empty_choices_first", "split_bytes", "crlf", "comments", "bom", "big_frame"),
    *("no_usage,cut@3", "crlf,split_bytes"),
)
DIALECTS = (
    *("vllm", "vllm-0.9", "sglang", "ollama", "ollama-2024", "lm-studio"),
    *("llama.cpp", "llama.cpp-2024"),
)
MODELS = ("acme/demo-8b", "acme/plain-8b", "acme/llama-8b")


def chat_cases() -> Iterator[Case]:
    yield from _credentials()
    for name, raw in BODIES.items():
        yield chat(f"body: {name}", raw)
    yield chat("body: compressed", say("Hi"), **{"content-encoding": "gzip"})
    yield chat("body: too large for the model", say("x" * 70_000, "acme/demo-mini"))
    yield chat("body: too large for every model", say("x" * 1_100_000))
    yield chat("body: large", say("say: x", metadata={"filler": "y" * 300_000}))
    for field, values in VALUES.items():
        for number, value in enumerate(values):
            more = {"tools": [TOOL]} if field == "parallel_tool_calls" else {}
            yield chat(f"field: {field} {number}", {**say("Hi there"), **more, field: value})
    for number, message in enumerate(MESSAGES):
        body = {"model": "acme/demo-8b", "messages": [{"role": "user", "content": "x"}, message]}
        yield chat(f"message: {number}", body)
    for number, schema in enumerate(SCHEMAS):
        named = {"name": "n", "schema": schema, "strict": True}
        format_ = {"type": "json_schema", "json_schema": named}
        yield chat(f"schema: {number}", say("Hi", response_format=format_))
    yield chat("capability: tools", say("Hi", "acme/demo-mini", tools=[TOOL]))
    yield chat("capability: schema", say("Hi", "acme/demo-mini", response_format=SCHEMA))
    yield chat(
        "capability: tools unused", say("Hi", "acme/demo-mini", tools=[TOOL], tool_choice="none")
    )
    yield chat("superseded model", say("say: old", "acme/old-8b"))
    yield chat("capture", say("say: kept"), **{"x-svc-diagnostic-capture": "1"})
    yield chat("own request id", say("say: x"), **{"x-request-id": "mine"})
    yield from _answers()
    yield from _limits()


def _credentials() -> Iterator[Case]:
    for key in (None, "read", "speech", "revoked", "unknown", "malformed"):
        yield chat(f"key: {key}", say("Hi"), key)
    yield chat("key: basic", say("Hi"), None, authorization="Basic eDp5")
    for method in ("GET", "PUT", "DELETE", "OPTIONS", "HEAD"):
        yield Case(f"chat: method {method}", "inference", method, CHAT, "inference")


def _answers() -> Iterator[Case]:
    for streamed in (False, True):
        kind = "streamed" if streamed else "whole"
        for name, body in SHAPES.items():
            for model in MODELS:
                yield chat(f"{kind}: {name}, {model}", {**body, "model": model, "stream": streamed})
        for fault in FAULTS:
            for model in MODELS:
                text = f"say: one two three four five six seven [[sim fault={fault}]]"
                yield chat(f"{kind}: {fault}, {model}", say(text, model, stream=streamed))
        for dialect in DIALECTS:
            model = "acme/llama-8b" if dialect.startswith("llama") else "acme/demo-8b"
            for name in ("text", "reasoning", "tool", "two tools", "cap"):
                text = SHAPES[name]["messages"][0]["content"] + f" [[sim dialect={dialect}]]"
                body = {**SHAPES[name], **say(text, model), "stream": streamed}
                yield chat(f"{kind}: {dialect}, {name}", body)
            for fault in ("error_frame@2", "cut@2"):
                text = f"say: one two three [[sim dialect={dialect} fault={fault}]]"
                yield chat(f"{kind}: {dialect}, {fault}", say(text, model, stream=streamed))
        yield chat(f"{kind}: unreachable", say("Hi", "acme/dead-8b", stream=streamed))
        yield chat(f"{kind}: long", say("[[sim tokens=900]]", stream=streamed))
        yield chat(
            f"{kind}: bursts", say("[[sim tokens=200 burst=20]]", "acme/llama-8b", stream=streamed)
        )
        yield chat(f"{kind}: slow header", say("x [[sim fault=slow_header=9]]", stream=streamed))


def _limits() -> Iterator[Case]:
    for number in range(4):
        yield chat(f"limits: {number}", say("say: x"), "limited")
    yield chat("limits: tokens", say("say: x", max_tokens=5000), "few_tokens")
    yield chat("limits: tokens that never fit", say("say: x", max_tokens=30000), "few_tokens")
