"""The OpenAPI 3.1 documents: one of each surface, and one of the management API.

Importing them takes a tenth of a worker's start, so it waits until one is asked for
(``svc_project.openapi_consumers``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

import msgspec
from django.conf import settings

from accounts.api import openapi as accounts
from core.api.openapi import BEARER, Json, document, schemas_of
from inference.api import openapi as inference
from speech.api import openapi as speech
from svc_project.configuration import openapi as configuration
from svc_project.openapi_consumers import MANAGEMENT
from svc_project.surfaces import Surface
from usage.api import openapi as usage

_KEY: Json = {"type": "http", "scheme": "bearer"}


@lru_cache(maxsize=1)
def inference_document() -> Json:
    """The chat, catalog and usage operations."""
    schemas = schemas_of(inference.READ, [*inference.SENT, *usage.SENT])
    inference.refine(schemas)
    figures = usage.paths(schemas, inference.EITHER, inference.error_schema, inference.HEADERS)
    return document(
        "Chat and usage API",
        "Chat completions, the model catalog and usage. Every path answers 405 with `Allow` to a "
        "method that it does not take; every other path is 404.",
        {**inference.paths(schemas), **figures},
        {
            "schemas": schemas.components,
            "securitySchemes": {
                BEARER: _KEY
                | {"description": "`svc_live_` keys ask models, `svc_read_` keys read usage."},
                inference.SESSION: {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": settings.SESSION_COOKIE_NAME,
                    "description": "A session of the console.",
                },
            },
        },
    )


@lru_cache(maxsize=1)
def speech_document() -> Json:
    """Speech, voices and health."""
    schemas = schemas_of([], speech.SENT)
    return document(
        "Speech API",
        "Text to speech and cloned voices. Every path answers 405 with `Allow` to a method that it "
        "does not take; every other path is 404.",
        speech.paths(schemas),
        {
            "schemas": schemas.components,
            "securitySchemes": {BEARER: _KEY | {"description": "`sk_` keys."}},
        },
    )


@lru_cache(maxsize=1)
def management_document() -> Json:
    """Organizations, users, keys and the catalog, for automation."""
    schemas = schemas_of(configuration.READ, [*accounts.SENT, *configuration.SENT])
    return document(
        "Management API",
        "Organizations, users, API keys and the catalog, for automation. A body refuses unknown members. "
        "Every path answers 405 with `Allow` to a method that it does not take.",
        {
            **accounts.paths(schemas, inference.error_schema),
            **configuration.paths(schemas, inference.error_schema),
        },
        {
            "schemas": schemas.components,
            "securitySchemes": {accounts.ADMIN_KEY: _KEY | {"description": "`svc_admin_` keys."}},
        },
    )


DOCUMENTS: Mapping[str, Callable[[], Json]] = {
    Surface.INFERENCE: inference_document,
    Surface.SPEECH: speech_document,
    MANAGEMENT: management_document,
}
"""The function that makes each document, by its name."""


@lru_cache(maxsize=len(DOCUMENTS))
def encoded(name: str) -> bytes:
    """The document ``name`` as JSON."""
    return msgspec.json.encode(DOCUMENTS[name]())


def printed(name: str) -> str:
    """The document as in docs/api: indented."""
    return msgspec.json.format(encoded(name), indent=2).decode() + "\n"
