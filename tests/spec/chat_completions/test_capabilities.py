"""A capability that a model lacks is refused by name, before a model server gets a request."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.live import Gateway
from tests.support.live_catalog import publish

TOOL = {"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
STRUCTURED = {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}


@pytest.mark.parametrize(
    ("lacks", "fields", "code"),
    [
        ("tool_calling", {"tools": [TOOL]}, "model_does_not_support_tools"),
        (
            "structured_output",
            {"response_format": STRUCTURED},
            "model_does_not_support_structured_output",
        ),
    ],
)
def test_the_capability_that_a_model_lacks_is_refused(
    gateway: Gateway, lacks: str, fields: dict[str, Any], code: str
) -> None:
    has = {"tool_calling": True, "structured_output": True, lacks: False}
    entry = publish(gateway, **has)

    answer = gateway.chat("Hello", entry.identifier, **fields)

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)
    assert answer.json()["error"]["param"] in fields
    assert gateway.rows() == []


def test_a_schema_outside_the_subset_lists_every_violation_with_its_pointer(
    gateway: Gateway,
) -> None:
    schema = {
        "type": "object",
        "properties": {"a/b": {"type": "integer", "minimum": 1}, "c": {"type": "string"}},
        "required": ["a/b"],
        "additionalProperties": False,
    }

    answer = gateway.chat(
        "Hello",
        response_format={"type": "json_schema", "json_schema": {"name": "X", "schema": schema}},
    )

    error = answer.json()["error"]
    assert answer.status_code == 400
    assert (error["code"], error["param"]) == ("unsupported_json_schema", "response_format")
    assert {(each["code"], each["pointer"]) for each in error["violations"]} == {
        ("unsupported_keyword", "/properties/a~1b/minimum"),
        ("optional_property", "/properties/c"),
    }


def test_parameters_of_a_tool_are_not_checked_against_the_subset(gateway: Gateway) -> None:
    parameters = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 3}}}
    tool = {"type": "function", "function": {"name": "count", "parameters": parameters}}

    assert gateway.chat("Hello", tools=[tool]).status_code == 200


def test_the_catalog_shows_the_capabilities_that_are_refused(gateway: Gateway) -> None:
    listed = {entry["id"]: entry for entry in gateway.get("/models").json()["data"]}

    for identifier in gateway.models.values():
        can = listed[identifier]["capabilities"]
        with_tools = gateway.chat("Hello", identifier, tools=[TOOL])
        with_schema = gateway.chat("Hello", identifier, response_format=STRUCTURED)
        assert (with_tools.status_code == 200) is can["tool_calling"]
        assert (with_schema.status_code == 200) is can["structured_output"]
        assert (can["json_schema_subset"] is not None) is can["structured_output"]
