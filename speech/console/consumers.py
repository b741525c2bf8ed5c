"""What the page of voices sends: requests of the API by session instead of by key."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from accounts.console.sessions import OpenSession, SessionConsumer
from accounts.models import Scope
from core.errors import ApiError
from speech.console.wording import error_body, error_object
from speech.requests.http_consumer import SpeechConsumer
from speech.requests.session import CheckKey
from speech.requests.stream_consumer import SpeechStreamConsumer
from speech.voices.clones.creation import CloneCreationConsumer


class VoicesSpeechConsumer(SessionConsumer, SpeechConsumer):
    """``POST /console/voices/speech``: as ``POST /v1/audio/speech``."""

    route: ClassVar[str] = "playground"

    def render_error(self, error: ApiError) -> bytes:
        return error_body(error)


class VoicesCloneConsumer(SessionConsumer, CloneCreationConsumer):
    """``POST /console/voices/clones``: as ``POST /v1/voices``."""

    route: ClassVar[str] = "playground"

    def render_error(self, error: ApiError) -> bytes:
        return error_body(error)


class VoicesStreamConsumer(SpeechStreamConsumer):
    """``/console/voices/stream``: as ``/v1/audio/speech/stream``.

    ``ready`` has the ``request_id``, because scripts of a browser cannot read an upgrade's headers.
    """

    route: ClassVar[str] = "playground"

    def key_check(self) -> CheckKey:
        return OpenSession(self.scope, Scope.SPEECH)

    def ready(self) -> dict[str, Any]:
        return {**super().ready(), "request_id": self.request_id}

    def render_error(self, error: ApiError) -> bytes:
        return error_body(error)

    def error_message(self, error: ApiError) -> str:
        return msgspec.json.encode({"type": "error", "error": error_object(error)}).decode()
