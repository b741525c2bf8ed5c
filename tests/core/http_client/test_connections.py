"""Which connections are kept and reused, for how long, and the deadlines of exchanges over them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from math import inf

import pytest

from core.http_client import client as client_module
from core.http_client import response as response_module
from core.http_client.client import HttpClient
from core.http_client.request import Phase, TimedOut
from tests.core.http_client.conftest import Post
from tests.core.http_client.test_failures import LARGE
from tests.support.servers.scripted import (
    CHUNKED,
    LAST_CHUNK,
    ScriptedServer,
    Step,
    Until,
    chunk,
    running,
    sized,
)
from tests.support.servers.tcp_proxy import End
from tests.support.until import until_async


async def ask(post: Post, server: ScriptedServer) -> bytes:
    return await (await post(server.url())).read_all(1000)


def seconds(amount: float) -> float:
    return asyncio.get_running_loop().time() + amount


async def test_requests_one_after_the_other_share_a_connection(post: Post) -> None:
    async with running(ScriptedServer([[sized(b"hello")]])) as server:
        responses = []
        for _ in range(20):
            responses.append(await post(server.url()))
            await responses[-1].read_all(10)
        assert server.connections == 1
        assert [each.reused for each in responses] == [False] + [True] * 19


async def test_requests_at_once_get_a_connection_each_and_share_them_later(post: Post) -> None:
    async with running(ScriptedServer([[sized(b"hello")]])) as server:
        for _ in range(3):
            assert await asyncio.gather(*[ask(post, server) for _ in range(8)]) == [b"hello"] * 8
        assert server.connections == 8


async def test_an_unread_answer_that_has_arrived_does_not_hold_its_connection(post: Post) -> None:
    async with running(ScriptedServer([[sized(b"first")], [sized(b"second")]])) as server:
        first = await post(server.url())
        second = await post(server.url())
        assert server.connections == 1
        assert await second.read_all(10) == b"second"
        assert await first.read_all(10) == b"first"


async def test_a_fresh_connection_is_asked_to_close_and_not_kept(post: Post) -> None:
    async with running(ScriptedServer([[sized(b"hello")]])) as server:
        for count in (1, 2):
            response = await post(server.url(), fresh=True)
            assert await response.read_all(10) == b"hello"
            assert server.connections == count
        assert b"connection: close" in server.requests[0]
        await ask(post, server)
        assert server.connections == 3
        assert b"connection: close" not in server.requests[2]


async def test_a_connection_rests_before_it_is_used_again(post: Post) -> None:
    async with running(ScriptedServer([[sized(b"hello")]])) as server:
        for _ in range(2):
            await (await post(server.url(), rest=60.0)).read_all(10)
        assert server.connections == 2


async def test_a_rested_connection_is_used_again(client: HttpClient, post: Post) -> None:
    async with running(ScriptedServer([[sized(b"hello")]])) as server:
        await (await post(server.url(), rest=0.05)).read_all(10)
        assert not client._kept
        await until_async(lambda: bool(client._kept))
        await ask(post, server)
        await ask(post, server)
        assert server.connections == 1


async def test_a_connection_that_ends_while_it_rests_is_not_used(
    client: HttpClient, post: Post
) -> None:
    async with running(ScriptedServer([[sized(b"hello"), End.FIN], [sized(b"again")]])) as server:
        await (await post(server.url(), rest=0.05)).read_all(10)
        await until_async(lambda: not client._open)
        await asyncio.sleep(0.1)  # longer than the rest
        assert await ask(post, server) == b"again"
        assert server.connections == 2


async def test_origins_do_not_share_connections(post: Post) -> None:
    one = ScriptedServer([[sized(b"one")]])
    two = ScriptedServer([[sized(b"two")]])
    async with running(one), running(two):
        for _ in range(2):
            assert await ask(post, one) == b"one"
            assert await ask(post, two) == b"two"
        assert (one.connections, two.connections) == (1, 1)


@pytest.mark.parametrize("last", [*End, sized(b"forged")], ids=["FIN", "RST", "bytes unasked"])
async def test_an_idle_connection_on_which_something_arrives_is_not_used(
    client: HttpClient, post: Post, last: Step
) -> None:
    later = asyncio.Event()
    script: list[Step] = [sized(b"hello"), Until(later), last]
    async with running(ScriptedServer([script, [sized(b"again")]])) as server:
        await ask(post, server)
        later.set()
        await until_async(lambda: not client._open)
        assert await ask(post, server) == b"again"
        assert server.connections == 2


async def test_idle_connections_are_closed(
    monkeypatch: pytest.MonkeyPatch, client: HttpClient, post: Post
) -> None:
    monkeypatch.setattr(client_module, "KEPT_SECONDS", 0.3)
    async with running(ScriptedServer([[sized(b"hello")]])) as server:
        await asyncio.gather(*[ask(post, server) for _ in range(4)])
        await until_async(lambda: server.ends == 4)
        assert not client._kept
        assert not client._open


async def test_a_connection_that_was_idle_for_too_long_is_not_used(
    monkeypatch: pytest.MonkeyPatch, post: Post
) -> None:
    async with running(ScriptedServer([[sized(b"hello")]])) as server:
        await ask(post, server)
        monkeypatch.setattr(client_module, "KEPT_SECONDS", 0.0)
        await ask(post, server)
        assert server.connections == 2


async def test_a_busy_connection_is_replaced_after_a_while(
    monkeypatch: pytest.MonkeyPatch, post: Post
) -> None:
    """So that requests follow a name that has moved to another server."""
    async with running(ScriptedServer([[sized(b"hello")]])) as server:
        monkeypatch.setattr(client_module, "OLDEST_SECONDS", 0.0)
        for _ in range(2):
            assert await ask(post, server) == b"hello"
        assert server.connections == 2


async def test_a_released_stream_keeps_its_connection_when_its_end_arrives(
    client: HttpClient, post: Post
) -> None:
    end = asyncio.Event()
    script: list[Step] = [CHUNKED, chunk(b"[DONE]"), Until(end), LAST_CHUNK]
    async with running(ScriptedServer([script])) as server:
        for _ in range(2):
            response = await post(server.url())
            assert await response.read() == b"[DONE]"
            response.release()
            end.set()
            await until_async(lambda: client._kept)
        assert server.connections == 1


@pytest.mark.parametrize("rest", [[], [chunk(b"x" * 1000)] * 200])
async def test_a_released_stream_that_does_not_end_is_closed(
    monkeypatch: pytest.MonkeyPatch, post: Post, rest: list[bytes]
) -> None:
    monkeypatch.setattr(response_module, "_LINGER_SECONDS", 0.2)
    go_on = asyncio.Event()
    script: list[Step] = [CHUNKED, chunk(b"[DONE]"), Until(go_on), *rest]
    async with running(ScriptedServer([script])) as server:
        response = await post(server.url())
        assert await response.read() == b"[DONE]"
        response.release()
        go_on.set()
        async with asyncio.timeout(60):
            await server.ended.wait()


@pytest.mark.parametrize(
    ("steps", "phase"),
    [
        ([], Phase.FIRST_BYTE),
        ([b"HTTP/1.1 200 OK\r\ncontent"], Phase.FIRST_BYTE),
        ([b"HTTP/1.1 100 Continue\r\n\r\n"], Phase.FIRST_BYTE),
        ([CHUNKED], Phase.BODY),
        ([CHUNKED, chunk(b"hello")], Phase.BODY),
    ],
)
async def test_a_deadline_ends_an_exchange_and_says_in_which_phase(
    post: Post, steps: list[bytes], phase: Phase
) -> None:
    async with running(ScriptedServer([steps])) as server:
        with pytest.raises(TimedOut) as caught:
            await (await post(server.url(), due=seconds(1))).read_all(100)
        assert caught.value.phase is phase
        assert caught.value.may_have_run
        async with asyncio.timeout(60):
            await server.ended.wait()


async def test_a_deadline_ends_the_sending_of_a_body(post: Post) -> None:
    server = ScriptedServer([[]], at_connection=[Until(asyncio.Event())])
    async with running(server):
        with pytest.raises(TimedOut) as caught:
            await post(server.url(), LARGE, due=seconds(0.3))
        assert caught.value.phase is Phase.SENDING


async def test_a_deadline_can_be_moved_both_ways(post: Post) -> None:
    async with running(ScriptedServer([[CHUNKED]])) as server:
        clock = asyncio.get_running_loop().time
        began = clock()
        response = await post(server.url(), due=seconds(1))
        response.set_deadline(seconds(1.5))
        with pytest.raises(TimedOut):
            await response.read()
        assert clock() - began > 1.4

        response = await post(server.url(), due=seconds(60))
        response.set_deadline(seconds(0.1))
        with pytest.raises(TimedOut):
            await response.read()


async def test_a_deadline_belongs_to_its_exchange(post: Post) -> None:
    """The timer of a kept connection outlives the exchange that set it."""
    hold = asyncio.Event()
    scripts: list[Sequence[Step]] = [[sized(b"hello")], [Until(hold), sized(b"again")]]
    async with running(ScriptedServer(scripts)) as server:
        response = await post(server.url(), due=seconds(1))
        await response.read_all(10)
        asking = asyncio.ensure_future(post(server.url(), due=inf))
        await asyncio.sleep(1.2)
        hold.set()
        assert await (await asking).read_all(10) == b"again"
        assert server.connections == 1
