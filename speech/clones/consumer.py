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
from speech.errors import speech_error_body
from svc_project.lib.drain import drain
from svc_project.lib.errors import ApiError, MethodNotAllowed, ServerShuttingDown
from svc_project.lib.http import HttpConsumer

SCOPES = frozenset({Scope.SPEECH})


class CloneCreationConsumer(HttpConsumer):
    """Authenticates before it reads the body. ``creation`` gives the process's ``CloneCreation``."""

    body_seconds: ClassVar[float] = settings.SVC_BODY_SECONDS
    surface: ClassVar[str] = "speech"
    route: ClassVar[str] = "voices"

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
        creation = self._creation()
        with creation:
            # Handed over without a name, so that it can be freed while the voice is measured.
            clone = await creation.create(await self.read_body(LARGEST_BODY), principal)
        await self.respond(201, msgspec.json.encode(clone))

    def render_error(self, error: ApiError) -> bytes:
        return speech_error_body(error)
