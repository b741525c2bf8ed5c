"""The chat and catalog operations of the inference surface's OpenAPI document.

docs/api/inference.md describes the same in prose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from core import errors
from core.api.openapi import (
    BEARER,
    RETRY_AFTER,
    STRING,
    WWW_AUTHENTICATE,
    Json,
    Schemas,
    answer,
    body,
    content,
    explain,
    failures,
    header,
    path_parameter,
)
from core.errors import ApiError
from inference.api.meanings import ANSWERS, REQUEST
from inference.catalog.model_object import ModelList, ModelObject
from inference.wire import ChatRequest
from inference.wire.answers import ChoiceDelta, ChunkHead, CompletionObject, UsageChunk

SESSION: Final = "session"
EITHER: Final[list[Json]] = [{BEARER: []}, {SESSION: []}]

_EVERYWHERE: Final = (errors.InvalidCredential, errors.InternalError)
CHAT_ERRORS: Final[tuple[type[ApiError], ...]] = (
    *_EVERYWHERE,
    errors.InvalidField,
    errors.UnsupportedParameter,
    errors.ModelDoesNotSupportTools,
    errors.ModelDoesNotSupportStructuredOutput,
    errors.UnsupportedJsonSchema,
    errors.BackendRejectedRequest,
    errors.ModelNotFound,
    errors.ModelRetired,
    errors.RequestTooLarge,
    errors.RateLimitExceeded,
    errors.BackendUnavailable,
    errors.BackendProtocolError,
    errors.BackendError,
    errors.ServerOverloaded,
    errors.BackendTimeout,
    errors.ServerShuttingDown,
)
LIST_ERRORS: Final = _EVERYWHERE
ENTRY_ERRORS: Final = (*_EVERYWHERE, errors.ModelNotFound, errors.ModelRetired)

HEADERS: Final[dict[int, Json]] = {
    401: WWW_AUTHENTICATE,
    429: {
        **RETRY_AFTER,
        "retry-after-ms": header(
            "Milliseconds to wait.", {"type": "string", "pattern": "^[0-9]+$"}
        ),
        **{
            f"x-ratelimit-{figure}-{scope}": header(meaning, always=False)
            for scope in ("requests", "tokens")
            for figure, meaning in (
                ("limit", "The limit, per minute."),
                ("remaining", "The rest of it."),
                ("reset", "Time until it is full again, such as `2.14s` or `6m0s`."),
            )
        },
        "x-should-retry": header("`false` if waiting does not help.", always=False),
    },
}


LIFECYCLE_HEADERS: Final[Json] = {
    "deprecation": header(
        "When the model was superseded, as `@` and seconds since 1970 (RFC 9745).", always=False
    ),
    "sunset": header("When the model shuts down (RFC 8594).", always=False),
    "link": header(
        'The model\'s successor, with `rel="successor-version"` (RFC 5829).', always=False
    ),
}
"""On answers of a superseded model; ``sunset`` only when the date is set."""


def error_schema(classes: Sequence[type[ApiError]]) -> Json:
    """Return the schema of an error: it always has ``param`` and ``code`` (contract, Errors)."""
    members = {
        "message": STRING,
        "type": {"enum": sorted({each.type for each in classes})},
        "param": {"type": ["string", "null"]},
        "code": {"enum": sorted({each.code for each in classes}, key=str)},
    }
    if errors.UnsupportedJsonSchema in classes:
        members["violations"] = {"type": "array", "items": _VIOLATION}
    return {
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["message", "type", "param", "code"],
                "properties": members,
            }
        },
    }


_VIOLATION: Final[Json] = {
    "type": "object",
    "required": ["code", "pointer", "message"],
    "properties": {
        "code": STRING,
        "pointer": {"type": "string", "format": "json-pointer"},
        "message": STRING,
    },
}


READ: Final = (ChatRequest, ChoiceDelta)
SENT: Final = (CompletionObject, ChunkHead, UsageChunk, ModelObject, ModelList)


def refine(schemas: Schemas) -> None:
    """Add what fields mean, and the rules that the code checks and the structs do not."""
    explain(schemas.components, REQUEST)
    explain(schemas.components, ANSWERS)
    request = schemas.components["ChatRequest"]["properties"]
    request["n"] |= {"anyOf": [{"const": 1}, {"type": "null"}]}
    for component in schemas.components.values():
        _spell_out_parts(component.get("properties", {}).get("content", {}))


def _spell_out_parts(content: Json) -> None:
    """Describe content parts, which the code checks and the structs do not."""
    for choice in content.get("anyOf", ()):
        if choice.get("items") == {"type": "object"}:
            choice["items"] = {
                "type": "object",
                "required": ["type"],
                "properties": {
                    "type": {
                        **STRING,
                        "description": "`text`, with its `text`; others are carried.",
                    }
                },
                "if": {"required": ["type"], "properties": {"type": {"const": "text"}}},
                "then": {"required": ["text"], "properties": {"text": STRING}},
            }


def paths(schemas: Schemas) -> Json:
    """Chat completions and the catalog."""
    return {
        "/v1/chat/completions": {"post": _chat(schemas)},
        "/v1/models": {
            "get": {
                "operationId": "listModels",
                "summary": "Every published model",
                "security": EITHER,
                "responses": {
                    "200": answer("The models, by identifier.", content(schemas.of[ModelList])),
                    **failures(LIST_ERRORS, error_schema, HEADERS),
                },
            }
        },
        "/v1/models/{model}": {"get": _entry(schemas)},
    }


def _entry(schemas: Schemas) -> Json:
    return {
        "operationId": "getModel",
        "summary": "One model",
        "security": EITHER,
        "parameters": [
            path_parameter("model", "An identifier; a slash in it may be raw or `%2F`.")
        ],
        "responses": {
            "200": answer("The model.", content(schemas.of[ModelObject])),
            **failures(ENTRY_ERRORS, error_schema, HEADERS),
        },
    }


def _event(schemas: Schemas) -> Json:
    """Describe each server-sent event of a stream; OpenAPI before 3.2 uses ``schema`` for that."""
    chunk = {
        "allOf": [schemas.of[ChunkHead]],
        "required": ["choices", "usage"],
        "properties": {
            "choices": {
                "type": "array",
                "items": schemas.of[ChoiceDelta],
                "minItems": 1,
                "maxItems": 1,
                "description": "One choice; none in the usage chunk.",
            },
            "usage": {"type": "null", "description": "Null but in the usage chunk."},
        },
    }
    failed = error_schema([each for each in CHAT_ERRORS if each.status >= 500])
    data: Json = {
        "type": "string",
        "contentMediaType": "application/json",
        "contentSchema": {"anyOf": [chunk, schemas.of[UsageChunk], failed]},
    }
    return {
        "description": "One event of the stream. Chunks, a `UsageChunk` and `[DONE]`; or, where "
        "the answer failed after its first chunk, one error and no `[DONE]`.",
        "type": "object",
        "required": ["data"],
        "additionalProperties": False,
        "properties": {
            "data": {"anyOf": [{"const": "[DONE]"}, data]},
            # What an event without a name is called (WHATWG HTML, section 9.2).
            "event": {"const": "message"},
        },
    }


def _chat(schemas: Schemas) -> Json:
    return {
        "operationId": "createChatCompletion",
        "summary": "Complete a conversation",
        "description": "Fields that are not listed are dropped. An explicit null of an optional "
        "field means absent.",
        "security": [{BEARER: []}],
        "parameters": [
            {
                "name": "x-svc-diagnostic-capture",
                "in": "header",
                "schema": STRING,
                "description": "`1`, `true`, `yes` or `on` keeps this request's content "
                "for operators, encrypted and for a limited time.",
            }
        ],
        "requestBody": body(schemas.of[ChatRequest]),
        "responses": {
            "200": answer(
                "The whole answer, or its stream where `stream` is true.",
                {
                    **content(schemas.of[CompletionObject]),
                    **content(_event(schemas), "text/event-stream"),
                },
                {
                    "cache-control": header("Only on a stream.", always=False),
                    "x-accel-buffering": header("Only on a stream.", always=False),
                    **LIFECYCLE_HEADERS,
                },
            ),
            **failures(CHAT_ERRORS, error_schema, HEADERS),
        },
    }
