"""The connections to model servers: which are kept, and the retry when a kept one is dead.

A server may close a kept connection at any time, and some do so after each streamed answer without
announcing it. docs/explain/backends.md, "Kept connections", has the rules and their reasons.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from inference.backends import metrics
from inference.backends.stream_closes import StreamCloses
from inference.catalog.snapshot import BackendRef
from inference.wire.dialects import KeepAlive
from svc_project.lib.backends.outbound import open_client
from svc_project.lib.http_client.client import HttpClient
from svc_project.lib.http_client.connection import Connection
from svc_project.lib.http_client.errors import HttpError, NoAnswer, NotConnected, NotSent
from svc_project.lib.http_client.request import RequestHead
from svc_project.lib.http_client.response import Response

log = logging.getLogger(__name__)

CLOSED_AT_ONCE_SECONDS: Final = 1.0
"""A dead kept connection fails within a round trip. If it fails later than this, a server was at
its other end and may have started on the request."""

_SETTLE_SECONDS: Final = 0.2
"""A connection closed within this time after a streamed answer was closed because the answer ended."""


class Connections:
    """Sends requests to backends over kept or new connections; belongs to one event loop.

    ``clock`` is in seconds; observations about servers expire by it.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._client: HttpClient | None = None
        self._stream_closes = StreamCloses(clock)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
        self._client = None

    async def post(
        self, backend: BackendRef, request: RequestHead, body: bytes, *, streamed: bool
    ) -> Response:
        """Send ``body`` and return the answer as soon as its head has arrived.

        Retries once, on a new connection, when a kept one turns out to have been closed. Raises
        ``HttpError``.
        """
        client = self.client()
        if backend.keep_alive is KeepAlive.OFF or (
            streamed and self._stream_closes.is_expected(backend)
        ):
            return await client.send(request, body, fresh=True)
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            response = await client.send(request, body)
        except (NotSent, NoAnswer) as error:
            if not error.reused or clock() - began > CLOSED_AT_ONCE_SECONDS:
                raise
            return await self._send_again(backend, request, body, error)
        if streamed and self._stream_closes.is_unknown(backend):
            self._watch(backend, response)
        return response

    def client(self) -> HttpClient:
        """The client of the running event loop."""
        if self._client is None:
            self._client = open_client()
        return self._client

    async def _send_again(
        self, backend: BackendRef, request: RequestHead, body: bytes, first: HttpError
    ) -> Response:
        log.info("backend %s: a kept connection had been closed; a new one is used", backend.name)
        metrics.stale_connections.add(backend.name)
        self._stream_closes.record_stale(backend)
        try:
            return await self.client().send(request, body, fresh=True)
        except (NotConnected, NotSent):
            if first.may_have_run:
                # The server crashed, perhaps because of this request.
                raise first from None
            raise

    def _watch(self, backend: BackendRef, response: Response) -> None:
        """Observe whether the connection stays open after the answer, unless it announces a close."""
        connection = response.connection
        if connection is None or not response.keeps_alive:
            return
        judge = partial(self._judge, backend, connection)
        loop = asyncio.get_running_loop()

        def ended() -> None:
            loop.call_later(_SETTLE_SECONDS, judge)

        response.on_end(ended)

    def _judge(self, backend: BackendRef, connection: Connection) -> None:
        if not connection.closed:
            self._stream_closes.record_kept(backend)
        elif self._stream_closes.record_closed(backend):
            log.info(
                "backend %s: closes its connections after streamed answers; for now each "
                "stream gets a new one",
                backend.name,
            )
