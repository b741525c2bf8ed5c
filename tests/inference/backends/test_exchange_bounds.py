"""The size and duration of an exchange with a model server that never ends are bounded."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from decimal import Decimal

import msgspec
import pytest

from core.asgi.http import Stoppable
from core.backends.quarantine import Quarantine
from core.errors import BackendProtocolError, ClientDisconnected, ServerShuttingDown
from inference.backends.client import BackendClient
from inference.backends.health_checks import HealthChecks
from inference.backends.pool import BackendPool
from inference.backends.usage_dialects import UsageDialects
from inference.catalog.snapshot import BackendRef, DeploymentRef, PublishedModel, Timeouts
from inference.chat.exchange import Egress, Exchange
from inference.chat.meter import Identity, Meter
from inference.chat.relays import stream
from inference.wire import ChatRequest, parse_body
from inference.wire.dialects import KeepAlive, OutputCapField, RunningUsage
from tests.support.model_servers.scripted import (
    STREAM_HEAD,
    Pause,
    Script,
    ScriptedServer,
    chunk,
    frames,
    scripted_server,
)

FOR_EVER = 60.0
IDENTITY = Identity(
    request_id="req_" + "0" * 32,
    organization_id="organization",
    api_key_id="key",
    model_identifier="acme/demo-8b",
    model_id="model",
    model_version_id="version",
    streamed=True,
    shape="chat",
    input_price=Decimal("0.15"),
    output_price=Decimal("0.60"),
    currency="USD",
)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted_server() as running:
        yield running


class Reader:
    """A client that reads everything, or has disconnected."""

    backed_up = False

    def __init__(self) -> None:
        self.disconnected = False
        self.read = 0
        self.has_read = asyncio.Event()

    def follow(self, exchange: Stoppable) -> None:
        """Do nothing: the tests stop the exchange themselves."""

    async def send(self, frames: bytes) -> None:
        self.read += len(frames)
        self.has_read.set()


@asynccontextmanager
async def asked(server: ScriptedServer, *, captured: bool = False) -> AsyncIterator[Exchange]:
    """Make a streamed request's exchange with ``server``, without running it."""
    backend = BackendRef(
        id="backend",
        name="backend",
        base_url=server.base_url,
        headers={},
        max_concurrency=1,
        timeouts=Timeouts(FOR_EVER, FOR_EVER, FOR_EVER, disconnect_drain=FOR_EVER),
        running_usage=RunningUsage.NONE,
        output_cap_field=OutputCapField.BOTH,
        extra_fields=b"",
        keep_alive=KeepAlive.AUTO,
    )
    model = PublishedModel(
        id="acme/demo-8b",
        model_id="model",
        model_version_id="version",
        context_length=32_768,
        max_request_bytes=10_000,
        default_max_output_tokens=16,
        tool_calling=False,
        structured_output=False,
        tokenizer="",
        created=0,
        superseded_by=None,
        shutdown_at=None,
        shutdown_epoch=float("inf"),
        prices=(),
        deployments=(DeploymentRef(backend, "demo"),),
        limits={},
    )
    client, pool = BackendClient(), BackendPool()
    egress = Egress(pool, client, Quarantine(0, 0.0), HealthChecks(pool, client), UsageDialects())
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "x"}],
        "stream": True,
        "max_tokens": 16,
    }
    request = ChatRequest.from_fields(parse_body(msgspec.json.encode(body)))
    lease = await pool.lease(model.deployments, "organization")
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
