"""The subset against a second implementation of the contract: slow, recursive, rule by rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.schema_subset import ANNOTATIONS, REFUSED, STRUCTURAL, TYPES, violations


class Node(NamedTuple):
    schema: Any
    pointer: str
    ancestors: tuple[Any, ...]
    """The schemas around it, up to the root or to its definition."""


def joined(pointer: str, *tokens: str | int) -> str:
    return pointer + "".join(f"/{str(t).replace('~', '~0').replace('/', '~1')}" for t in tokens)


def nodes(node: Node) -> Iterator[Node]:
    """``node`` and every schema inside it."""
    yield node
    schema, pointer, ancestors = node
    if not isinstance(schema, dict):
        return
    around = (*ancestors, schema)
    if isinstance(schema.get("properties"), dict):
        for name, child in schema["properties"].items():
            yield from nodes(Node(child, joined(pointer, "properties", name), around))
    if isinstance(schema.get("items"), dict):
        yield from nodes(Node(schema["items"], joined(pointer, "items"), around))
    if isinstance(schema.get("anyOf"), list):
        for index, child in enumerate(schema["anyOf"]):
            yield from nodes(Node(child, joined(pointer, "anyOf", index), around))
    if isinstance(schema.get("$defs"), dict):
        for name, child in schema["$defs"].items():
            yield from nodes(Node(child, joined(pointer, "$defs", name), ()))


def has_type(schema: Any, *names: str) -> bool:
    kind = schema.get("type") if isinstance(schema, dict) else None
    return any(name == kind or (isinstance(kind, list) and name in kind) for name in names)


def keyword_rules(schema: dict[str, Any]) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    for keyword in schema:
        if keyword not in STRUCTURAL and keyword not in ANNOTATIONS:
            yield "unsupported_keyword", (keyword,)
        if "$ref" in schema and keyword in STRUCTURAL and keyword not in ("$ref", "$defs"):
            yield "malformed_schema", (keyword,)


def type_rules(schema: dict[str, Any]) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    composition = REFUSED["composition"]
    if not any(word in schema for word in ("type", "anyOf", "$ref", "enum", "const", *composition)):
        yield "malformed_schema", ()
    kind = schema.get("type", "null")
    if isinstance(kind, str):
        if kind not in TYPES:
            yield "unsupported_type", ("type",)
    elif isinstance(kind, list) and kind and all(type(entry) is str for entry in kind):
        for index, entry in enumerate(kind):
            if entry not in TYPES:
                yield "unsupported_type", ("type", index)
    else:
        yield "malformed_schema", ("type",)


def object_rules(schema: dict[str, Any]) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if "additionalProperties" in schema:
        if schema["additionalProperties"] is not False:
            yield "additional_properties", ("additionalProperties",)
    elif has_type(schema, "object") or "properties" in schema:
        yield "additional_properties", ()
    if not isinstance(properties, dict):
        yield "malformed_schema", ("properties",)
        properties = {}
    if not isinstance(required, list):
        yield "malformed_schema", ("required",)
        required = []
    for name in properties:
        if name not in required:
            yield "optional_property", ("properties", name)
    for index, name in enumerate(required):
        if type(name) is not str or name not in properties:
            yield "malformed_schema", ("required", index)


def other_rules(schema: dict[str, Any]) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    if has_type(schema, "array") and "items" not in schema and "prefixItems" not in schema:
        yield "malformed_schema", ()
    for keyword, kind in (("items", dict), ("$defs", dict), ("enum", list), ("anyOf", list)):
        if (keyword in schema and not isinstance(schema[keyword], kind)) or (
            kind is list and schema.get(keyword) == []
        ):
            yield "malformed_schema", (keyword,)


def endless(name: str, defs: dict[str, Any], trail: tuple[str, ...] = ()) -> bool:
    """Whether references that are not behind a property or an item lead in a circle."""
    if name in trail:
        return True
    waiting = [defs[name]]
    while waiting:
        schema = waiting.pop()
        if not isinstance(schema, dict):
            continue
        target = target_of(schema.get("$ref"))
        if target in defs and endless(target, defs, (*trail, name)):
            return True
        if isinstance(schema.get("anyOf"), list):
            waiting += schema["anyOf"]
    return False


def target_of(ref: Any) -> str:
    """Return the definition's name for the one valid form of generated reference, unescaped."""
    if isinstance(ref, str) and ref.startswith("#/$defs/") and "/" not in ref[len("#/$defs/") :]:
        return ref[len("#/$defs/") :].replace("~1", "/").replace("~0", "~")
    return "no definition has this name"


def expected(document: Any) -> Counter[tuple[str, str]]:
    result: Counter[tuple[str, str]] = Counter()
    if not isinstance(document, dict) or document.get("type") != "object" or "$ref" in document:
        result["root_not_object", ""] += 1
    defs = document.get("$defs") if isinstance(document, dict) else None
    defs = defs if isinstance(defs, dict) else {}
    for schema, pointer, ancestors in nodes(Node(document, "", ())):
        if not isinstance(schema, dict):
            result["malformed_schema", pointer] += 1
            continue
        for rules in (keyword_rules, type_rules, object_rules, other_rules):
            for code, tokens in rules(schema):
                result[code, joined(pointer, *tokens)] += 1
        levels = sum(has_type(around, "object", "array") for around in ancestors)
        if levels == 5 and has_type(schema, "object", "array"):
            result["depth_limit", pointer] += 1
        if "$ref" in schema:
            target = target_of(schema["$ref"])
            if target not in defs or endless(target, defs):
                result["unresolvable_ref", joined(pointer, "$ref")] += 1
    return result


NAMES = st.sampled_from(["a", "b", "c/d", "e~f", "type"])
REFS = st.sampled_from(
    ["#/$defs/a", "#/$defs/b", "#/$defs/c~1d", "#/$defs/e~0f", "#/$defs/z", "#/a/b", "#", 5]
)
JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, False, 0, "", "string", [], {}, ["a"], [[]], {"a": 1}]
)
KINDS = st.sampled_from([*TYPES, "object", "array", "date"])


def schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    maps = st.dictionaries(NAMES, inner, max_size=3)
    refused = [word for group in REFUSED.values() for word in group]
    values = {
        "type": KINDS | st.lists(KINDS, min_size=1, max_size=2) | JUNK,
        "properties": maps | JUNK,
        "required": st.lists(NAMES, max_size=3) | JUNK,
        "additionalProperties": st.just(False) | JUNK,
        "items": inner | JUNK,
        "enum": st.just([1]) | JUNK,
        "const": JUNK,
        "anyOf": st.lists(inner, min_size=1, max_size=3) | JUNK,
        "$defs": maps | JUNK,
        "$ref": REFS,
        "description": JUNK | inner,
    }
    anything = st.fixed_dictionaries({}, optional=values)
    oddities = st.dictionaries(st.sampled_from([*refused, "x-odd", "nullable"]), inner, max_size=1)
    return st.one_of(
        maps.map(closed),
        inner.map(lambda schema: {"type": "array", "items": schema}),
        st.lists(inner, min_size=1, max_size=3).map(lambda branches: {"anyOf": branches}),
        REFS.map(lambda ref: {"$ref": ref}),
        anything,
        st.builds(lambda schema, odd: {**schema, **odd}, anything, oddities),
    )


def closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


LEAVES = KINDS.map(lambda kind: {"type": kind}) | REFS.map(lambda ref: {"$ref": ref}) | JUNK
SCHEMAS = st.recursive(LEAVES, schemas, max_leaves=25)
DOCUMENTS = SCHEMAS | st.builds(
    lambda properties, defs: {**closed(properties), "$defs": defs},
    st.dictionaries(NAMES, SCHEMAS, max_size=3),
    st.dictionaries(NAMES, SCHEMAS, max_size=4),
)


@pytest.mark.long
@settings(max_examples=300)
@given(DOCUMENTS)
def test_both_implementations_find_the_same(document: Any) -> None:
    found = Counter((str(each.code), each.pointer) for each in violations(document))
    assert found == expected(document)


@st.composite
def deep(draw: st.DrawFn) -> Any:
    """Draw a chain of objects, arrays and unions around a leaf."""
    schema: Any = {"type": "string"}
    for kind in draw(st.lists(st.sampled_from(["object", "array", "anyOf"]), max_size=12)):
        match kind:
            case "object":
                schema = closed({"a": schema})
            case "array":
                schema = {"type": "array", "items": schema}
            case _:
                schema = {"anyOf": [schema, {"type": "null"}]}
    return closed({"a": schema})


@given(deep())
def test_both_implementations_count_the_same_levels(document: Any) -> None:
    found = Counter((str(each.code), each.pointer) for each in violations(document))
    assert found == expected(document)
