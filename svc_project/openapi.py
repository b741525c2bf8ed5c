"""``GET /openapi.json``: the OpenAPI 3.1 document of each surface, without a key."""

from __future__ import annotations

from functools import lru_cache

import msgspec
from django.conf import settings

from core.api.openapi import BEARER, Json, document, schemas_of
from core.asgi.http import HttpConsumer
from core.errors import ApiError, MethodNotAllowed
from inference.api import openapi as inference
from speech.api import openapi as speech
from svc_project.surfaces import Surface, error_body_of
from usage.api import openapi as usage

PATH = "/openapi.json"

_KEY: Json = {"type": "http", "scheme": "bearer"}


@lru_cache(maxsize=1)
def inference_document() -> Json:
    """The chat, catalog and usage operations."""
    schemas = schemas_of(inference.READ, [*inference.SENT, *usage.SENT])
    inference.refine(schemas)
    figures = usage.paths(schemas, inference.EITHER, inference.error_schema, inference.HEADERS)
    return document(
        "Inference API",
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


DOCUMENTS = {Surface.INFERENCE: inference_document, Surface.SPEECH: speech_document}
"""The function that makes the document of each surface."""


class OpenApiConsumer(HttpConsumer):
    """Serves the document of its surface, which subclasses name."""

    route = "openapi"

    async def answer(self) -> None:
        if self.scope["method"] not in ("GET", "HEAD"):
            raise MethodNotAllowed("GET, HEAD")
        await self.respond(200, _encoded(Surface(self.surface)))

    def render_error(self, error: ApiError) -> bytes:
        return error_body_of(Surface(self.surface), error)


class InferenceDocumentConsumer(OpenApiConsumer):
    surface = Surface.INFERENCE


class SpeechDocumentConsumer(OpenApiConsumer):
    surface = Surface.SPEECH


@lru_cache(maxsize=len(Surface))
def _encoded(surface: Surface) -> bytes:
    return msgspec.json.encode(DOCUMENTS[surface]())


def printed(surface: Surface) -> str:
    """The document as in docs/api: indented."""
    return msgspec.json.format(_encoded(surface), indent=2).decode() + "\n"
