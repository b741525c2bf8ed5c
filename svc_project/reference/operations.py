"""The operations of an OpenAPI document, as the reference shows them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from accounts.api.openapi import ADMIN_KEY
from accounts.console.snippets import Snippet
from core.api.openapi import BEARER, Json
from svc_project.reference.fields import Field, SchemaReader
from svc_project.reference.recordings import Recording

_QUOTED: Final = re.compile(r"`([^`]+)`")
_EVERYWHERE: Final = "x-request-id"
"""A header of every answer, which each page names once."""
Anchors = Callable[[str, str], str]
"""Returns the place where an error is explained, by its status and its name in the document."""
_AUTH_WORDS: Final = {BEARER: "an API key", ADMIN_KEY: "an admin key"}
_SESSION_WORDS: Final = "a session of the console"


@dataclass(frozen=True, slots=True)
class Content:
    """One media type of an answer, and its fields where it is JSON."""

    media_type: str
    fields: list[Field]
    words: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """A response that is no failure."""

    status: str
    description: str
    contents: list[Content]
    headers: list[Field]


@dataclass(frozen=True, slots=True)
class Failure:
    """A status of a failure, with its codes, or types without one, and where each is explained."""

    status: str
    errors: tuple[tuple[str, str], ...]
    headers: list[Field]


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a WebSocket."""

    name: str
    description: str
    fields: list[Field]


@dataclass(frozen=True, slots=True)
class Socket:
    """What passes over a WebSocket after its upgrade."""

    client: list[Message]
    server: list[Message]
    binary: str
    closes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path."""

    id: str
    method: str
    path: str
    summary: str
    description: str
    auth: str
    parameters: list[tuple[str, Field]]
    """Where each is sent (path, query, header) and what it is."""
    body: list[Field]
    answers: list[Answer]
    failures: list[Failure]
    recordings: list[Recording]
    socket: Socket | None = None
    snippets: tuple[Snippet, ...] = field(default=())

    def fields(self) -> Iterator[Field]:
        """Every field that the page of the operation has."""
        yield from (each for _, each in self.parameters)
        yield from self.body
        for answer in self.answers:
            yield from answer.headers
            for content in answer.contents:
                yield from content.fields
        if self.socket is not None:
            for message in (*self.socket.client, *self.socket.server):
                yield from message.fields


@dataclass(frozen=True, slots=True)
class Beside:
    """What the document does not have: examples and recorded answers by operation id, and anchors."""

    snippets: Mapping[str, tuple[Snippet, ...]]
    recordings: Mapping[str, list[Recording]]
    anchors: Anchors


def operations(document: Json, beside: Beside) -> list[Operation]:
    """Return every operation of ``document``."""
    reader = SchemaReader(document["components"]["schemas"])
    return [
        _operation(reader, path, method, each, beside)
        for path, methods in document["paths"].items()
        for method, each in methods.items()
    ]


def _operation(
    reader: SchemaReader, path: str, method: str, source: Json, beside: Beside
) -> Operation:
    own = source["operationId"]
    sent = source.get("requestBody", {}).get("content", {}).get("application/json", {})
    return Operation(
        id=own,
        method=method.upper(),
        path=path,
        summary=source["summary"],
        description=source.get("description", ""),
        auth=_auth(source["security"]),
        parameters=[
            (each["in"], _named(reader, each["name"], each).at(f"{own}-{each['in']}"))
            for each in source.get("parameters", ())
        ],
        body=_at(own, reader.fields(sent["schema"])) if sent else [],
        answers=[
            _answer(reader, status, each, own)
            for status, each in source["responses"].items()
            if int(status) < 400
        ],
        failures=[
            _failure(reader, status, each, beside.anchors)
            for status, each in source["responses"].items()
            if int(status) >= 400
        ],
        recordings=beside.recordings.get(own, []),
        socket=_socket(reader, source["x-websocket"], own) if "x-websocket" in source else None,
        snippets=beside.snippets.get(own, ()),
    )


def _at(place: str, fields: list[Field]) -> list[Field]:
    return [each.at(place) for each in fields]


def _auth(security: list[Json]) -> str:
    if not security:
        return "none"
    schemes = [next(iter(each)) for each in security]
    return " or ".join(_AUTH_WORDS.get(scheme, _SESSION_WORDS) for scheme in schemes)


def _named(reader: SchemaReader, name: str, source: Json) -> Field:
    """A parameter or a header."""
    return reader.field(
        name,
        source.get("schema", {}),
        required=source.get("required", False),
        description=source.get("description", ""),
    )


def _headers(reader: SchemaReader, source: Json) -> list[Field]:
    return [
        _named(reader, name, each)
        for name, each in source.get("headers", {}).items()
        if name != _EVERYWHERE
    ]


def _answer(reader: SchemaReader, status: str, source: Json, operation: str) -> Answer:
    return Answer(
        status,
        source["description"],
        list(_contents(reader, source.get("content", {}), f"{operation}-{status}")),
        _at(f"{operation}-{status}-header", _headers(reader, source)),
    )


def _failure(reader: SchemaReader, status: str, source: Json, anchors: Anchors) -> Failure:
    names = dict.fromkeys(_QUOTED.findall(source["description"]))
    return Failure(
        status,
        tuple((name, anchors(status, name)) for name in names),
        _headers(reader, source),
    )


def _contents(reader: SchemaReader, content: Mapping[str, Json], place: str) -> Iterator[Content]:
    for media_type, each in content.items():
        schema: Json = each.get("schema", {})
        is_event = media_type == "text/event-stream" and "properties" in schema
        rows = _event_fields(reader, schema) if is_event else reader.fields(schema)
        rows = _at(f"{place}-event" if is_event else place, rows)
        yield Content(media_type, rows, schema.get("description", ""))


def _event_fields(reader: SchemaReader, event: Json) -> list[Field]:
    """The fields of a chunk: what the data of an event holds before its other shapes."""
    shapes: Any = event["properties"]["data"]["anyOf"][1]["contentSchema"]["anyOf"]
    return reader.fields(shapes[0])


def _socket(reader: SchemaReader, source: Json, operation: str) -> Socket:
    def messages(side: str) -> list[Message]:
        return [
            Message(
                name, each["description"], _at(f"{operation}-{side}-{name}", reader.fields(each))
            )
            for each in source[side]
            for name in (each["properties"]["type"]["const"],)
        ]

    return Socket(messages("client"), messages("server"), source["binary"], source["close"])
