"""How answers are read: framing, bounds, and what is refused."""

from __future__ import annotations

import asyncio

import pytest

from core.http_client.connection import LARGEST_BUFFER
from core.http_client.request import (
    BodyTooLarge,
    ReadError,
    RemoteProtocolError,
    ServerDisconnected,
)
from core.http_client.response import LARGEST_HEAD, MOST_HEADERS
from tests.core.http_client.conftest import Post
from tests.support.servers.scripted import (
    CHUNKED,
    LAST_CHUNK,
    ScriptedServer,
    Step,
    chunk,
    port_of,
    running,
    sized,
)
from tests.support.servers.tcp_proxy import End

LIMIT = 1_000_000


@pytest.mark.parametrize(
    ("answer", "body", "connections"),
    [
        ([sized(b"hello")], b"hello", 1),
        ([sized(b"")], b"", 1),
        ([CHUNKED, chunk(b"hel"), chunk(b"lo"), LAST_CHUNK], b"hello", 1),
        ([CHUNKED, b"5;name=value\r\nhello\r\n0\r\n\r\n"], b"hello", 1),
        ([CHUNKED, chunk(b"hello"), b"0\r\nx-sum: 1\r\nx-other: 2\r\n\r\n"], b"hello", 1),
        ([b"HTTP/1.1 100 Continue\r\n\r\n", sized(b"hello")], b"hello", 1),
        ([b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" * 3 + sized(b"hello")], b"hello", 1),
        ([sized(b"hello", 200, "connection: close")], b"hello", 2),
        ([b"HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello"], b"hello", 2),
        (
            [b"HTTP/1.0 200 OK\r\ncontent-length: 5\r\nconnection: keep-alive\r\n\r\nhello"],
            b"hello",
            1,
        ),
        ([b"HTTP/1.1 200 OK\r\n\r\nhel", b"lo", End.FIN], b"hello", 2),
        ([b"HTTP/1.1 204 No Content\r\n\r\n"], b"", 1),
        ([b"HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n"], b"", 1),
        ([b"HTTP/1.1 200\r\ncontent-length: 5\r\n\r\nhello"], b"hello", 1),
        ([b"HTTP/1.1 200 OK\ncontent-length: 5\n\nhello"], b"hello", 1),
        ([sized(b"hello") + b"surplus"], b"hello", 2),
        ([sized(b"hello") + sized(b"again")], b"hello", 2),
        ([b"HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\nhello"], b"", 2),
        ([sized(b"hello", 200, "connection: close") + b"surplus"], b"hello", 2),
    ],
)
async def test_a_valid_answer_is_read_and_its_connection_kept_only_if_it_can_be(
    post: Post, answer: list[bytes | End], body: bytes, connections: int
) -> None:
    async with running(ScriptedServer([answer])) as server:
        for _ in range(2):
            response = await post(server.url())
            assert await response.read_all(LIMIT) == body
            assert await response.read() == b""
        assert server.connections == connections


async def test_status_and_headers_are_those_of_the_final_answer(post: Post) -> None:
    interim = b"HTTP/1.1 103 Early Hints\r\nX-Kind: interim\r\n\r\n"
    final = sized(b"", 418, "X-Kind: final", "X-Kind: second", "Content-Type: text/x; a=b")
    async with running(ScriptedServer([[interim + final]])) as server:
        response = await post(server.url())
    assert response.status == 418
    assert response.header(b"x-kind") == "final"
    assert response.header(b"content-type") == "text/x; a=b"
    assert response.header(b"missing", "-") == "-"
    assert response.has_length


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x16\x03\x01\x00\x05hello",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/9.9 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked, gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx: a\x00b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n folded: first\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * (MOST_HEADERS + 1) + b"\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000,
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 2 * LARGEST_HEAD,
    ],
)
async def test_what_is_no_answer_is_refused(post: Post, answer: bytes) -> None:
    async with running(ScriptedServer([[answer]])) as server:
        with pytest.raises(RemoteProtocolError) as caught:
            await post(server.url())
        assert caught.value.may_have_run
        assert "hello" not in str(caught.value)


@pytest.mark.parametrize(
    "rest",
    [
        b"zz\r\nhello\r\n",
        b"5\r\nhelloXX",
        b"-5\r\nhello\r\n",
        b"fffffffffffffffff\r\nhello\r\n",
        b"5;" + b"x" * 16 * LARGEST_HEAD,
        b"0\r\nx: " + b"y" * 16 * LARGEST_HEAD,
    ],
)
async def test_a_body_that_breaks_its_framing_is_refused(post: Post, rest: bytes) -> None:
    async with running(ScriptedServer([[CHUNKED + chunk(b"first"), rest]])) as server:
        response = await post(server.url())
        with pytest.raises(RemoteProtocolError):
            await response.read_all(LIMIT)


async def test_bytes_before_a_failure_are_read_first(post: Post) -> None:
    steps: list[Step] = [CHUNKED + chunk(b"first"), End.FIN]
    async with running(ScriptedServer([steps])) as server:
        response = await post(server.url())
        assert await response.read() == b"first"
        with pytest.raises(ReadError):
            await response.read()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\ncontent-le",
        b"H",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        CHUNKED + chunk(b"hello"),
        CHUNKED + chunk(b"hello") + b"0\r\n",
    ],
)
@pytest.mark.parametrize("end", End)
async def test_an_answer_that_ends_too_early_is_broken_off(
    post: Post, answer: bytes, end: End
) -> None:
    async with running(ScriptedServer([[answer, end]])) as server:
        # A reset may overtake the bytes before it.
        with pytest.raises(
            (ReadError, ServerDisconnected) if end is End.RST else ReadError
        ) as caught:
            await (await post(server.url())).read_all(LIMIT)
        assert caught.value.may_have_run


async def test_a_body_above_the_callers_bound_closes_the_connection(post: Post) -> None:
    steps = [CHUNKED, *[chunk(b"x" * 1000)] * 100]
    async with running(ScriptedServer([steps])) as server:
        response = await post(server.url())
        with pytest.raises(BodyTooLarge):
            await response.read_all(50_000)
        async with asyncio.timeout(60):
            await server.ended.wait()


async def test_a_reader_that_waits_holds_the_server_back(post: Post) -> None:
    written = 0
    piece, total = b"x" * 65536, 64 * 1024 * 1024

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        await reader.readuntil(b"\r\n\r\n{}")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % total)
        while written < total:
            writer.write(piece)
            await writer.drain()
            written += len(piece)
        writer.close()

    listening = await asyncio.start_server(flood, "127.0.0.1", 0)
    async with listening:
        response = await post(f"http://127.0.0.1:{port_of(listening)}/")
        before = -1
        while before < written:
            before = written
            await asyncio.sleep(0.2)
        # Socket buffers of the system included.
        assert written < total / 2
        assert response.buffered < 2 * LARGEST_BUFFER
        assert len(await response.read_all(total)) == total
