"""The page process's side of its connections to the workers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from asgiref.sync import ThreadSensitiveContext

from accounts.keys.callers import RECOGNIZED
from core.monitoring import current_request, observation
from core.monitoring.logs import log_unexpected
from svc_project.gate.page_messages import AnswerHead, AnswerPart, framed, read_request
from svc_project.gate.view_threads import ViewThreads
from svc_project.surfaces import Application

log = logging.getLogger(__name__)

_LAST_SECONDS = 10.0
"""The time for running views when the process ends."""


class PageServer:
    """Answers each connection's request with ``django``, in a thread of its own.

    How many threads there are is up to the workers, which bound the requests that they pass on
    (``CallerThreads``).
    """

    def __init__(self, django: Application) -> None:
        self._django = django
        self._threads = ViewThreads()
        self._running: set[asyncio.Task[None]] = set()

    def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the request of a new connection (``asyncio.start_unix_server``)."""
        task = asyncio.create_task(self._answer(reader, writer))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _Exchange(self._django, reader, writer).run(self._threads)
        finally:
            writer.close()

    async def close(self) -> None:
        """Wait a moment for the views that still run, then end the threads of the others."""
        if self._running:
            await asyncio.wait(self._running, timeout=_LAST_SECONDS)
        await self._threads.close()


class _Exchange:
    """One request of a worker."""

    def __init__(
        self, django: Application, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._django = django
        self._reader = reader
        self._writer = writer
        self._body: bytes | None = None
        self._scope: dict[str, Any] = {}

    async def run(self, threads: ViewThreads) -> None:
        """Answer in one of ``threads``."""
        try:
            request = await read_request(self._reader)
        except (asyncio.IncompleteReadError, ConnectionError):
            return  # the worker's client has disconnected
        current_request.begin(request.request_id)
        self._scope, self._body = request.scope(), request.body
        thread = threads.take()
        try:
            async with ThreadSensitiveContext(executor=thread):
                await self._django(self._scope, self._receive, self._send)
        except Exception as error:
            # The worker sees the end of the connection, and does the same to its client.
            log_unexpected(log, request.request_id, error)
        finally:
            threads.give_back(thread)

    async def _receive(self) -> dict[str, Any]:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        with suppress(ConnectionError):
            await self._reader.read(1)  # a worker sends nothing after the request
        return {"type": "http.disconnect"}

    async def _send(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            known, why = self._scope.get(RECOGNIZED), self._scope.get(observation.WHY)
            part = framed(AnswerHead(message["status"], list(message["headers"]), known, why))
        else:
            part = framed(AnswerPart(message.get("body", b""), message.get("more_body", False)))
        if self._writer.is_closing():
            # ASGI raises nothing after a disconnect. ``_receive`` reports it, once the loop runs it.
            await asyncio.sleep(0)
            return
        self._writer.write(part)
        with suppress(ConnectionError):
            await self._writer.drain()
