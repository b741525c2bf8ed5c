"""The connections to model servers: which are kept, and the retry when a kept one is dead.

A server may close a kept connection at any time, and some do so after each streamed answer without
announcing it: a connection that carried a stream rests before it is used again.
docs/explain/backends.md, "Kept connections", has the rules and their reasons.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from core.backends.outbound import open_client
from core.http_client.client import HttpClient
from core.http_client.request import (
    ConnectError,
    HttpError,
    RequestHead,
    ServerDisconnected,
    WriteError,
)
from core.http_client.response import Response
from inference.backends import metrics
from inference.catalog.snapshot import BackendRef
from inference.wire.dialects import KeepAlive

log = logging.getLogger(__name__)

CLOSED_AT_ONCE_SECONDS: Final = 1.0
"""A dead kept connection fails within a round trip. If it fails later than this, a server was at
its other end and may have started on the request."""

STREAM_REST_SECONDS: Final = 0.2
"""How long a connection rests after a streamed answer. A server that closes it because the answer
ended does so within this time."""


class Connections:
    """Sends requests to backends over kept or new connections; belongs to one event loop."""

    def __init__(self) -> None:
        self._client: HttpClient | None = None

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
        if backend.keep_alive is KeepAlive.OFF:
            return await client.send(request, body, fresh=True)
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            return await client.send(request, body, rest=STREAM_REST_SECONDS if streamed else 0.0)
        except (WriteError, ServerDisconnected) as error:
            if not error.reused or clock() - began > CLOSED_AT_ONCE_SECONDS:
                raise
            return await self._send_again(backend, request, body, error)

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
        try:
            return await self.client().send(request, body, fresh=True)
        except (ConnectError, WriteError):
            if first.may_have_run:
                # The server crashed, perhaps because of this request.
                raise first from None
            raise
