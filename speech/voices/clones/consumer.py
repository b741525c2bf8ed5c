"""``POST /v1/voices``: HTTP in and out, nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import msgspec
from django.conf import settings

from accounts.keys.consumer import KeyConsumer
from accounts.keys.principal import Principal
from accounts.models import Scope
from speech.errors import RETRY_SOON, speech_error_body
from speech.voices.clones.creation import CloneCreation
from speech.voices.clones.wire import LARGEST_BODY
from svc_project.lib.errors import ApiError
from svc_project.lib.sharing.places import clones


class CloneCreationConsumer(KeyConsumer):
    """Authenticates before it reads the body. ``creation`` gives the process's ``CloneCreation``."""

    body_seconds: ClassVar[float] = settings.SVC_BODY_SECONDS
    scopes = frozenset({Scope.SPEECH})
    surface: ClassVar[str] = "speech"
    route: ClassVar[str] = "voices"
    overload_headers = RETRY_SOON

    def __init__(self, creation: Callable[[], CloneCreation]) -> None:
        super().__init__()
        self._creation = creation

    async def answer_to(self, principal: Principal) -> None:
        creation = self._creation()
        creation.check_refused(principal)
        # Passed without a local name, so that the body can be freed while the voice is measured.
        clone = await creation.create(await self._arrived_body(), principal)
        await self.respond(201, msgspec.json.encode(clone))

    async def _arrived_body(self) -> bytes:
        """Read the whole body, then take a place among the running creations."""
        body = await self.read_body(LARGEST_BODY)
        self.hold(clones)
        return body

    def render_error(self, error: ApiError) -> bytes:
        return speech_error_body(error)
