"""Which connections to a backend are used again after a streamed answer, and when."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from core.backends.outbound import request_head
from inference.backends import connections as connections_module
from inference.backends.connections import Connections
from inference.catalog.snapshot import BackendRef, Timeouts
from inference.wire.dialects import KeepAlive, OutputCapField, RunningUsage
from tests.support.model_servers.scripted import (
    CHUNKED_HEAD,
    GOOD,
    Pause,
    Script,
    ScriptedServer,
    Step,
    body,
    chunked,
    completion,
    frames,
)
from tests.support.servers.tcp_proxy import End
from tests.support.until import until_async

BACKEND = BackendRef(
    id="one",
    name="one",
    base_url="http://127.0.0.1:1/v1",
    headers={},
    max_concurrency=1,
    timeouts=Timeouts(1, 1, 1, 1),
    running_usage=RunningUsage.NONE,
    output_cap_field=OutputCapField.BOTH,
    extra_fields=b"",
    keep_alive=KeepAlive.AUTO,
)
STREAM: list[Step] = [CHUNKED_HEAD, *map(chunked, frames(*GOOD)), b"0\r\n\r\n"]
SILENT_CLOSE: list[Step] = [*STREAM, Pause(0.05), End.FIN]
"""As llama.cpp does: nothing in the answer announces the close."""

Ask = Callable[[bool], Awaitable[None]]


def play(
    server: ScriptedServer, stream: list[Step], asks: Callable[[Ask], Awaitable[None]]
) -> None:
    """Run ``asks`` against ``server``, with a function that sends one request, streamed or whole."""
    backend = replace(BACKEND, base_url=server.base_url)
    request = request_head("POST", server.base_url + "/chat/completions", {})
    server.say(Script(stream), Script([body(completion())]))

    async def main() -> None:
        connections = Connections()

        async def ask(streamed: bool) -> None:
            asked = b'{"stream":true}' if streamed else b"{}"
            response = await connections.post(backend, request, asked, streamed=streamed)
            await response.read_all(1_000_000)

        try:
            await asks(ask)
        finally:
            await connections.close()

    asyncio.run(main())


def test_no_request_goes_to_a_connection_that_its_server_closes_after_a_stream(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    async def asks(ask: Ask) -> None:
        for streamed in (True, True, False, True):
            await ask(streamed)

    with caplog.at_level(logging.INFO, "inference.backends.connections"):
        play(server, SILENT_CLOSE, asks)

    assert caplog.messages == []
    assert len(server.requests()) == 4


def test_a_connection_that_stays_open_after_a_stream_is_used_again(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections_module, "STREAM_REST_SECONDS", 0.02)

    async def asks(ask: Ask) -> None:
        async def uses_one_again() -> bool:
            before = server.connections
            await ask(True)
            return server.connections == before

        await until_async(uses_one_again)

    play(server, STREAM, asks)


def test_a_whole_answer_leaves_its_connection_to_the_next_request_at_once(
    server: ScriptedServer,
) -> None:
    async def asks(ask: Ask) -> None:
        for streamed in (False, False, True):
            await ask(streamed)

    play(server, STREAM, asks)

    assert server.connections == 1
