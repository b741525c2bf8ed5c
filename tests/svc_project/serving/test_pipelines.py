"""Requests that a client writes behind each other, without waiting for answers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
import uvicorn
from pytest_django.fixtures import Settings
from uvicorn.server import ServerState

from svc_project.serving.http_protocol import PipelinedProtocol
from tests.support.clients.raw_client import RawClient
from tests.support.live import NO_TLS, Gateway
from tests.support.until import until_async
from tests.svc_project.serving.test_upgrades import Answering

Message = dict[str, Any]

MOST_QUEUED = 150
"""The 32 that may wait, and what one part that is parsed can hold."""


class Queueing(Answering):
    """The first request waits for ``goes_on``.

    ``queued``: how many waited on the connection, at the beginning and the end of each.
    """

    def __init__(self) -> None:
        super().__init__()
        self.goes_on.clear()
        self.begun = asyncio.Event()
        self.queued: list[int] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.queued.append(len(scope["svc.connection"].pipeline))
        self.begun.set()
        await super().__call__(scope, receive, send)
        self.queued.append(len(scope["svc.connection"].pipeline))


@asynccontextmanager
async def served(app: Any) -> AsyncIterator[int]:
    """Serve ``app`` with the protocol of the gateway; the port."""
    config = uvicorn.Config(app, lifespan="off", log_config=None, timeout_keep_alive=60)
    config.load()
    state = ServerState()
    listening = await asyncio.get_running_loop().create_server(
        lambda: PipelinedProtocol(config=config, server_state=state, app_state={}),
        "127.0.0.1",
        0,
    )
    async with listening:
        yield listening.sockets[0].getsockname()[1]


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nhost:a\r\n\r\n".encode()


def post(path: str, size: int) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nhost:a\r\ncontent-length: {size}\r\n\r\n"
    return head.encode() + b"x" * size


async def answers(reader: asyncio.StreamReader, last: str) -> list[tuple[str, int]]:
    """Path and size of the body of each request that was answered, up to the one to ``last``."""
    async with asyncio.timeout(60):
        read = await reader.readuntil(f" {last} 0>".encode())
    return [(path.decode(), int(size)) for path, size in re.findall(rb"<\w+ (\S+) (\d+)>", read)]


async def test_only_so_many_wait_and_all_are_answered_in_order() -> None:
    app = Queueing()
    count = 8000
    async with served(app) as port, asyncio.timeout(100):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=10_000_000)
        writer.write(b"".join(get(f"/{number}") for number in range(count)))
        await app.begun.wait()
        assert len(app.queued) == 1

        other_reader, other = await asyncio.open_connection("127.0.0.1", port)
        other.write(get("/other"))
        await until_async(lambda: len(app.queued) > 1)  # the other one has begun
        app.goes_on.set()
        assert await answers(other_reader, "/other") == [("/other", 0)]

        found = await answers(reader, f"/{count - 1}")
        assert found == [(f"/{number}", 0) for number in range(count)]
        other.close()
        writer.close()
    assert max(app.queued) <= MOST_QUEUED


CHUNKED = (
    b"POST /large HTTP/1.1\r\nhost:a\r\ntransfer-encoding: chunked\r\n\r\n"
    + b"186a0\r\n%b\r\n" % (b"x" * 100_000) * 5
    + b"0\r\n\r\n"
)


@pytest.mark.parametrize("large", [post("/large", 500_000), CHUNKED], ids=["length", "chunked"])
async def test_bodies_among_them_arrive_whole(large: bytes) -> None:
    app = Queueing()
    async with served(app) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=10_000_000)
        writer.write(
            b"".join([get("/a"), *(post("/b", 100) for _ in range(300)), large, get("/z")])
        )
        await app.begun.wait()
        app.goes_on.set()
        found = await answers(reader, "/z")
        writer.close()
    assert found == [("/a", 0), *[("/b", 100)] * 300, ("/large", 500_000), ("/z", 0)]
    assert max(app.queued) <= MOST_QUEUED


async def test_what_waits_unparsed_is_not_taken_for_a_slow_head(settings: Settings) -> None:
    settings.SVC_HEAD_SECONDS = 0.1
    app = Queueing()
    count = 1000
    async with served(app) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=10_000_000)
        writer.write(b"".join(get(f"/{number}") for number in range(count)))
        await app.begun.wait()
        await asyncio.sleep(0.5)  # far longer than a head may take
        app.goes_on.set()
        assert len(await answers(reader, f"/{count - 1}")) == count
        writer.close()


@pytest.mark.long
def test_thousands_behind_a_stream_keep_nobody_waiting(gateway: Gateway) -> None:
    with RawClient(gateway) as client:
        client.chat("[[sim tokens=100 pace=20]]", stream=True)
        client.read_until(2, b"data: ")
        client.send(b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n" * 5000)
        assert httpx2.get(f"{gateway.url}/livez", verify=NO_TLS, timeout=60).status_code == 200
        assert b"[DONE]" not in client.received
        client.read_until(5001, b"HTTP/1.1 200")


async def test_a_client_that_leaves_is_seen_by_the_request_that_is_answered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """uvicorn tells only the request that came last, which here has not begun."""
    begun, left = asyncio.Event(), asyncio.Event()

    async def app(scope: Message, receive: Any, send: Any) -> None:
        begun.set()
        while (await receive())["type"] != "http.disconnect":
            pass
        left.set()

    async with served(app) as port, asyncio.timeout(60):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(get("/first") + get("/second"))
        await begun.wait()
        writer.transport.abort()
        await left.wait()
        await asyncio.sleep(0)
    assert [each for each in caplog.records if each.levelname == "ERROR"] == []


def test_a_refusal_waits_for_the_running_answer(gateway: Gateway) -> None:
    """Answers leave in the order of their requests (RFC 9112, section 9.3.2)."""
    with RawClient(gateway) as client:
        client.chat("[[sim tokens=60 pace=100]]", stream=True)
        client.read_until(3, b"data: ")
        client.send(b"this is no HTTP\r\n\r\n")
        received = client.rest()

    stream, _, refusal = received.partition(b"data: [DONE]\n\n")
    assert stream.count(b"HTTP/1.1 ") == 1
    assert refusal.count(b"HTTP/1.1 ") == 1
    assert b"HTTP/1.1 400 Bad Request\r\n" in refusal
    (row,) = gateway.rows()
    assert row.outcome == "success"


@pytest.mark.parametrize("broken", [b"XX\r\n\r\n", b"POST /v1/models HTTP/1.1\r\nhost: a\r\n"
    b"transfer-encoding: chunked\r\n\r\nno chunk\r\n"], ids=["head", "body"])  # fmt: skip
def test_a_refusal_is_not_sent_in_the_place_of_another_answer(
    gateway: Gateway, broken: bytes
) -> None:
    with RawClient(gateway) as client:
        client.chat("say: mine [[sim first=0.3]]")
        client.send(broken)
        received = client.rest()

    first, _, second = received.partition(b"HTTP/1.1 400 Bad Request\r\n")
    assert first.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b'"content":"mine' in first
    assert second.endswith(b"}}")
