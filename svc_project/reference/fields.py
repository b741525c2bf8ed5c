"""JSON Schema as rows of a table: the name, type, bounds and meaning of each field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from core.api.openapi import Json

_REF: Final = "#/components/schemas/"
_DEEPEST: Final = 8
"""Levels of members that are listed, below which a type is named only."""
_64_BITS: Final = frozenset({2**63 - 1, -(2**63)})


@dataclass(frozen=True, slots=True)
class Field:
    """One field. ``name`` is its path, such as ``messages[].role``; ``type`` and ``bounds`` are words."""

    name: str
    type: str
    bounds: str
    required: bool
    nullable: bool
    description: str
    choices: tuple[str, ...] = ()
    """The values that it may have, when they are listed."""
    only: str = ""
    """The variants of the object that have it, in words, when not all do."""
    anchor: str = ""
    """Its place on the page."""

    @property
    def level(self) -> int:
        """How many fields it is inside of."""
        return self.name.count(".")

    def at(self, place: str) -> Field:
        """The field with the anchor that it has below ``place``."""
        return replace(self, anchor=f"{place}-{self.name.replace('[]', '').replace('.', '-')}")


@dataclass(frozen=True, slots=True)
class _Variants:
    """The objects that one value may be, with the member that tells them apart."""

    member: str
    objects: tuple[tuple[str, Json], ...]


class SchemaReader:
    """Reads the schemas of one OpenAPI document, whose ``components`` they refer to."""

    def __init__(self, components: Mapping[str, Json]) -> None:
        self._components = components

    def fields(self, schema: Json) -> list[Field]:
        """Return every field of the object ``schema``, members after the field that they are in."""
        return list(self._members(schema, "", 0))

    def field(self, name: str, schema: Json, *, required: bool, description: str = "") -> Field:
        """Return ``schema`` as one row, without its members."""
        plain = self.resolved(schema)
        return Field(
            name,
            self.type_of(plain),
            bounds_of(plain),
            required,
            _is_nullable(schema),
            description or schema.get("description", "") or plain.get("description", ""),
            tuple(_choices(plain)),
        )

    def resolved(self, schema: Json) -> Json:
        """Follow references, and leave out null, which every optional field may be."""
        if "$ref" in schema:
            return self.resolved(self._components[schema["$ref"].removeprefix(_REF)])
        present = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
        if len(present) == 1:
            rest = {name: value for name, value in schema.items() if name != "anyOf"}
            return {**self.resolved(present[0]), **rest}
        return schema

    def type_of(self, schema: Json) -> str:
        """Name the type of a value in words, such as ``array of strings``."""
        schema = self.resolved(schema)
        kinds = schema.get("type", ())
        kinds = [kinds] if isinstance(kinds, str) else [each for each in kinds if each != "null"]
        if not kinds and (several := schema.get("anyOf") or schema.get("allOf")):
            kinds = list(dict.fromkeys(self.type_of(each) for each in several))
            kinds = [each for each in kinds if each != "null"]
        if not kinds:
            kinds = list(dict.fromkeys(_kind(each) for each in _values(schema) if each is not None))
        if kinds == ["array"]:
            return f"array of {_plural(self.type_of(schema.get('items', {})))}"
        values = schema.get("additionalProperties")
        if kinds == ["object"] and isinstance(values, dict):
            return f"object of {_plural(self.type_of(values))}"
        return " or ".join(kinds) or "any"

    def _members(self, schema: Json, prefix: str, depth: int) -> Iterator[Field]:
        if depth >= _DEEPEST:
            return
        variants = self._variants(schema)
        tag = variants.member
        names = dict.fromkeys(name for _, each in variants.objects for name in each["properties"])
        for name in names:
            having = [
                (label, each) for label, each in variants.objects if name in each["properties"]
            ]
            _, first = having[0]
            member: Json = first["properties"][name]
            if name == tag:
                about = member.get("description", "")
                member = {"type": "string", "enum": [label for label, _ in having]}
                member["description"] = about
            everywhere = len(having) == len(variants.objects)
            required = all(name in each.get("required", ()) for _, each in having)
            row = self.field(prefix + name, member, required=required)
            labels = ", ".join(label for label, _ in having)
            yield replace(row, only="" if everywhere else f"{tag} {labels}")
            yield from self._inside(member, prefix + name, depth)

    def _inside(self, member: Json, path: str, depth: int) -> Iterator[Field]:
        """The members of what a field holds: an object, or objects in an array."""
        member = self.resolved(member)
        for each in (member, *map(self.resolved, member.get("anyOf", ()))):
            if "items" in each:
                yield from self._inside(each["items"], f"{path}[]", depth)
        yield from self._members(member, f"{path}.", depth + 1)

    def _variants(self, schema: Json) -> _Variants:
        schema = self.resolved(schema)
        parts = [
            each
            for part in schema.get("allOf", ())
            for each in (self.resolved(part),)
            if "properties" in each
        ]
        if parts:
            merged: Json = {"properties": {}, "required": []}
            for each in (*parts, schema):
                merged["properties"] |= each.get("properties", {})
                merged["required"] += each.get("required", [])
            return _Variants("", (("", merged),))
        if "properties" in schema:
            return _Variants("", (("", schema),))
        objects = [
            each for each in map(self.resolved, schema.get("anyOf", ())) if "properties" in each
        ]
        member = schema.get("discriminator", {}).get("propertyName", "")
        return _Variants(member, tuple((_label(each, member), each) for each in objects))


def _label(schema: Json, member: str) -> str:
    return " or ".join(map(str, _values(schema["properties"].get(member, {}))))


def _values(schema: Json) -> list[Any]:
    return [schema["const"]] if "const" in schema else list(schema.get("enum", ()))


def _choices(schema: Json) -> Iterator[str]:
    for each in _values(schema):
        if each is not None and not isinstance(each, list | dict):
            yield str(each).lower() if isinstance(each, bool) else str(each)


def _is_nullable(schema: Json) -> bool:
    return (
        {"type": "null"} in schema.get("anyOf", ())
        or None in _values(schema)
        or (isinstance(schema.get("type"), list) and "null" in schema["type"])
    )


def _kind(value: Any) -> str:
    """The JSON type of a value."""
    kinds = {bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
    return kinds.get(type(value), "string")


def _plural(words: str) -> str:
    if words == "any":
        return "anything"
    if " " in words:
        return words
    return f"{words}s"


def bounds_of(schema: Json) -> str:
    """Describe what limits a value: its size, its length, its form."""
    words = [
        _between(schema, "minimum", "maximum"),
        _between(schema, "minLength", "maxLength", "character"),
        _between(schema, "minItems", "maxItems", "item"),
        schema.get("format", ""),
        schema.get("contentEncoding", ""),
        f"matches {schema['pattern']}" if "pattern" in schema else "",
        f"default {schema['default']}" if schema.get("default") else "",
    ]
    return ", ".join(filter(None, words))


def _between(schema: Json, lowest: str, highest: str, unit: str = "") -> str:
    low, high = schema.get(lowest), schema.get(highest)
    words = ["64 bits"] if {low, high} & _64_BITS else []
    low, high = (None if each in _64_BITS else each for each in (low, high))
    last = low if high is None else high
    counted = f" {unit}{'' if last == 1 else 's'}" if unit else ""
    if low is not None and low == high:
        words.append(f"exactly {low:,}{counted}")
    elif low is not None and high is not None:
        words.append(f"{low:,} to {high:,}{counted}")
    elif last is not None:
        words.append(f"{'at most' if low is None else 'at least'} {last:,}{counted}")
    return ", ".join(words)
