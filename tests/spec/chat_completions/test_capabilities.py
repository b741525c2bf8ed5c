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

CASES: list[tuple[bool, bool, dict[str, Any], str | None]] = [
    (False, False, {"tools": []}, None),
    (False, False, {"tools": [TOOL], "tool_choice": "none"}, None),
    (False, True, {"tools": [TOOL], "tool_choice": "required"}, "model_does_not_support_tools"),
    (True, False, {"tools": [TOOL]}, None),
    (
        True,
        False,
        {"response_format": STRUCTURED},
        "model_does_not_support_structured_output",
    ),
    (False, True, {"response_format": STRUCTURED}, None),
]


@pytest.mark.parametrize(("tools", "structured", "fields", "code"), CASES)
def test_a_missing_capability_is_refused(
    gateway: Gateway, tools: bool, structured: bool, fields: dict[str, Any], code: str | None
) -> None:
    entry = publish(gateway, tool_calling=tools, structured_output=structured)

    answer = gateway.chat("Hello", entry.identifier, **fields)

    if code is None:
        assert answer.status_code == 200, answer.text
    else:
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == code
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
