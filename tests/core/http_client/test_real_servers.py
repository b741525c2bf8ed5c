"""The client against HTTP servers as they are: uvicorn and nginx; llama.cpp is in tests/real."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from core.http_client.response import Response
from tests.core.http_client.conftest import Post
from tests.support.servers.nginx import running_nginx
from tests.support.until import until

LARGE = bytes(range(256)) * 40_000
"""10 MB: more than every buffer on the way."""
LIMIT = 2 * len(LARGE)
EVENTS = [b"data: %d\n\n" % number for number in range(200)]


async def echo(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """An ASGI application: ``/echo`` returns the body, ``/stream`` sends ``EVENTS``, else 404."""
    if scope["type"] != "http":
        return
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    if scope["path"] == "/stream":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for event in EVENTS:
            await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
        return
    length = [(b"content-length", b"%d" % len(body))]
    status = 200 if scope["path"] == "/echo" else 404
    await send({"type": "http.response.start", "status": status, "headers": length})
    await send({"type": "http.response.body", "body": body})


@contextmanager
def uvicorn_with(implementation: str) -> Iterator[int]:
    server = uvicorn.Server(
        uvicorn.Config(
            echo, port=0, http=implementation, lifespan="off", log_level="error", loop="asyncio"
        )
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until(lambda: server.started)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(60)


KEPT_FOR_FIVE_REQUESTS = """
  client_max_body_size 100m; keepalive_requests 5;
  server {
    listen 127.0.0.1:PORT;
    location / { proxy_pass http://127.0.0.1:BEHIND; proxy_http_version 1.1; proxy_buffering off; }
  }
"""


@contextmanager
def nginx(directory: Path, backend: int) -> Iterator[int]:
    """nginx in front of a server; it keeps a connection for five requests."""
    with running_nginx(directory, KEPT_FOR_FIVE_REQUESTS.replace("BEHIND", str(backend))) as port:
        yield port


SERVERS: dict[str, Callable[[], Any]] = {
    "uvicorn with httptools": lambda: uvicorn_with("httptools"),
    "uvicorn with h11": lambda: uvicorn_with("h11"),
}


@pytest.fixture(scope="module", params=[*SERVERS, "nginx"])
def port(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    if request.param == "nginx":
        directory = tmp_path_factory.mktemp("nginx")
        with uvicorn_with("httptools") as behind, nginx(directory, behind) as made:
            yield made
        return
    with SERVERS[request.param]() as made:
        yield made


async def test_answers_of_a_real_server_are_read_over_kept_connections(
    port: int, post: Post
) -> None:
    async def ask(path: str, body: bytes) -> Response:
        return await post(f"http://127.0.0.1:{port}{path}", body)

    reused = 0
    for body in (b"{}", b"", b"x" * 100_000, LARGE, *[b"again"] * 8):
        answer = await ask("/echo", body)
        assert answer.status == 200
        assert await answer.read_all(LIMIT) == body
        reused += answer.reused
        stream = await ask("/stream", body)
        assert await stream.read_all(LIMIT) == b"".join(EVENTS)
        reused += stream.reused
    assert (await ask("/nowhere", b"{}")).status == 404
    assert reused >= 15


async def test_many_requests_at_once(port: int, post: Post) -> None:
    async def ask(number: int) -> None:
        body = b"%d" % number * (1 + number % 7) * 1000
        answer = await post(f"http://127.0.0.1:{port}/echo", body)
        assert await answer.read_all(LIMIT) == body

    for _ in range(3):
        await asyncio.gather(*map(ask, range(32)))
