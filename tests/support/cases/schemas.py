"""Schemas for the tests of the subset."""

from __future__ import annotations

from typing import Any

from inference.schema_subset import violations

STRING: dict[str, Any] = {"type": "string"}
OBJECT: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}


def an_object(**properties: Any) -> dict[str, Any]:
    return {**OBJECT, "properties": properties, "required": list(properties)}


def found(schema: Any) -> list[tuple[str, str]]:
    return [(violation.code, violation.pointer) for violation in violations(schema)]


def in_property(schema: Any) -> list[tuple[str, str]]:
    """Return the violations when ``schema`` is a property of an otherwise valid schema."""
    return found(an_object(a=schema))


def nested_arrays(levels: int) -> dict[str, Any]:
    schema = STRING
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return schema
