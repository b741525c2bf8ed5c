"""The ASGI application: surfaces, consumers, Django, lifespan."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Mapping
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "svc_project.settings")

import django

django.setup(set_prefix=False)

# Django must be set up before anything with models is imported.
from django.conf import settings

from inference.chat.consumer import ChatCompletionsConsumer
from inference.console.playground import PlaygroundConsumer
from inference.serving.wiring import service as chat
from speech.api.health import HealthConsumer
from speech.console.consumers import (
    VoicesCloneConsumer,
    VoicesSpeechConsumer,
    VoicesStreamConsumer,
)
from speech.requests.http_consumer import SpeechConsumer
from speech.requests.stream_consumer import SpeechStreamConsumer
from speech.serving.wiring import creation
from speech.serving.wiring import service as speech
from speech.voices.clones.creation import CloneCreationConsumer
from svc_project.gate.django_handler import OneCallHandler
from svc_project.gate.gate import Gate
from svc_project.gate.page_client import PageProcess
from svc_project.openapi_consumers import MANAGEMENT_PATH as MANAGEMENT_OPENAPI
from svc_project.openapi_consumers import PATH as OPENAPI
from svc_project.openapi_consumers import (
    InferenceDocumentConsumer,
    ManagementDocumentConsumer,
    SpeechDocumentConsumer,
)
from svc_project.serving.monitoring import PROBES
from svc_project.serving.runtime import runtime
from svc_project.surfaces import Receive, Send, Surface, SurfaceRouter
from usage.console.live.consumer import LiveRequestsConsumer
from usage.console.live.watch import PATH as LIVE_REQUESTS

gate = Gate(
    PageProcess(settings.SVC_PAGE_SOCKET) if settings.SVC_PAGE_SOCKET else OneCallHandler()  # type: ignore[arg-type]  # its messages are Mappings, ours dicts
)
router = SurfaceRouter(
    {
        Surface.INFERENCE: {
            "/v1/chat/completions": ChatCompletionsConsumer.as_asgi(service=chat),
            "/console/playground/chat": PlaygroundConsumer.as_asgi(service=chat),
            "/console/voices/speech": VoicesSpeechConsumer.as_asgi(service=speech),
            "/console/voices/clones": VoicesCloneConsumer.as_asgi(creation=creation),
            OPENAPI: InferenceDocumentConsumer.as_asgi(),
            MANAGEMENT_OPENAPI: ManagementDocumentConsumer.as_asgi(),
        },
        Surface.SPEECH: {
            "/v1/audio/speech": SpeechConsumer.as_asgi(service=speech),
            "/v1/voices": CloneCreationConsumer.as_asgi(creation=creation),
            "/health": HealthConsumer.as_asgi(),
            OPENAPI: SpeechDocumentConsumer.as_asgi(),
        },
    },
    {
        Surface.INFERENCE: {
            LIVE_REQUESTS: LiveRequestsConsumer.as_asgi(),
            "/console/voices/stream": VoicesStreamConsumer.as_asgi(service=speech),
        },
        Surface.SPEECH: {"/v1/audio/speech/stream": SpeechStreamConsumer.as_asgi(service=speech)},
    },
    gate,
    PROBES,
)


class Application:
    """Serves both surfaces.

    It returns the coroutine that answers instead of waiting for it: a stream wakes every coroutine
    that waits for another one, once for each frame.
    """

    _asgi_single_callable = True
    """Tells asgiref, and so Daphne, that a call with three arguments is right."""

    def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] == "lifespan":
            return runtime.lifespan(receive, send)
        if runtime.has_started:
            return router(scope, receive, send)
        return _start_and_serve(scope, receive, send)

    def has_socket(self, scope: Mapping[str, Any]) -> bool:
        """Whether there is a WebSocket at the path of ``scope``, on its surface."""
        return router.has_socket(scope)


async def _start_and_serve(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    await runtime.ensure_started()
    await router(scope, receive, send)


application = Application()
