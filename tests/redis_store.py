"""The real Redis of the tests, and a way to have it hang, vanish and come back."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import Final
from urllib.parse import urlsplit

import pytest

REDIS_URL: Final = os.environ.get("SVC_TEST_REDIS_URL", "")
with_redis = pytest.mark.skipif(
    not REDIS_URL, reason="SVC_TEST_REDIS_URL is not set: shared limits are not tested"
)
PATIENT: Final = 5.0
"""Seconds that a store on a busy machine is given."""


class RelayToRedis:
    """A TCP relay that can hold back what Redis answers, cut connections, and come and go."""

    def __init__(self) -> None:
        self.port = 0
        self.requests = 0
        self.open = asyncio.Event()
        self.open.set()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._relay, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        self.open.set()
        for writer in self._writers:
            writer.close()
        await self._server.wait_closed()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = urlsplit(REDIS_URL)
        to_redis = await asyncio.open_connection(target.hostname, target.port)
        self._writers |= {writer, to_redis[1]}
        await asyncio.gather(
            self._copy(reader, to_redis[1], holds=False),
            self._copy(to_redis[0], writer, holds=True),
        )

    async def _copy(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, holds: bool
    ) -> None:
        with contextlib.suppress(ConnectionError):
            while chunk := await source.read(65_536):
                if holds:
                    self.requests += 1
                    await self.open.wait()
                sink.write(chunk)
                await sink.drain()
        sink.close()
