"""Which failure a caller gets, and whether it says that the request can have run."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from core.http_client.client import HttpClient
from core.http_client.request import (
    Closed,
    ConnectError,
    HttpError,
    Obstacle,
    RequestHead,
    ServerDisconnected,
    WriteError,
)
from tests.core.http_client.conftest import Post
from tests.support.servers.scripted import (
    CHUNKED,
    ScriptedServer,
    Step,
    Until,
    chunk,
    port_of,
    running,
    sized,
)
from tests.support.servers.tcp_proxy import End
from tests.support.until import until_async

LARGE = b"x" * 32 * 1024 * 1024
"""More than the system's socket buffers hold."""


async def test_a_refused_connection_ran_nothing(post: Post) -> None:
    with pytest.raises(ConnectError) as caught:
        await post("http://127.0.0.1:1/")
    assert caught.value.obstacle is Obstacle.REFUSED
    assert isinstance(caught.value.cause, ConnectionRefusedError)
    assert not caught.value.may_have_run


@pytest.mark.parametrize("end", End)
async def test_a_new_connection_that_ends_without_an_answer(post: Post, end: End) -> None:
    async with running(ScriptedServer([[end]])) as server:
        with pytest.raises(ServerDisconnected) as caught:
            await post(server.url())
        assert caught.value.may_have_run
        assert not caught.value.reused
        assert len(server.requests) == 1


@pytest.mark.parametrize("end", End)
async def test_a_kept_connection_that_ends_without_an_answer_is_named_so(
    post: Post, end: End
) -> None:
    async with running(ScriptedServer([[sized(b"hello")], [end]])) as server:
        await (await post(server.url())).read_all(10)
        with pytest.raises(ServerDisconnected) as caught:
            await post(server.url())
        assert caught.value.reused
        assert server.connections == 1


@pytest.mark.parametrize("end", End)
async def test_a_server_that_leaves_during_a_large_body_cannot_have_run_it(
    post: Post, end: End
) -> None:
    server = ScriptedServer([[]], at_connection=[end])
    async with running(server):
        with pytest.raises((WriteError, ServerDisconnected)) as caught:
            await post(server.url(), LARGE)
        assert isinstance(caught.value, WriteError)
        assert not caught.value.may_have_run


async def test_a_server_may_refuse_a_large_body_before_its_end(post: Post) -> None:
    connections = 0

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.read(100)
        writer.write(sized(b"no", 413))
        with suppress(OSError):
            await reader.read()
        writer.close()

    listening = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with listening:
        for count in (1, 2):
            response = await post(f"http://127.0.0.1:{port_of(listening)}/", LARGE)
            assert response.status == 413
            assert await response.read_all(10) == b"no"
            assert connections == count, "a half-sent request leaves no connection to reuse"
        await asyncio.sleep(0.05)  # lets the server see the ends


@pytest.mark.parametrize("steps", [[], [CHUNKED], [CHUNKED, chunk(b"hello")]])
async def test_cancelling_the_caller_closes_the_connection_at_once(
    post: Post, steps: list[bytes]
) -> None:
    async with running(ScriptedServer([steps])) as server:
        read = asyncio.Event()

        async def ask() -> None:
            response = await post(server.url())
            while True:
                await response.read()
                read.set()

        asking = asyncio.ensure_future(ask())
        await until_async(lambda: server.requests)
        if len(steps) == 2:
            await until_async(read.is_set)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await until_async(lambda: server.ends)


async def test_cancelling_while_a_large_body_is_written_closes_the_connection(post: Post) -> None:
    hold = asyncio.Event()
    server = ScriptedServer([[]], at_connection=[Until(hold)])
    async with running(server):
        asking = asyncio.ensure_future(post(server.url(), LARGE))
        await asyncio.sleep(0.2)
        assert not asking.done()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        hold.set()
        await until_async(lambda: server.ends)
        assert not server.requests


async def test_closing_a_half_read_answer_closes_its_connection(post: Post) -> None:
    async with running(ScriptedServer([[CHUNKED, chunk(b"hello")]])) as server:
        response = await post(server.url())
        assert await response.read() == b"hello"
        response.close()
        async with asyncio.timeout(60):
            await server.ended.wait()
        with pytest.raises(Closed):
            await response.read()


async def test_closing_the_client_ends_what_runs(client: HttpClient, post: Post) -> None:
    async with running(ScriptedServer([[CHUNKED]])) as server:
        response = await post(server.url())
        reading = asyncio.ensure_future(response.read())
        await asyncio.sleep(0)
        await client.close()
        with pytest.raises(Closed):
            await reading
        with pytest.raises(Closed):
            await post(server.url())


async def test_no_failure_says_what_was_sent(post: Post) -> None:
    scripts: list[list[Step]] = [[End.FIN], [b"secret"], [sized(b"secret")[:-3], End.FIN]]
    for script in scripts:
        async with running(ScriptedServer([script])) as server:
            with pytest.raises(HttpError) as caught:
                await (await post(server.url(), b"secret")).read_all(100)
            assert "secret" not in repr(caught.value)


@pytest.mark.parametrize(
    ("url", "headers"),
    [
        ("ftp://host/", {}),
        ("http:///path", {}),
        ("http://user:password@host/", {}),
        ("http://host:99999/", {}),
        ("http://host/", {"x": "a\r\nb: c"}),
        ("http://host/", {"x\r\ny": "a"}),
        ("http://host/", {"": "a"}),
        ("http://host/", {"x": "a\x00"}),
        ("http://host/", {"Content-Length": "5"}),
        ("http://host/", {"Transfer-Encoding": "chunked"}),
        ("http://host/", {"Host": "other"}),
    ],
)
def test_a_head_that_cannot_be_sent_is_refused(url: str, headers: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        RequestHead.of("POST", url, headers)


@pytest.mark.parametrize(
    ("url", "first", "host"),
    [
        ("http://Example.com/v1/chat", b"POST /v1/chat HTTP/1.1", b"host: example.com"),
        ("http://example.com:8080", b"POST / HTTP/1.1", b"host: example.com:8080"),
        ("https://example.com:443/a b", b"POST /a%20b HTTP/1.1", b"host: example.com"),
        ("https://example.com:80/a%20b", b"POST /a%20b HTTP/1.1", b"host: example.com:80"),
        ("http://[::1]:9/\u00e4", b"POST /%C3%A4 HTTP/1.1", b"host: [::1]:9"),
        ("http://b\u00fccher.example/", b"POST / HTTP/1.1", b"host: xn--bcher-kva.example"),
        ("http://host/v1?api-version=1", b"POST /v1?api-version=1 HTTP/1.1", b"host: host"),
    ],
)
def test_a_head_is_rendered_from_the_address(url: str, first: bytes, host: bytes) -> None:
    lines = RequestHead.of("POST", url, {"X-Key": " a "}).render(5, close=True).split(b"\r\n")
    assert lines == [first, host, b"x-key: a", b"connection: close", b"content-length: 5", b"", b""]
