"""Refusing any body of a megabyte costs little more than parsing an ordinary one of its size."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from core.errors import ApiError
from inference import schema_subset
from inference.wire import ChatRequest, parse_body

BYTES = 900_000
TIMES = 7
"""Every kind costs less than twice an ordinary body; without bounds 10 to 75 times as much."""

MESSAGE = {"role": "user", "content": "a"}


def honest() -> bytes:
    """Make an ordinary body with as many short messages as fit."""
    return json.dumps({"model": "m", "messages": [MESSAGE] * (BYTES // 32)}).encode()


def listed(item: bytes) -> bytes:
    """Make a body with an ignored field full of ``item``."""
    head = b'{"model":"m","messages":[{"role":"user","content":"a"}],"x":['
    return head + b",".join([item] * (BYTES // (len(item) + 1))) + b"]}"


def with_schema(schema: Any) -> bytes:
    answer = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    request = {"model": "m", "messages": [MESSAGE], "response_format": answer}
    return json.dumps(request, separators=(",", ":")).encode()


FAMILIES = {
    "empty arrays": lambda: listed(b"[]"),
    "nested arrays": lambda: listed(b"[" * 8 + b"]" * 8),
    "deeply nested arrays": lambda: listed(b"[" * 60 + b"]" * 60),
    "tiny floats": lambda: listed(b"1e-309"),
    "almost normal floats": lambda: listed(b"2.2250738585072011e-308"),
    "branches": lambda: with_schema({"anyOf": [{}] * 300_000}),
    "branches of no type": lambda: with_schema(
        {"type": "object", "anyOf": [{"type": "x"}] * 60_000}
    ),
    "properties": lambda: with_schema(
        {"type": "object", "properties": {f"{name}": {} for name in range(90_000)}}
    ),
    "a chain of references": lambda: with_schema(
        {
            "type": "object",
            "$defs": {f"{name}": {"$ref": f"#/$defs/{name + 1}"} for name in range(28_000)},
        }
    ),
    "definitions of many references": lambda: with_schema(
        {
            "type": "object",
            "$defs": {
                f"{name}": {"anyOf": [{"$ref": f"#/$defs/{other}"} for other in range(150)]}
                for name in range(270)
            },
        }
    ),
}


def read(body: bytes) -> None:
    """Parse and check a body as the gateway does before limits."""
    try:
        request = ChatRequest.from_fields(parse_body(body))
        if (named := request.json_schema) is not None:
            schema_subset.check(named.schema, named.name)
    except ApiError:
        pass


def cpu_seconds(body: bytes) -> float:
    """Return the best of three times, because other processes only add to it."""
    taken = []
    for _ in range(3):
        begun = time.thread_time()
        read(body)
        taken.append(time.thread_time() - begun)
    return min(taken)


@pytest.mark.parametrize("family", FAMILIES)
def test_no_body_costs_far_more_than_an_ordinary_one(family: str) -> None:
    assert cpu_seconds(FAMILIES[family]()) < TIMES * cpu_seconds(honest())


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (listed(b"[]"), "more than 50000 objects and arrays"),
        (listed(b"1e-309"), "more than 50000 numbers with a fraction or an exponent"),
        (listed(b"[" * 65 + b"]" * 65), "nests deeper than 64 levels"),
    ],
    ids=["arrays", "fractions", "nesting"],
)
def test_a_flood_of_values_is_refused_with_our_message(body: bytes, why: str) -> None:
    with pytest.raises(ApiError, match=why):
        parse_body(body)


def test_brackets_and_numbers_inside_text_are_not_values() -> None:
    content = '[{"a": 1e-309}, \\"[[\\\\' * 30_000
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": content}]})
    assert parse_body(body.encode())["messages"][0]["content"] == content


def test_a_body_of_fifty_thousand_of_each_is_read() -> None:
    values: list[Any] = [[]] * 49_998 + [0.5] * 50_000
    assert parse_body(json.dumps({"x": values}).encode()) == {"x": values}


def test_numbers_are_parsed_alike_in_small_bodies_and_large_ones() -> None:
    numbers = [0.1, 1e300, -1e-300, 5e-324, 1.7976931348623157e308, 10**30, 2**63, -0.0, 1.0]
    small = json.dumps({"x": numbers}).encode()
    large = json.dumps({"x": numbers, "y": "y" * 20_000}).encode()
    assert repr(parse_body(small)["x"]) == repr(parse_body(large)["x"]) == repr(numbers)
    for body in (small, large):
        with pytest.raises(ApiError, match="out of range"):
            parse_body(body.replace(b"1e+300", b"1e+400"))


def an_object(properties: int) -> dict[str, Any]:
    names = [f"p{number}" for number in range(properties)]
    return {
        "type": "object",
        "additionalProperties": False,
        "required": names,
        "properties": {name: {"type": "null"} for name in names},
    }


def test_a_schema_of_ten_thousand_schemas_is_checked_and_one_of_more_is_refused() -> None:
    schema_subset.check(an_object(schema_subset.MAX_SCHEMAS - 1), "x")
    found = schema_subset.violations(an_object(schema_subset.MAX_SCHEMAS))
    assert [(each.code, each.pointer) for each in found] == [("depth_limit", "")]
    assert "more than 10000 schemas" in found[0].message


def test_what_a_client_sees_of_many_violations_does_not_depend_on_what_follows_them() -> None:
    def told(properties: int) -> Any:
        schema = an_object(properties) | {"required": []}
        with pytest.raises(ApiError) as caught:
            schema_subset.check(schema, "x")
        return caught.value.message, caught.value.extra

    assert told(150) == told(40_000)
