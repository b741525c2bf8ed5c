"""The part that both simulated servers share as ASGI applications: key, refusals, the log's entry."""

from __future__ import annotations

import asyncio
import hmac
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import Any, Protocol

from simulators.serving import Broken, disconnected, respond, run_until_disconnected


class Rejected(Exception):
    """The request is answered with ``status`` and ``body``."""

    def __init__(self, status: int, body: Any, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.body = body


class Entry(Protocol):
    """A line of the simulator's own log."""

    status: int
    aborted: bool
    """Whether the client disconnected before the end."""


class Application(ABC):
    """The ASGI application. ``scope["state"]["transport"]`` must be the connection under it."""

    def __init__(self, api_key: str | None) -> None:
        self._api_key = api_key

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            if scope["path"].startswith("/v1/"):
                self._check_key(scope)
            await self.route(scope, receive, send)
        except Rejected as refused:
            await refuse(send, refused)
        except ConnectionError:
            return  # the client disconnected

    @abstractmethod
    async def route(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request. Raises ``Rejected``."""

    @abstractmethod
    def refusal(self, status: int, message: str, kind: str) -> Rejected:
        """A refusal in the error form of this server."""

    @abstractmethod
    def ended(self, entry: Any) -> None:
        """Append ``entry``, of a request that has ended, to the log."""

    async def answer(self, entry: Entry, answering: Coroutine[Any, Any, None], send: Any) -> None:
        """Run ``answering`` for one request, valid or not, and log how it ended."""
        try:
            await answering
        except Rejected as refused:
            entry.status = refused.status
            await refuse(send, refused)
        except Broken:
            return
        except asyncio.CancelledError:
            entry.aborted = True
            raise
        finally:
            self.ended(entry)

    def _check_key(self, scope: Any) -> None:
        key = self._api_key
        given = dict(scope["headers"]).get(b"authorization", b"")
        if key is not None and not hmac.compare_digest(given, b"Bearer " + key.encode()):
            raise self.refusal(401, "The API key is wrong.", "authentication_error")


async def refuse(send: Any, refused: Rejected) -> None:
    """Send an error in the form of the server."""
    await respond(send, refused.status, refused.body)


async def until_disconnected(
    answering: Coroutine[Any, Any, None], transport: asyncio.Transport, receive: Any
) -> None:
    """Run ``answering`` until it is done or the client disconnects."""
    if await run_until_disconnected(answering, receive) and transport.is_closing():
        # uvicorn must see the disconnect before this returns, or it reports an incomplete answer.
        await disconnected(receive)


def header_names(scope: Any) -> list[str]:
    """The names of the request's headers, sorted."""
    return sorted({name.decode("latin-1") for name, _ in scope["headers"]})
