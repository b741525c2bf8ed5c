"""``POST /v1/voices``: HTTP in and out, nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import msgspec
from django.conf import settings

from accounts.keyring import authorization, keyring
from accounts.models import Scope
from speech.clones.creation import CloneCreation
from speech.clones.wire import LARGEST_BODY
from speech.errors import RETRY_SOON, speech_error_body
from svc_project.lib.drain import drain
from svc_project.lib.errors import ApiError, MethodNotAllowed, ServerShuttingDown
from svc_project.lib.http import HttpConsumer
from svc_project.lib.places import clones

SCOPES = frozenset({Scope.SPEECH})


class CloneCreationConsumer(HttpConsumer):
    """Authenticates before it reads the body. ``creation`` gives the process's ``CloneCreation``."""

    body_seconds: ClassVar[float] = settings.SVC_BODY_SECONDS
    surface: ClassVar[str] = "speech"
    route: ClassVar[str] = "voices"
    overload_headers = RETRY_SOON

    def __init__(self, creation: Callable[[], CloneCreation]) -> None:
        super().__init__()
        self._creation = creation

    async def answer(self) -> None:
        if self.scope["method"] != "POST":
            raise MethodNotAllowed("POST")
        principal = await keyring.authenticate(
            authorization(self.scope["headers"]), SCOPES, self.scope
        )
        if drain.draining:
            raise ServerShuttingDown
        self.owner = principal.organization_id
        # Handed over without a name, so that it can be freed while the voice is measured.
        clone = await self._creation().create(await self._arrived_body(), principal)
        await self.respond(201, msgspec.json.encode(clone))

    async def _arrived_body(self) -> bytes:
        """The whole body, which then has a place among the creations under way."""
        body = await self.read_body(LARGEST_BODY)
        self.hold(clones)
        return body

    def render_error(self, error: ApiError) -> bytes:
        return speech_error_body(error)
