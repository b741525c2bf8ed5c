"""Pieces of the OpenAPI 3.1 documents, generated from the code.

Schemas come from the structs that are read and written, error responses from the error classes; a
surface adds its paths (docs/decisions/0014). The parts are plain JSON values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from core.errors import ApiError

Json = dict[str, Any]
ErrorSchema = Callable[[Sequence[type[ApiError]]], Json]
"""Returns the schema of a surface's error body for error classes that share a status."""

_SCHEMAS: Final = "#/components/schemas/"
STRING: Final[Json] = {"type": "string"}
INTEGER: Final[Json] = {"type": "integer"}
BEARER: Final = "key"
REQUEST_ID: Final[Json] = {
    "x-request-id": {
        "description": "The request's id, made by the server: `req_` and a UUIDv7 in hex.",
        "required": True,
        "schema": {"type": "string", "pattern": "^req_[0-9a-f]{32}$"},
    }
}
_WHOLE_SECONDS: Final[Json] = {"type": "string", "pattern": "^[0-9]+$"}
"""Header values are text."""


@dataclass(frozen=True, slots=True)
class Schemas:
    """Schemas by type, and the ``components`` that they refer to."""

    of: Mapping[type, Json]
    components: dict[str, Json]


def schemas_of(read: Sequence[type], sent: Sequence[type]) -> Schemas:
    """Return the schemas of the structs that this service reads and of those that it sends.

    Members with a default are required in structs that are sent; structs with ``omit_defaults``
    belong to ``read``.
    """
    types = [*read, *sent]
    schemas, components = msgspec.json.schema_components(types, ref_template=_SCHEMAS + "{name}")
    plain = {name: _plain(component) for name, component in components.items()}
    lenient = _reached(schemas[: len(read)], plain)
    for name, component in plain.items():
        if name not in lenient:
            _require_defaults(component)
    return Schemas(dict(zip(types, schemas, strict=True)), plain)


def _reached(schemas: Iterable[Any], components: Mapping[str, Json]) -> set[str]:
    """Names of the components that ``schemas`` refer to, directly or not."""
    reached: set[str] = set()
    waiting = list(schemas)
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, dict):
            waiting += node.values()
            name = str(node.get("$ref", "")).removeprefix(_SCHEMAS)
            if name in components and name not in reached:
                reached.add(name)
                waiting.append(components[name])
    return reached


def _require_defaults(component: Json) -> None:
    properties: dict[str, Json] = component.get("properties", {})
    present = [name for name, member in properties.items() if "default" in member]
    component["required"] = [*component.get("required", []), *present]
    for member in properties.values():
        member.pop("default", None)


def _plain(schema: Any) -> Any:
    """Return ``schema`` without our class names and Python's regular expressions."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {name: _plain(member) for name, member in schema.items()}
    if isinstance(schema.get("title"), str):
        plain = {name: member for name, member in plain.items() if name not in _OUR_WORDS}
    if isinstance(pattern := schema.get("pattern"), str):
        plain["pattern"] = pattern.replace(r"\Z", "$")
    return plain


def explain(components: Mapping[str, Json], meanings: Mapping[str, Mapping[str, str]]) -> None:
    """Describe members of ``components``. Raises ``KeyError`` for a member that there is not."""
    for component, members in meanings.items():
        for name, meaning in members.items():
            components[component]["properties"][name]["description"] = meaning


_OUR_WORDS: Final = frozenset({"title", "description"})


def content(schema: Json, media_type: str = "application/json") -> Json:
    """The ``content`` of one media type."""
    return {media_type: {"schema": schema}}


def answer(description: str, content: Json, headers: Json | None = None) -> Json:
    """A response with ``x-request-id`` and ``headers``."""
    return {
        "description": description,
        "headers": {**REQUEST_ID, **(headers or {})},
        "content": content,
    }


def body(schema: Json, *, required: bool = True) -> Json:
    """A JSON request body."""
    return {"required": required, "content": content(schema)}


def query(name: str, schema: Json, description: str) -> Json:
    """An optional query parameter; an empty one counts as absent."""
    return {
        "name": name,
        "in": "query",
        "allowEmptyValue": True,
        "schema": schema,
        "description": description,
    }


def path_parameter(name: str, description: str) -> Json:
    """A path parameter: a text that is not empty."""
    schema = {"type": "string", "minLength": 1}
    return {
        "name": name,
        "in": "path",
        "required": True,
        "schema": schema,
        "description": description,
    }


def failures(
    errors: Iterable[type[ApiError]], schema_of: ErrorSchema, headers: Mapping[int, Json]
) -> Json:
    """Responses by status for ``errors``; ``headers`` are those of a status on this surface."""
    by_status: dict[int, list[type[ApiError]]] = {}
    for error in errors:
        by_status.setdefault(error.status, []).append(error)
    return {
        str(status): answer(
            "; ".join(f"`{each.code or each.type}`" for each in classes),
            content(schema_of(classes)),
            headers.get(status),
        )
        for status, classes in sorted(by_status.items())
    }


def header(description: str, schema: Json | None = None, *, always: bool = True) -> Json:
    """A response header; ``always``: whether it is never left out."""
    return {"description": description, "required": always, "schema": schema or STRING}


WWW_AUTHENTICATE: Final[Json] = {
    "www-authenticate": header("The scheme to use.", {"const": "Bearer"})
}
RETRY_AFTER: Final[Json] = {"retry-after": header("Whole seconds to wait.", _WHOLE_SECONDS)}


def document(title: str, description: str, paths: Json, components: Json) -> Json:
    """A whole document. Each operation in ``paths`` names its own security scheme."""
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": "1", "description": description},
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": components,
    }
