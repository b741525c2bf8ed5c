"""The client against HTTP servers as they are: uvicorn, nginx, aiohttp, http.server, llama.cpp."""

from __future__ import annotations

import asyncio
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from aiohttp import web

from core.http_client.request import ServerDisconnected
from core.http_client.response import Response
from tests.core.http_client.conftest import Post
from tests.real.servers.llama import missing_packages, running_llama
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
def uvicorn_with(implementation: str, keep_alive: int = 5) -> Iterator[int]:
    """Run uvicorn; ``keep_alive`` is after how many idle seconds it closes a connection."""
    server = uvicorn.Server(
        uvicorn.Config(
            echo,
            port=0,
            http=implementation,
            lifespan="off",
            log_level="error",
            loop="asyncio",
            timeout_keep_alive=keep_alive,
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


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200 if self.path != "/nowhere" else 404)
        if self.path == "/stream":
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for event in EVENTS:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
            self.wfile.write(b"0\r\n\r\n")
            return
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def http_server(protocol: str) -> Iterator[int]:
    handler = type("Handler", (_Handler,), {"protocol_version": protocol})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)


@contextmanager
def aiohttp_server() -> Iterator[int]:
    async def stream(request: web.Request) -> web.StreamResponse:
        await request.read()
        response = web.StreamResponse()
        await response.prepare(request)
        for event in EVENTS:
            await response.write(event)
        return response

    async def whole(request: web.Request) -> web.Response:
        return web.Response(body=await request.read())

    async def begin() -> web.AppRunner:
        application = web.Application(client_max_size=LIMIT)
        application.add_routes([web.post("/echo", whole), web.post("/stream", stream)])
        runner = web.AppRunner(application)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return runner

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    runner = asyncio.run_coroutine_threadsafe(begin(), loop).result(60)
    try:
        yield runner.addresses[0][1]
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()


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
    "aiohttp": aiohttp_server,
    "http.server": lambda: http_server("HTTP/1.1"),
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


async def test_a_server_of_http_1_0_ends_each_answer_with_its_connection(post: Post) -> None:
    with http_server("HTTP/1.0") as port:
        for _ in range(3):
            answer = await post(f"http://127.0.0.1:{port}/echo", b"hello")
            assert await answer.read_all(LIMIT) == b"hello"
            assert not answer.reused


async def test_a_server_that_closes_idle_connections_costs_no_answer(post: Post) -> None:
    with uvicorn_with("httptools", keep_alive=0) as port:
        for _ in range(50):
            try:
                answer = await post(f"http://127.0.0.1:{port}/echo", b"hello")
            except ServerDisconnected as error:
                if not error.reused:
                    raise
                answer = await post(f"http://127.0.0.1:{port}/echo", b"hello", fresh=True)
            assert await answer.read_all(LIMIT) == b"hello"


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if missing := missing_packages():
        pytest.skip(f"{' and '.join(missing)} is missing: llama.cpp is not tried.")
    with running_llama(tmp_path_factory.mktemp("llama")) as server:
        yield server.base_url


@pytest.mark.parametrize("streamed", [False, True])
async def test_llama_cpp(llama: str, post: Post, streamed: bool) -> None:
    """It closes its connection after each stream, without announcing it."""
    body = json.dumps(
        {
            "model": "tiny",
            "messages": [{"role": "user", "content": "Hello"}],
            "max_tokens": 8,
            "stream": streamed,
        }
    ).encode()
    for _ in range(4):
        answer = await post(f"{llama}/chat/completions", body)
        content = await answer.read_all(LIMIT)
        assert answer.status == 200
        if streamed:
            assert content.rstrip().endswith(b"data: [DONE]")
        else:
            assert json.loads(content)["choices"]
        await asyncio.sleep(0.1)
