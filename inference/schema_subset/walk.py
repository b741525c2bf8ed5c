"""Walks a schema document and yields every broken rule, in document order.

References are resolved by name and never followed, and pointers are built only when they are
reported, so the time is proportional to the document's size whatever its shape. The caller may stop
after any violation; the walk ends by itself after ``MAX_SCHEMAS``.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, NamedTuple

from inference.schema_subset import tables
from inference.schema_subset.outline import RefReader, outline
from inference.schema_subset.tables import (
    ANNOTATIONS,
    MAX_DEPTH,
    MAX_EXPANDED,
    MAX_SCHEMAS,
    REFUSED,
    STRUCTURAL,
    TYPES,
)

_ANNOTATIONS = frozenset(ANNOTATIONS)
_STRUCTURAL = frozenset(STRUCTURAL)
_ACCEPTED = _STRUCTURAL | _ANNOTATIONS
_TYPES = frozenset(TYPES)
_KINDS = frozenset({"type", "anyOf", "$ref", "enum", "const"})
"""A schema needs one of these to say what a value is."""
_COMPOSITION = frozenset(REFUSED["composition"])


class Code(StrEnum):
    ROOT_NOT_OBJECT = "root_not_object"
    UNSUPPORTED_KEYWORD = "unsupported_keyword"
    OPTIONAL_PROPERTY = "optional_property"
    ADDITIONAL_PROPERTIES = "additional_properties"
    DEPTH_LIMIT = "depth_limit"
    UNSUPPORTED_TYPE = "unsupported_type"
    UNRESOLVABLE_REF = "unresolvable_ref"
    MALFORMED_SCHEMA = "malformed_schema"


class Path(NamedTuple):
    """A place in the document, turned into a pointer only when it is reported: a pointer for each
    node would cost the depth times the length of its names."""

    parent: Path | None
    token: str

    def pointer(self) -> str:
        tokens: list[str] = []
        path: Path | None = self
        while path is not None and path.parent is not None:
            tokens.append("/" + path.token.replace("~", "~0").replace("/", "~1"))
            path = path.parent
        return "".join(reversed(tokens))

    def to(self, token: str | int) -> Path:
        return Path(self, str(token))


class Finding(NamedTuple):
    code: Code
    path: Path
    message: str


class _Place(NamedTuple):
    """A value still to be checked; ``depth`` counts the objects and arrays around it."""

    value: Any
    path: Path
    depth: int


_Step = Iterator[Finding | _Place]


class _Definitions(NamedTuple):
    names: frozenset[str]
    endless: frozenset[str]
    refs: RefReader


def findings(schema: Any) -> Iterator[Finding]:
    """Walk the document depth first with an explicit stack, so nesting cannot exhaust Python's."""
    defs = schema.get("$defs") if isinstance(schema, dict) else None
    defs = defs if isinstance(defs, dict) else {}
    refs = RefReader()
    lines = outline(schema, defs, refs)
    endless = lines.endless if lines is not None else frozenset[str]()
    known = _Definitions(frozenset(defs), endless, refs)
    root = Path(None, "")
    if not (isinstance(schema, dict) and schema.get("type") == "object" and "$ref" not in schema):
        yield Finding(Code.ROOT_NOT_OBJECT, root, tables.ROOT_NOT_OBJECT)
    if lines is not None and lines.expanded > MAX_EXPANDED:
        yield Finding(Code.DEPTH_LIMIT, root, tables.TOO_LARGE)
    yield from _walked(schema, root, known)
    if lines is None:
        yield Finding(Code.DEPTH_LIMIT, root, tables.TOO_MANY)


def _walked(schema: Any, root: Path, known: _Definitions) -> Iterator[Finding]:
    left = MAX_SCHEMAS
    stack = [_schema(_Place(schema, root, 0), known)]
    while stack:
        for step in stack[-1]:
            if isinstance(step, _Place):
                if not left:
                    return
                left -= 1
                stack.append(_schema(step, known))
                break
            yield step
        else:
            stack.pop()


def _schema(place: _Place, known: _Definitions) -> _Step:
    schema, path, depth = place
    if not isinstance(schema, dict):
        yield Finding(Code.MALFORMED_SCHEMA, path, tables.NOT_A_SCHEMA)
        return
    types = _as_list(schema.get("type"))
    if "object" in types or "array" in types:
        depth += 1
        if depth == MAX_DEPTH + 1:
            yield Finding(Code.DEPTH_LIMIT, path, tables.TOO_DEEP)
    shapeless = _is_shapeless(schema)
    refused = not schema.keys() <= _ACCEPTED
    if shapeless and not refused:
        yield Finding(Code.MALFORMED_SCHEMA, path, tables.NO_TYPE)
    yield from _missing(schema, path, types)
    for keyword, value in schema.items():
        if keyword not in _ANNOTATIONS:
            place = _Place(value, Path(path, keyword), depth)
            yield from _keyword(keyword, place, schema, known)
    if shapeless and refused:
        # Report the refused keyword first, because it is what the author meant.
        yield Finding(Code.MALFORMED_SCHEMA, path, tables.NO_TYPE)


def _is_shapeless(schema: dict[str, Any]) -> bool:
    """Whether no keyword says what the value is, not even a composition, which is refused anyway."""
    return _KINDS.isdisjoint(schema) and _COMPOSITION.isdisjoint(schema)


def _missing(schema: dict[str, Any], path: Path, types: list[Any]) -> _Step:
    """Yield the keywords that an object or an array lacks."""
    if ("object" in types or "properties" in schema) and "additionalProperties" not in schema:
        yield Finding(Code.ADDITIONAL_PROPERTIES, path, tables.OPEN_OBJECT)
    if "array" in types and "items" not in schema and "prefixItems" not in schema:
        yield Finding(Code.MALFORMED_SCHEMA, path, tables.NO_ITEMS)


def _keyword(  # noqa: C901  # one case a keyword
    keyword: str, place: _Place, schema: dict[str, Any], known: _Definitions
) -> _Step:
    value, path = place.value, place.path
    if keyword not in _STRUCTURAL:
        yield Finding(Code.UNSUPPORTED_KEYWORD, path, tables.keyword(keyword))
        return
    if "$ref" in schema and keyword not in ("$ref", "$defs"):
        yield Finding(Code.MALFORMED_SCHEMA, path, tables.beside_ref(keyword))
    match keyword:
        case "type":
            yield from _type(value, path)
        case "properties":
            yield from _properties(place, schema.get("required"))
        case "required":
            yield from _required(value, path, schema.get("properties"))
        case "additionalProperties" if value is not False:
            yield Finding(Code.ADDITIONAL_PROPERTIES, path, tables.OPEN_OBJECT)
        case "items":
            if isinstance(value, dict):
                yield place
            else:
                yield Finding(Code.MALFORMED_SCHEMA, path, tables.BAD_ITEMS)
        case "enum" if not isinstance(value, list) or not value:
            yield Finding(Code.MALFORMED_SCHEMA, path, tables.BAD_ENUM)
        case "anyOf":
            yield from _any_of(place)
        case "$defs":
            yield from _defs(value, path)
        case "$ref":
            yield from _ref(value, path, known)


def _type(value: Any, path: Path) -> _Step:
    entries = _as_list(value)
    if not entries or not all(isinstance(entry, str) for entry in entries):
        yield Finding(Code.MALFORMED_SCHEMA, path, tables.BAD_TYPE)
        return
    for index, entry in enumerate(entries):
        if entry not in _TYPES:
            at = path.to(index) if isinstance(value, list) else path
            yield Finding(Code.UNSUPPORTED_TYPE, at, tables.unsupported_type(entry))


def _properties(place: _Place, required: Any) -> _Step:
    value, path, depth = place
    if not isinstance(value, dict):
        yield Finding(Code.MALFORMED_SCHEMA, path, tables.bad_map("properties"))
        return
    listed = required if isinstance(required, list) else []
    names = {name for name in listed if isinstance(name, str)}
    for name, child in value.items():
        at = path.to(name)
        if name not in names:
            yield Finding(Code.OPTIONAL_PROPERTY, at, tables.optional(name))
        yield _Place(child, at, depth)


def _required(value: Any, path: Path, properties: Any) -> _Step:
    if not isinstance(value, list):
        yield Finding(Code.MALFORMED_SCHEMA, path, tables.BAD_REQUIRED)
        return
    names = properties if isinstance(properties, dict) else {}
    for index, name in enumerate(value):
        if not isinstance(name, str):
            yield Finding(Code.MALFORMED_SCHEMA, path.to(index), tables.BAD_REQUIRED)
        elif name not in names:
            yield Finding(Code.MALFORMED_SCHEMA, path.to(index), tables.not_a_property(name))


def _any_of(place: _Place) -> _Step:
    if not isinstance(place.value, list) or not place.value:
        yield Finding(Code.MALFORMED_SCHEMA, place.path, tables.BAD_ANY_OF)
        return
    for index, branch in enumerate(place.value):
        yield _Place(branch, place.path.to(index), place.depth)


def _defs(value: Any, path: Path) -> _Step:
    """Yield the definitions; their depth is counted from themselves, not from the root."""
    if not isinstance(value, dict):
        yield Finding(Code.MALFORMED_SCHEMA, path, tables.bad_map("$defs"))
        return
    for name, definition in value.items():
        yield _Place(definition, path.to(name), 0)


def _ref(value: Any, path: Path, known: _Definitions) -> _Step:
    name = known.refs.name(value)
    if name is None:
        yield Finding(Code.UNRESOLVABLE_REF, path, tables.FOREIGN_REF)
    elif name not in known.names:
        yield Finding(Code.UNRESOLVABLE_REF, path, tables.no_such_def(name))
    elif name in known.endless:
        yield Finding(Code.UNRESOLVABLE_REF, path, tables.ENDLESS_REF)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
