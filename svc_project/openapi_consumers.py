"""``GET /openapi.json``: the OpenAPI 3.1 document of each surface, without a key.

The management API has one of its own, ``GET /manage/v1/openapi.json``.
"""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import ClassVar

from core.asgi.http import HttpConsumer
from core.errors import ApiError, MethodNotAllowed
from svc_project.surfaces import Surface, error_body_of

PATH = "/openapi.json"
MANAGEMENT_PATH = "/manage/v1/openapi.json"
MANAGEMENT = "management"
"""The name of the document of the management API, beside those of the surfaces."""


class OpenApiConsumer(HttpConsumer):
    """Serves the document that subclasses name, on their surface."""

    route = "openapi"
    document: ClassVar[str]

    async def answer(self) -> None:
        if self.scope["method"] not in ("GET", "HEAD"):
            raise MethodNotAllowed("GET, HEAD")
        await self.respond(200, await asyncio.to_thread(_encoded, self.document))

    def render_error(self, error: ApiError) -> bytes:
        return error_body_of(Surface(self.surface), error)


class InferenceDocumentConsumer(OpenApiConsumer):
    surface = document = Surface.INFERENCE


class SpeechDocumentConsumer(OpenApiConsumer):
    surface = document = Surface.SPEECH


class ManagementDocumentConsumer(OpenApiConsumer):
    surface = Surface.INFERENCE
    document = MANAGEMENT


def _encoded(name: str) -> bytes:
    # A worker answers chats a tenth of a second sooner without the words of all documents.
    document: bytes = import_module("svc_project.openapi").encoded(name)
    return document
