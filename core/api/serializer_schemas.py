"""The JSON Schema of a body that a serializer of DRF reads."""

from __future__ import annotations

from typing import Any

from rest_framework import fields
from rest_framework.serializers import Serializer

from core.api.openapi import Json


def schema_of(serializer: type[Serializer[Any]]) -> Json:
    """The object that ``serializer`` takes, which refuses unknown members."""
    members: dict[str, fields.Field[Any, Any, Any, Any]] = dict(serializer().fields)
    return {
        "type": "object",
        "properties": {name: _member(field) for name, field in members.items()},
        "required": [name for name, field in members.items() if field.required],
        "additionalProperties": False,
    }


def _member(field: fields.Field[Any, Any, Any, Any]) -> Json:
    schema = _type_of(field)
    if field.allow_null:
        schema = {"anyOf": [schema, {"type": "null"}]}
    if field.default is not fields.empty:
        schema["default"] = field.default
    return schema


def _type_of(field: fields.Field[Any, Any, Any, Any]) -> Json:
    own: Json | None = getattr(field, "json_schema", None)
    if own is not None:
        return dict(own)
    if isinstance(field, fields.ChoiceField):
        return {"enum": list(field.choices)}
    if isinstance(field, fields.BooleanField):
        return {"type": "boolean"}
    if isinstance(field, fields.DateTimeField):
        return {"type": "string", "format": "date-time"}
    if isinstance(field, fields.IntegerField):
        return _bounded("integer", minimum=field.min_value, maximum=field.max_value)
    if isinstance(field, fields.ListField):
        array = _bounded("array", maxItems=field.max_length)
        return array | {"items": _member(field.child)}
    if isinstance(field, fields.CharField):
        return _bounded("string", minLength=1, maxLength=field.max_length)
    raise TypeError(f"{type(field).__name__} has no schema yet.")


def _bounded(kind: str, **bounds: float | None) -> Json:
    return {"type": kind, **{name: bound for name, bound in bounds.items() if bound is not None}}
