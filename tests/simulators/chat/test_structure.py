"""Tool calls and structured answers of the simulator, and the values that it makes for schemas."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.chat.tokenizers import count_prompt, load
from simulators.chat.answers.hints import hints_in
from simulators.chat.answers.schema_values import UnfitSchema, value_for
from tests.support.model_servers.simulator import RunningSimulator, answer_tokens, ask

TOKENIZER = load("o200k")
WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "minimum": 1, "maximum": 7},
        "unit": {"enum": ["celsius", "fahrenheit"]},
    },
    "required": ["city"],
    "additionalProperties": False,
}
CLOCK = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}


def tool(name: str, parameters: dict[str, Any], description: str = "") -> dict[str, Any]:
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


TOOLS = [tool("get_weather", WEATHER, "Get the forecast."), tool("get_time", CLOCK)]


def calls(completion: dict[str, Any]) -> list[tuple[str, Any]]:
    functions = (call["function"] for call in completion["choices"][0]["message"]["tool_calls"])
    return [(function["name"], json.loads(function["arguments"])) for function in functions]


def test_a_mentioned_tool_is_called_with_values_of_the_text(simulator: RunningSimulator) -> None:
    completion = simulator.chat("Weather in New York for 3 days, in fahrenheit?", tools=TOOLS)
    (choice,) = completion["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    arguments = {"city": "New York", "days": 3, "unit": "fahrenheit"}
    assert calls(completion) == [("get_weather", arguments)]
    usage = completion["usage"]
    body = ask("Weather in New York for 3 days, in fahrenheit?")
    assert usage["completion_tokens"] == answer_tokens(TOKENIZER, choice["message"])
    assert usage["prompt_tokens"] == count_prompt(TOKENIZER, body["messages"], TOOLS)


def test_a_tool_is_known_by_a_word_of_its_description(simulator: RunningSimulator) -> None:
    assert calls(simulator.chat("What is the forecast?", tools=TOOLS))[0][0] == "get_weather"


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("Tell me a joke", {}),
        ("The weather in Paris", {"tool_choice": "none"}),
        ("say: the weather", {"tool_choice": "auto"}),
    ],
)
def test_no_tool_is_called_without_a_reason(
    simulator: RunningSimulator, text: str, fields: dict[str, Any]
) -> None:
    completion = simulator.chat(text, tools=TOOLS, **fields)
    assert calls(completion) == []
    assert completion["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize(
    ("choice", "name"),
    [
        ("required", "get_weather"),
        ({"type": "function", "function": {"name": "get_time"}}, "get_time"),
    ],
)
def test_a_call_can_be_required(simulator: RunningSimulator, choice: Any, name: str) -> None:
    completion = simulator.chat("Tell me a joke", tools=TOOLS, tool_choice=choice)
    assert [called for called, _ in calls(completion)] == [name]


def test_requiring_an_absent_tool_is_refused(simulator: RunningSimulator) -> None:
    choice = {"type": "function", "function": {"name": "absent"}}
    response = simulator.post(ask("hi", tools=TOOLS, tool_choice=choice))
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "tool_choice"


def test_streamed_calls_arrive_as_fragments(simulator: RunningSimulator) -> None:
    chunks = simulator.stream("weather in Paris and time in Tokyo", tools=TOOLS)
    fragments = [
        fragment
        for chunk in chunks
        if chunk["choices"]
        for fragment in chunk["choices"][0]["delta"].get("tool_calls", [])
    ]
    for index, name in enumerate(("get_weather", "get_time")):
        first, *later = (fragment for fragment in fragments if fragment["index"] == index)
        assert first["type"] == "function"
        assert first["id"].startswith("call_")
        assert first["function"] == {"name": name, "arguments": ""}
        assert len(later) > 1
        assert {tuple(fragment) for fragment in later} == {("index", "function")}
        arguments = json.loads("".join(fragment["function"]["arguments"] for fragment in later))
        jsonschema.validate(arguments, (WEATHER, CLOCK)[index])
    assert chunks[-2]["choices"][0]["finish_reason"] == "tool_calls"


def test_a_token_cap_cuts_the_arguments_short(simulator: RunningSimulator) -> None:
    completion = simulator.chat("weather in Paris", tools=TOOLS, max_tokens=5)
    (choice,) = completion["choices"]
    assert choice["finish_reason"] == "length"
    assert completion["usage"]["completion_tokens"] == 5
    with pytest.raises(json.JSONDecodeError):
        calls(completion)


def test_a_structured_answer_fits_its_schema(simulator: RunningSimulator) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "w", "schema": WEATHER, "strict": True}}
    completion = simulator.chat("Paris", response_format=form)
    content = completion["choices"][0]["message"]["content"]
    jsonschema.validate(json.loads(content), WEATHER)
    assert completion["usage"]["completion_tokens"] == TOKENIZER.count(content)


@pytest.mark.parametrize(
    "schema",
    [{"$ref": "#/$defs/absent"}, {"enum": []}, {"properties": [1]}, {"type": "array", "items": 5}],
)
def test_a_schema_without_a_value_is_refused(simulator: RunningSimulator, schema: Any) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "w", "schema": schema}}
    response = simulator.post(ask("hello", response_format=form))
    refused_tool = simulator.post(
        ask("hello", tools=[tool("t", {"properties": {"a": schema}})], tool_choice="required")
    )
    assert (response.status_code, response.json()["error"]["param"]) == (400, "response_format")
    assert (refused_tool.status_code, refused_tool.json()["error"]["param"]) == (400, "tools")


TREE = {
    "type": "object",
    "properties": {
        "value": {"type": "number"},
        "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
        "children": {"type": "array", "items": {"$ref": "#"}},
    },
    "required": ["value", "next", "children"],
    "additionalProperties": False,
}
FORMAT_CHECKER = jsonschema.Draft202012Validator.FORMAT_CHECKER
FORMATS = ["date", "date-time", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"]


@pytest.mark.parametrize(
    "schema",
    [
        WEATHER,
        TREE,
        True,
        {"const": {"a": [1]}},
        {"enum": [3, None]},
        {"type": ["null", "string"]},
        {"oneOf": [{"type": "integer"}, {"type": "string"}]},
        {"allOf": [{"properties": {"a": {"type": "null"}}}, {"required": ["a"]}], "type": "object"},
        {"$ref": "#/$defs/a~1b/items", "$defs": {"a/b": {"items": {"type": "boolean"}}}},
        {"$ref": "#/definitions/n", "definitions": {"n": {"type": "integer"}}},
        {"type": "array", "items": {"type": "string"}, "minItems": 3, "uniqueItems": True},
        {"type": "array", "items": {"type": "integer"}, "minItems": 4, "uniqueItems": True},
        {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 2, "uniqueItems": True},
        {"type": "array", "prefixItems": [{"type": "null"}, {"type": "integer"}], "items": False},
        {"type": "array", "maxItems": 0},
        {"type": "string", "minLength": 40, "maxLength": 41},
        {"type": "string", "maxLength": 2},
        {"type": "integer", "exclusiveMinimum": 5},
        {"type": "integer", "maximum": -3},
        {"type": "integer", "minimum": 10, "multipleOf": 7},
        {"type": "integer", "exclusiveMinimum": 14, "exclusiveMaximum": 22, "multipleOf": 7},
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.25},
        {"type": "number", "multipleOf": 0.1},
        {"type": "number", "minimum": 2.5, "maximum": 2.75},
        {"type": "object", "minProperties": 2, "additionalProperties": {"type": "integer"}},
        {"type": "object", "required": ["loose"]},
        {"minimum": 4},
        {"items": {"type": "null"}},
        *({"type": "string", "format": form} for form in FORMATS),
    ],
    ids=json.dumps,
)
def test_a_value_fits_its_schema(schema: Any) -> None:
    for text in ("", 'Is Ann Lee, 42, in "Rome" on 2026-03-04? Write to ann@example.org'):
        value = value_for(schema, hints_in(text))
        jsonschema.validate(value, schema, format_checker=FORMAT_CHECKER)


SCALARS = st.sampled_from(["string", "number", "integer", "boolean", "null"]).map(
    lambda name: {"type": name}
)


def _object(members: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": members,
        "required": sorted(members),
        "additionalProperties": False,
    }


SCHEMAS = st.recursive(
    SCALARS | st.lists(st.text(max_size=3), min_size=1).map(lambda names: {"enum": names}),
    lambda inner: (
        st.dictionaries(st.text(max_size=4), inner, max_size=3).map(_object)
        | st.tuples(inner, st.integers(0, 3)).map(
            lambda pair: {"type": "array", "items": pair[0], "minItems": pair[1]}
        )
        | st.lists(inner, min_size=1, max_size=3).map(lambda branches: {"anyOf": branches})
    ),
    max_leaves=12,
)


@given(schema=SCHEMAS, text=st.text(max_size=30))
@settings(max_examples=200, deadline=None)
def test_a_value_fits_any_schema_of_the_subset(schema: Any, text: str) -> None:
    jsonschema.validate(value_for(schema, hints_in(text)), schema)


def test_an_endless_schema_is_refused() -> None:
    endless = {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}
    for schema in (endless, {"$ref": "#"}, {"type": "integer", "minimum": 3, "maximum": 2}):
        with pytest.raises(UnfitSchema):
            value_for(schema, hints_in(""))
