"""The connections to model servers: which are kept, and what happens when a kept one is dead.

A server may close a kept connection at any time, and some do so after each streamed answer without
saying it. docs/explain/backends.md, "Kept connections", has the rules and their reasons.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Final

import aiohttp
from aiohttp.client_proto import ResponseHandler
from yarl import URL

from inference import figures
from inference.dialects import KeepAlive
from inference.snapshot import BackendRef
from inference.stream_closes import StreamCloses, is_announced
from svc_project.lib.outbound import is_reused, open_session

log = logging.getLogger(__name__)

CLOSED_AT_ONCE_SECONDS: Final = 1.0
"""A kept connection that was dead shows it within a round trip. One that ends later than this had
a server at its other end, which may have worked on the request."""

_SETTLE_SECONDS: Final = 0.2
"""A connection that is closed so soon after a streamed answer was closed because of its end."""


def not_connected(error: Exception) -> bool:
    """Whether no connection could be made."""
    return isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)


def never_sent(error: aiohttp.ClientError) -> bool:
    """Whether the connection was closed before the request had left whole."""
    reset = aiohttp.ClientConnectionResetError
    return isinstance(error, reset) or isinstance(error.__cause__, reset)


def is_lost(error: Exception) -> bool:
    """Whether the connection ended before the head of an answer was complete."""
    return isinstance(
        error,
        aiohttp.ServerDisconnectedError
        | aiohttp.ClientOSError
        | aiohttp.ClientConnectionResetError,
    )


class Connections:
    """Sends requests to backends over kept or new connections; belongs to one event loop.

    ``clock`` is in seconds, and what is learnt about a server is remembered by it.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._kept: aiohttp.ClientSession | None = None
        self._single: aiohttp.ClientSession | None = None
        self._stream_closes = StreamCloses(clock)

    async def close(self) -> None:
        for session in (self._kept, self._single):
            if session is not None:
                await session.close()
        self._kept = self._single = None

    async def post(
        self, backend: BackendRef, address: URL, body: bytes, *, streamed: bool
    ) -> aiohttp.ClientResponse:
        """The answer to ``body``, as soon as its head has come.

        Sent once more, on a new connection, when a kept one turns out to have been closed. Raises
        ``aiohttp.ClientError`` or ``ValueError``.
        """
        if backend.keep_alive is KeepAlive.OFF or (
            streamed and self._stream_closes.is_expected(backend)
        ):
            return await _send(self.single(), backend, address, body)
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            response = await _send(self.kept(), backend, address, body)
        except aiohttp.ClientError as error:
            if (
                not is_reused()
                or clock() - began > CLOSED_AT_ONCE_SECONDS
                or not _had_closed(error)
            ):
                raise
            return await self._send_again(backend, address, body, error)
        if streamed and self._stream_closes.is_unknown(backend):
            self._watch(backend, response)
        return response

    def kept(self) -> aiohttp.ClientSession:
        """The session whose connections are used again."""
        if self._kept is None:
            self._kept = open_session()
        return self._kept

    def single(self) -> aiohttp.ClientSession:
        """The session with a connection for each request."""
        if self._single is None:
            self._single = open_session(keep_alive=False)
        return self._single

    async def _send_again(
        self, backend: BackendRef, address: URL, body: bytes, first: aiohttp.ClientError
    ) -> aiohttp.ClientResponse:
        log.info("backend %s: a kept connection had been closed; a new one is used", backend.name)
        figures.stale_connections.add(backend.name)
        self._stream_closes.take_stale(backend)
        try:
            return await _send(self.single(), backend, address, body)
        except aiohttp.ClientError as error:
            if not never_sent(first) and (not_connected(error) or never_sent(error)):
                # The server died, and the request may have been what it died of.
                raise first from None
            raise

    def _watch(self, backend: BackendRef, response: aiohttp.ClientResponse) -> None:
        """See whether the connection outlives the answer, unless the answer says that it will not."""
        connection = response.connection
        if connection is None or connection.protocol is None or is_announced(response):
            return
        judge = partial(self._judge, backend, connection.protocol)
        loop = asyncio.get_running_loop()

        def ended() -> None:
            loop.call_later(_SETTLE_SECONDS, judge)

        response.content.on_eof(ended)

    def _judge(self, backend: BackendRef, protocol: ResponseHandler) -> None:
        if protocol.is_connected():
            self._stream_closes.take_kept(backend)
        elif self._stream_closes.take_closed(backend):
            log.info(
                "backend %s: it closes its connections after streamed answers; for now each "
                "stream has a new one",
                backend.name,
            )


async def _send(
    session: aiohttp.ClientSession, backend: BackendRef, address: URL, body: bytes
) -> aiohttp.ClientResponse:
    return await session.post(address, data=body, headers=backend.headers, allow_redirects=False)


def _had_closed(error: aiohttp.ClientError) -> bool:
    """Whether a kept connection that failed with ``error`` had been closed before it was used."""
    if isinstance(error, aiohttp.ServerDisconnectedError):
        # A head that had begun is in the message; then the server was there.
        return isinstance(error.message, str)
    return is_lost(error) and not not_connected(error)
