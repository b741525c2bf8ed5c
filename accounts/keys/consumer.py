"""The consumer of one path that takes an API key and one method."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from accounts.keys import refusals
from accounts.keys.header import authorization, shown_prefix
from accounts.keys.keyring import keyring
from accounts.keys.principal import Principal
from accounts.models import Scope
from core.asgi.drain import drain
from core.asgi.http import HttpConsumer
from core.errors import ApiError, MethodNotAllowed, ServerShuttingDown


class KeyConsumer(HttpConsumer):
    """Checks method, key and drain before the body is read; subclasses implement ``answer_to``.

    Raises ``MethodNotAllowed``, ``ServerShuttingDown`` and the exceptions of ``Keyring.authenticate``.
    """

    method: ClassVar[str] = "POST"
    scopes: ClassVar[frozenset[Scope]]
    """Scopes of which a key needs one."""
    principal: Principal | None = None
    """The caller, once it is known."""
    model = ""
    """The identifier of the published model that was asked for, once it is known."""

    async def answer(self) -> None:
        if self.observed is not None:
            self.observed.key_prefix = shown_prefix(self.scope["headers"])
        if self.scope["method"] != self.method:
            raise MethodNotAllowed(self.method)
        principal = self.principal = await self.authenticate()
        if drain.draining:
            raise ServerShuttingDown
        self.owner = principal.organization_id
        await self.answer_to(principal)

    async def authenticate(self) -> Principal:
        """Return the caller. Raises the exceptions of ``Keyring.authenticate``."""
        return await keyring.authenticate(authorization(self.scope["headers"]), self.scopes)

    def refused(self, error: ApiError) -> None:
        error.model = error.model or self.model
        refusals.report(self, error)

    @abstractmethod
    async def answer_to(self, principal: Principal) -> None:
        """Send the whole answer to ``principal``. Raises ``ApiError``."""
