"""What a request used is freed with its end, and does not wait for the garbage collector.

The collector stops the event loop while it frees objects, and until it runs they hold memory: each
refused request its body, each closed connection its buffers.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.resilience.attackers.floods import invented
from tests.resilience.target import Target
from tests.resilience.tenants import make
from tests.resilience.wire import Answer, Cut, WebSocket, ask, chat, connect, head, request, speech
from tests.support.live import ROOT, Gateway
from tests.support.live_catalog import backend, publish
from tests.support.metrics import metrics
from tests.support.until import until

TIMES = 20
OURS = ("svc_project.", "inference.", "speech.", "accounts.", "usage.", "uvicorn.", "websockets.")
RAISED = ("builtins.frame", "builtins.traceback")

Once = Callable[[Target], Awaitable[object]]


async def sent(target: Target, body: bytes, key: str | None = None) -> Answer:
    key = key or target.tenant.inference
    return await ask(target.port, request("POST", "/v1/chat/completions", key=key, body=body))


async def chats(target: Target) -> None:
    assert (await sent(target, chat(target, "hello [[sim tokens=3]]"))).status == 200


async def streams(target: Target) -> None:
    answer = await sent(target, chat(target, "hello [[sim tokens=3]]", stream=True))
    assert answer.body.endswith(b"data: [DONE]\n\n")


async def chats_on_one_connection(target: Target) -> None:
    body = chat(target, "hello [[sim tokens=3]]")
    length = {"Content-Length": str(len(body))}
    content = head("POST", "/v1/chat/completions", key=target.tenant.inference, headers=length)
    reader, writer = await connect(target.port)
    for _ in range(2):
        writer.write(content + body)
        await reader.readuntil(b'"usage"')
    writer.transport.abort()


async def a_stream_that_is_left(target: Target) -> None:
    body = chat(target, "hello [[sim tokens=500 pace=50]]", stream=True)
    content = request("POST", "/v1/chat/completions", key=target.tenant.inference, body=body)
    reader, writer = await connect(target.port)
    writer.write(content)
    await reader.readuntil(b"data: ")
    writer.transport.abort()


async def a_stream_that_breaks(target: Target) -> None:
    body = chat(target, "hello [[sim tokens=9 fault=cut@3]]", stream=True)
    assert b"error" in (await sent(target, body)).body


async def a_model_server_that_fails(target: Target) -> None:
    body = chat(target, "hello [[sim fault=status=400]]")
    assert (await sent(target, body)).status == 400


async def no_json(target: Target) -> None:
    assert (await sent(target, b"{")).status == 400


async def an_unknown_key(target: Target) -> None:
    assert (await sent(target, b"{}", invented("svc_live_"))).status == 401


async def a_limit_that_is_used_up(target: Target) -> None:
    answer = await sent(target, chat(target, "hello"), target.tenant.spent)
    assert answer.status in (200, 429)  # the first one is within it


async def a_body_that_is_too_large(target: Target) -> None:
    content = head(
        "POST",
        "/v1/chat/completions",
        key=target.tenant.inference,
        headers={"Content-Length": "50000000", "Connection": "close"},
    )
    assert (await ask(target.port, content)).status == 413


async def a_body_that_is_left(target: Target) -> None:
    length = {"Content-Length": "1000"}
    content = head("POST", "/v1/chat/completions", key=target.tenant.inference, headers=length)
    _, writer = await connect(target.port)
    writer.write(content + b"{")
    await writer.drain()
    writer.transport.abort()


async def no_http(target: Target) -> None:
    reader, writer = await connect(target.port)
    writer.write(b"\x16\x03\x01 hello\r\n\r\n")
    await reader.read()
    writer.transport.abort()


async def spoken(target: Target) -> None:
    content = request(
        "POST", "/v1/audio/speech", key=target.tenant.speech, body=speech(target, "Bees fly.")
    )
    assert (await ask(target.speech_port, content)).status == 200


async def a_session(target: Target) -> None:
    async with WebSocket(target, target.tenant.speech) as socket:
        await socket.send(type="start", voice=target.voice)
        await socket.send(type="text", text="Bees fly.")
        await socket.send(type="done")
        while True:
            message = await socket.receive()
            if isinstance(message, dict) and message["type"] == "session.done":
                return


async def a_session_that_is_left(target: Target) -> None:
    async with WebSocket(target, target.tenant.speech) as socket:
        await socket.send(type="start", voice=target.voice)
        await socket.receive()


async def a_refused_session(target: Target) -> None:
    with suppress(Cut):
        async with WebSocket(target, "svc_speech_unknown"):
            raise AssertionError("an unknown key was accepted")


def asked(pid: int, number: signal.Signals, report: Path) -> dict[str, int]:
    report.unlink(missing_ok=True)
    os.kill(pid, number)
    until(report.exists)
    found: dict[str, int] = json.loads(report.read_text())
    return found


@pytest.mark.long
def test_requests_leave_nothing_to_the_garbage_collector(
    start_gateway: Callable[..., Gateway], tmp_path: Path
) -> None:
    report = tmp_path / "found.json"
    gateway = start_gateway(
        PYTHONPATH=str(ROOT / "tests/support/cycles"), SVC_TEST_CYCLES=str(report)
    )
    _, tenant = make("frugal")
    target = Target(gateway.port, gateway.speech_port, tenant)
    learning = publish(gateway, backend(gateway)).identifier
    pid = gateway.command.worker

    async def a_stream_that_is_refused_twice(target: Target) -> None:
        """Refused without running usage too, so that its dialect is never found."""
        content = chat(replace(target, model=learning), "[[sim fault=status@400]]", stream=True)
        assert (await sent(target, content)).status == 400

    kinds: list[Once] = [
        chats,
        streams,
        chats_on_one_connection,
        a_stream_that_is_left,
        a_stream_that_breaks,
        a_model_server_that_fails,
        a_stream_that_is_refused_twice,
        no_json,
        an_unknown_key,
        a_limit_that_is_used_up,
        a_body_that_is_too_large,
        a_body_that_is_left,
        no_http,
        spoken,
        a_session,
        a_session_that_is_left,
        a_refused_session,
    ]

    async def several(once: Once) -> None:
        await asyncio.gather(*(once(target) for _ in range(TIMES)))

    def is_idle() -> bool:
        return metrics(gateway).sum("svc_connections") == 1  # that of the question itself

    left: dict[str, dict[str, int]] = {}
    for once in kinds:
        asyncio.run(several(once))
        asked(pid, signal.SIGUSR1, report)
        asyncio.run(several(once))
        until(is_idle)
        found = asked(pid, signal.SIGUSR2, report)
        left[once.__name__] = {
            name: count for name, count in found.items() if name.startswith(OURS) or name in RAISED
        }

    assert {name: found for name, found in left.items() if found} == {}
