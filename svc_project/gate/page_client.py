"""A worker's side of the page process."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from accounts.keys.callers import known_callers
from core.errors import InternalError, ServerOverloaded
from core.monitoring import observation
from svc_project.gate.page_messages import AnswerHead, PageRequest, framed, read_answer
from svc_project.surfaces import Receive, Send

log = logging.getLogger(__name__)


class PageProcess:
    """Django in another process: an ASGI application that passes requests there.

    ``address`` is the path of the process's socket. ``receive`` must return the whole body at once,
    and then nothing but the client's disconnect. Raises ``ServerOverloaded`` while the process is
    being replaced, and ``InternalError`` when it ends before its answer is complete.
    """

    def __init__(self, address: str) -> None:
        self._address = address

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        try:
            reader, writer = await asyncio.open_unix_connection(self._address)
        except OSError as error:
            log.error("the page process cannot be reached: %s", error.strerror)
            raise ServerOverloaded from None
        try:
            writer.write(framed(PageRequest.of(scope, (await receive())["body"])))
            leaving = asyncio.create_task(_close_at_disconnect(receive, writer))
            try:
                await _pass_on(reader, scope, send)
            except (asyncio.IncompleteReadError, ConnectionError):
                if not leaving.done():
                    log.error("the page process broke off an answer")
                    raise InternalError from None
            finally:
                leaving.cancel()
        finally:
            writer.close()


async def _pass_on(reader: asyncio.StreamReader, scope: dict[str, Any], send: Send) -> None:
    """Send the client what arrives."""
    more = True
    while more:
        message = await read_answer(reader)
        if isinstance(message, AnswerHead):
            if message.known is not None:
                known_callers.remember(*message.known)
            if message.why is not None:
                scope[observation.WHY] = message.why
            await send(
                {
                    "type": "http.response.start",
                    "status": message.status,
                    "headers": message.headers,
                }
            )
        else:
            more = message.more
            await send({"type": "http.response.body", "body": message.body, "more_body": more})


async def _close_at_disconnect(receive: Receive, writer: asyncio.StreamWriter) -> None:
    """Let the page process know that the client of a stream has disconnected."""
    await receive()
    writer.close()
