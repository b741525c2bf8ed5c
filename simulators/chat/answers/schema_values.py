"""Makes a value that matches a JSON schema, as a model would.

Covers what tool definitions and structured outputs use (JSON Schema 2020-12): types, ``enum``,
``const``, objects, arrays, bounds of numbers and lengths, ``anyOf``, ``oneOf``, ``allOf``,
local ``$ref`` and the usual formats. ``pattern``, ``not`` and conditionals are ignored.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias
from urllib.parse import unquote

from simulators.chat.answers.hints import Hints

_FORMATS: Mapping[str, tuple[str, str]] = {
    "date": (r"\d{4}-\d{2}-\d{2}", "2026-01-31"),
    "date-time": (r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z", "2026-01-31T09:30:00Z"),
    "time": (r"\d{2}:\d{2}:\d{2}Z", "09:30:00Z"),
    "duration": (r"P\d+D", "P1D"),
    "email": (r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", "someone@example.com"),
    "hostname": (r"(?!)", "example.com"),
    "ipv4": (r"\d+\.\d+\.\d+\.\d+", "192.0.2.1"),
    "ipv6": (r"(?!)", "2001:db8::1"),
    "uri": (r"https?://[^\s\"'<>]+", "https://example.com/"),
    "uuid": (
        r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
        "6f2c1d7e-5b0a-4c8e-9d3f-2a1b0c9d8e7f",
    ),
}
"""For each format: its pattern in a text, and a default value."""

_LONGEST = 100_000
_WHOLE_TEXT = {"query", "question", "text", "message", "prompt", "content", "input", "search"}
_PROPER_NAME = {
    "address", "author", "city", "company", "country", "customer", "destination", "location",
    "name", "origin", "person", "place", "recipient", "region", "state", "title", "town", "user",
}  # fmt: skip


def string_value(schema: Mapping[str, Any], name: str, hints: Hints) -> str:
    """Make a string for the member ``name`` with the ``format`` and the lengths of ``schema``."""
    form = schema.get("format")
    if isinstance(form, str) and form in _FORMATS:
        pattern, usual = _FORMATS[form]
        found = re.search(pattern, hints.text)
        return found[0] if found else usual
    value = _by_name(name, hints)
    least = min(schema.get("minLength", 0), _LONGEST)
    if len(value) < least:
        value += "-" * (least - len(value))
    return value[: schema.get("maxLength", len(value))]


def _by_name(name: str, hints: Hints) -> str:
    last = re.split(r"[_\W]+|(?<=[a-z])(?=[A-Z])", name)[-1].lower()
    if last in _PROPER_NAME and (found := hints.names or hints.quoted):
        return found[0]
    if hints.quoted:
        return hints.quoted[0]
    if last in _WHOLE_TEXT and hints.text:
        return hints.text[:200]
    if found := hints.names:
        return found[0]
    return f"example {name}".strip()


Schema: TypeAlias = "Mapping[str, Any] | bool"

_SIMPLE_FROM_DEPTH = 3
"""From this depth optional members are left out, arrays are short and the flattest branch is taken."""
_DEEPEST = 24
_LONGEST_ARRAY = 1000


class UnfitSchema(ValueError):
    """No value could be made for the schema; the message gives the reason."""


def value_for(schema: Schema, hints: Hints) -> Any:
    """Make a JSON value that ``schema`` accepts, taken from ``hints`` where one fits.

    Raises ``UnfitSchema`` when a reference leads nowhere, when every value would be infinite, or
    when ``schema`` is not a schema.
    """
    try:
        return _Maker(schema, hints).value(schema, "", 0)
    except (AttributeError, TypeError, IndexError, KeyError) as error:
        raise UnfitSchema("The schema is not a valid JSON schema.") from error


class _Maker:
    def __init__(self, root: Schema, hints: Hints) -> None:
        self._root = root
        self._hints = hints

    def value(self, schema: Schema, name: str, depth: int) -> Any:
        """Make a value for ``schema``, the member ``name`` at ``depth`` levels below the root."""
        if depth > _DEEPEST:
            raise UnfitSchema("The schema requires an infinite value.")
        schema = self._resolved(schema, depth)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._choice(schema["enum"])
        match self._type(schema, depth):
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, name, depth)
            case "string":
                return string_value(schema, name, self._hints)
            case "integer":
                return self._number(schema, whole=True)
            case "number":
                return self._number(schema, whole=False)
            case "boolean":
                return not self._hints.mention("not")
            case _:
                return None

    def _resolved(self, schema: Schema, depth: int) -> Mapping[str, Any]:
        """Follow the references of ``schema``, and choose and merge its branches."""
        for _ in range(_DEEPEST):
            if isinstance(schema, bool):
                schema = {}
            merged = {
                key: value
                for key, value in schema.items()
                if key not in ("$ref", "anyOf", "oneOf", "allOf")
            }
            parts: list[Schema] = list(schema.get("allOf") or ())
            if isinstance(reference := schema.get("$ref"), str):
                parts.append(self._target(reference))
            parts += [
                self._branch(branches, depth)
                for key in ("anyOf", "oneOf")
                if (branches := schema.get(key))
            ]
            if not parts:
                return merged
            for part in parts:
                merged = _merge(merged, part)
            schema = merged
        raise UnfitSchema("The schema refers to itself in a circle.")

    def _target(self, reference: str) -> Schema:
        node: Any = self._root
        pointer = unquote(reference).removeprefix("#")
        for token in pointer.split("/")[1:]:
            key = token.replace("~1", "/").replace("~0", "~")
            if isinstance(node, Sequence) and not isinstance(node, str) and key.isdecimal():
                node = node[int(key)] if int(key) < len(node) else None
            else:
                node = node.get(key) if isinstance(node, Mapping) else None
        if not reference.startswith("#") or not isinstance(node, (Mapping, bool)):
            raise UnfitSchema(f"The reference {reference!r} leads nowhere.")
        return node

    def _branch(self, branches: Sequence[Schema], depth: int) -> Schema:
        if depth < _SIMPLE_FROM_DEPTH:
            return branches[0]
        return min(branches, key=self._height)

    def _height(self, schema: Schema) -> int:
        """Estimate how deep ``schema`` may nest: 0 is a plain value, 2 is a reference."""
        if not isinstance(schema, Mapping):
            return 0
        if "$ref" in schema:
            return 2
        nested = {"properties", "items", "anyOf", "oneOf", "allOf"} & schema.keys()
        return 1 if nested or schema.get("type") in ("object", "array") else 0

    def _type(self, schema: Mapping[str, Any], depth: int) -> str:
        stated = schema.get("type")
        if isinstance(stated, list):
            flat = [name for name in stated if name not in ("object", "array")]
            stated = (flat or stated)[0] if depth >= _SIMPLE_FROM_DEPTH else stated[0]
        if isinstance(stated, str):
            return stated
        if {"properties", "required", "additionalProperties"} & schema.keys():
            return "object"
        if {"items", "prefixItems", "minItems"} & schema.keys():
            return "array"
        if {"minimum", "maximum", "multipleOf"} & schema.keys():
            return "number"
        return "string"

    def _choice(self, values: Sequence[Any]) -> Any:
        if not values:
            raise UnfitSchema("An enum has no values.")
        mentioned = (v for v in values if isinstance(v, str) and self._hints.mention(v))
        return next(mentioned, values[0])

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        properties: Mapping[str, Schema] = schema.get("properties") or {}
        required: Sequence[str] = schema.get("required") or ()
        wanted = [name for name in properties if name in required or depth < _SIMPLE_FROM_DEPTH] + [
            name for name in required if name not in properties
        ]
        extra = schema.get("additionalProperties", True)
        filled = {name: self.value(properties.get(name, extra), name, depth + 1) for name in wanted}
        missing = schema.get("minProperties", 0) - len(filled)
        for number in range(min(missing, _LONGEST_ARRAY)):
            filled[f"member_{number + 1}"] = self.value(extra, "", depth + 1)
        return filled

    def _array(self, schema: Mapping[str, Any], name: str, depth: int) -> list[Any]:
        first: Sequence[Schema] = schema.get("prefixItems") or ()
        usual = 1 if depth < _SIMPLE_FROM_DEPTH else 0
        length = max(schema.get("minItems", 0), usual, len(first))
        length = min(length, schema.get("maxItems", length), _LONGEST_ARRAY)
        rest = schema.get("items", True)
        singular = name.removesuffix("s")
        made: list[Any] = []
        for place in range(length):
            maker = _Maker(self._root, self._hints.turned(place))
            item = maker.value(first[place] if place < len(first) else rest, singular, depth + 1)
            if schema.get("uniqueItems") and item in made:
                item = self._another(rest, item, place, made)
            made.append(item)
        return made

    def _another(self, schema: Schema, item: Any, place: int, made: list[Any]) -> Any:
        """Make a value unlike those in ``made``, for arrays with ``uniqueItems``."""
        resolved = self._resolved(schema, _SIMPLE_FROM_DEPTH)
        if "enum" in resolved:
            return next((value for value in resolved["enum"] if value not in made), item)
        if isinstance(item, str):
            return f"{item} {place + 1}"
        if isinstance(item, int | float) and not isinstance(item, bool):
            return item + place * resolved.get("multipleOf", 1)
        return item

    def _number(self, schema: Mapping[str, Any], *, whole: bool) -> float:
        """Return the first number within the bounds: one of the text, a small one, or a bound."""
        step = schema.get("multipleOf") or (1 if whole else 0)
        low, high = (
            _bound(schema, "inimum", max, -math.inf),
            _bound(schema, "aximum", min, math.inf),
        )
        tried: list[float] = [*self._hints.numbers, 1, 0, low, high, (low + high) / 2]
        if step:
            tried += [
                (rounded(bound / step) + shift) * step
                for bound, rounded, shift in (
                    (low, math.ceil, 1),
                    (low, math.ceil, 0),
                    (high, math.floor, 0),
                )
                if math.isfinite(bound)
            ]
        else:
            tried += [low + 0.5, high - 0.5]
        for number in tried:
            if math.isfinite(number) and _keeps_bounds(number, schema, whole=whole):
                return int(number) if whole else number
        raise UnfitSchema("No number is within the bounds of the schema.")


def _merge(left: Mapping[str, Any], right: Schema) -> dict[str, Any]:
    """Merge two schemas: members are joined; of other keywords those of ``right`` win."""
    if not isinstance(right, Mapping):
        return dict(left)
    merged = {**left, **right}
    if "properties" in left and "properties" in right:
        merged["properties"] = {**left["properties"], **right["properties"]}
    if "required" in left and "required" in right:
        merged["required"] = list(dict.fromkeys([*left["required"], *right["required"]]))
    return merged


def _bound(
    schema: Mapping[str, Any], name: str, tighter: Callable[[float, float], float], none: float
) -> float:
    """Return the tighter of the inclusive and the exclusive bound."""
    return tighter(schema.get(f"m{name}", none), schema.get(f"exclusiveM{name}", none))


def _keeps_bounds(number: float, schema: Mapping[str, Any], *, whole: bool) -> bool:
    step = schema.get("multipleOf")
    return bool(
        schema.get("minimum", -math.inf) <= number <= schema.get("maximum", math.inf)
        and schema.get("exclusiveMinimum", -math.inf) < number
        and number < schema.get("exclusiveMaximum", math.inf)
        and (not whole or float(number).is_integer())
        and (not step or float(number / step).is_integer())
    )
