"""The size and duration of an exchange with a model server that never ends are bounded."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import msgspec
import pytest

from core.asgi.http import Stoppable
from core.backends.quarantine import Quarantine
from core.errors import BackendProtocolError, ClientDisconnected, ServerShuttingDown
from inference.backends.client import BackendClient
from inference.backends.health_checks import HealthChecks
from inference.backends.pool import BackendPool
from inference.backends.prompts import Prompt
from inference.backends.usage_dialects import UsageDialects
from inference.catalog.catalog import catalog
from inference.catalog.snapshot import DeploymentRef, Timeouts
from inference.chat.exchange import Egress, Exchange
from inference.chat.meter import Meter
from inference.chat.relays import stream
from inference.wire import ChatRequest, parse_body
from tests.fuzz.test_backend_streams import IDENTITY
from tests.inference.backends.test_connections import BACKEND
from tests.inference.chat.test_admission import published
from tests.support.model_servers.scripted import (
    STREAM_HEAD,
    Pause,
    Script,
    ScriptedServer,
    chunk,
    frames,
)

FOR_EVER = 60.0


class Reader:
    """A client that reads everything, or has disconnected."""

    backed_up = False

    def __init__(self) -> None:
        self.disconnected = False
        self.read = 0
        self.has_read = asyncio.Event()

    def follow(self, exchange: Stoppable) -> None:
        """Do nothing: the tests stop the exchange themselves."""

    async def send_frames(self, frames: bytes) -> None:
        self.read += len(frames)
        self.has_read.set()


@asynccontextmanager
async def asked(server: ScriptedServer, *, captured: bool = False) -> AsyncIterator[Exchange]:
    """Make a streamed request's exchange with ``server``, without running it."""
    timeouts = Timeouts(FOR_EVER, FOR_EVER, FOR_EVER, disconnect_drain=FOR_EVER)
    backend = replace(BACKEND, base_url=server.base_url, timeouts=timeouts)
    model = replace(published(), deployments=(DeploymentRef(backend, "demo"),))
    client, pool = BackendClient(), BackendPool()
    checks = HealthChecks(pool, client)
    egress = Egress(pool, client, Quarantine(0, 0.0), checks, UsageDialects(), catalog)
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "x"}],
        "stream": True,
        "max_tokens": 16,
    }
    request = ChatRequest.from_fields(parse_body(msgspec.json.encode(body)))
    lease = await pool.lease(model.deployments, Prompt("organization", 100))
    made = Exchange(
        request,
        model,
        lease,
        Meter(IDENTITY, time.perf_counter()),
        egress,
        note_progress=lambda _progress: None,
        kept_bytes=1000 if captured else 0,
    )
    try:
        yield made
    finally:
        await client.close()


@pytest.mark.parametrize(
    ("bound", "content", "captured"),
    [
        ("LARGEST_TEXT", "x" * 1000, False),
        # Many small pieces take as much memory as a few large ones.
        ("LARGEST_TEXT", "x", False),
        ("LARGEST_STREAM", "", False),
        ("LARGEST_STREAM", "", True),
    ],
)
async def test_a_stream_that_never_ends_is_cut(
    monkeypatch: pytest.MonkeyPatch,
    server: ScriptedServer,
    bound: str,
    content: str,
    captured: bool,
) -> None:
    monkeypatch.setattr(stream, bound, 200_000)
    (event,) = frames(chunk({"content": content}))
    block = event * (50_000 // len(event))
    server.streamed = Script([STREAM_HEAD, *[block] * 100, Pause(FOR_EVER)])
    client = Reader()
    async with asked(server, captured=captured) as made, asyncio.timeout(60):
        ended = await made.run(client, 0)

    assert isinstance(ended.failure, BackendProtocolError)
    assert sum(map(len, ended.content.received[:-1])) < 1000, "no more is held than is kept"
    # One read may exceed it.
    assert client.read < 100 * len(block)


async def test_a_stopping_server_does_not_wait_for_usage_after_a_disconnect(
    server: ScriptedServer,
) -> None:
    server.streamed = Script([STREAM_HEAD, *frames(chunk({"content": "x"})), Pause(FOR_EVER)])
    client = Reader()
    async with asked(server) as made, asyncio.timeout(60):
        running = asyncio.ensure_future(made.run(client, 0))
        await client.has_read.wait()
        client.disconnected = True
        made.stop(ClientDisconnected())
        await asyncio.sleep(0.05)
        assert not running.done(), "it is read on, so that its figures are real"

        made.stop(ServerShuttingDown())

        ended, _ = await asyncio.wait({running}, timeout=60)
        assert ended, "the stop did not reach it"
        assert isinstance((await running).failure, ClientDisconnected)
