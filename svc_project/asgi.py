"""The ASGI application: surfaces, consumers, Django, lifespan."""

from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "svc_project.settings")

from django.core.asgi import get_asgi_application

django_application = get_asgi_application()

# Django must be set up before anything with models is imported.
from inference.consumers import ChatCompletionsConsumer
from speech.clones.consumer import CloneCreationConsumer
from speech.consumers import SpeechConsumer
from speech.health import HealthConsumer
from speech.service import creation
from speech.stream_consumer import SpeechStreamConsumer
from svc_project.gate import Gate
from svc_project.monitoring import PROBES
from svc_project.openapi import PATH as OPENAPI
from svc_project.openapi import InferenceDocumentConsumer, SpeechDocumentConsumer
from svc_project.runtime import runtime
from svc_project.surfaces import Receive, Send, Surface, SurfaceRouter

gate = Gate(django_application)  # type: ignore[arg-type]  # its messages are Mappings, ours dicts
router = SurfaceRouter(
    {
        Surface.INFERENCE: {
            "/v1/chat/completions": ChatCompletionsConsumer.as_asgi(),
            OPENAPI: InferenceDocumentConsumer.as_asgi(),
        },
        Surface.SPEECH: {
            "/v1/audio/speech": SpeechConsumer.as_asgi(),
            "/v1/voices": CloneCreationConsumer.as_asgi(creation=creation),
            "/health": HealthConsumer.as_asgi(),
            OPENAPI: SpeechDocumentConsumer.as_asgi(),
        },
    },
    {Surface.SPEECH: {"/v1/audio/speech/stream": SpeechStreamConsumer.as_asgi()}},
    gate,
    PROBES,
)


async def application(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """The whole service, both surfaces."""
    if scope["type"] in {"http", "websocket"}:
        await runtime.ensure_started()
        await router(scope, receive, send)
    elif scope["type"] == "lifespan":
        await runtime.lifespan(receive, send)
