"""Answers through the gate: whole ones after the view, and streams that hold no thread."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from svc_project.gate import caller_threads
from svc_project.gate.gate import Gate
from svc_project.surfaces import Surface
from tests.support.until import until_async

Message = dict[str, Any]
Django = Callable[[Message, Any, Any], Awaitable[None]]
STREAM: list[tuple[bytes, bytes]] = [(b"content-type", b"text/csv")]


@pytest.fixture
def one_thread(monkeypatch: pytest.MonkeyPatch) -> caller_threads.CallerThreads:
    """Strangers have one thread, and memory for an answer of 1000 bytes."""
    crowd = caller_threads.CallerThreads(1, form_bytes=4000, answer_bytes=1000)
    monkeypatch.setattr(caller_threads, "strangers", crowd)
    return crowd


class Exchange:
    """One request through a gate to ``django``; ``sent`` are the messages to the client so far."""

    def __init__(self, django: Django, path: str = "/v1/usage") -> None:
        self.sent: list[Message] = []
        self.leaves = asyncio.Event()
        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "headers": [],
            "surface": Surface.INFERENCE,
        }
        self.task = asyncio.ensure_future(Gate(django)(scope, self._receive, self._send))

    async def _receive(self) -> Message:
        await self.leaves.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        self.sent.append(message)

    async def until(self, count: int) -> None:
        await until_async(lambda: len(self.sent) >= count)


async def test_a_stream_is_passed_on_as_it_comes_and_holds_no_thread(
    one_thread: caller_threads.CallerThreads,
) -> None:
    more = asyncio.Event()

    async def django(scope: Message, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": STREAM})
        await send({"type": "http.response.body", "body": b"one", "more_body": True})
        await more.wait()
        await send({"type": "http.response.body", "body": b"two", "more_body": True})
        await send({"type": "http.response.body"})

    streams = [Exchange(django) for _ in range(3)]
    for each in streams:
        await each.until(2)
    assert one_thread.places.inflight == 0
    more.set()
    for each in streams:
        await asyncio.wait_for(each.task, 60)
        assert b"".join(part.get("body", b"") for part in each.sent) == b"onetwo"


async def test_a_stream_is_told_that_its_client_disconnected(
    one_thread: caller_threads.CallerThreads,
) -> None:
    learned = []

    async def django(scope: Message, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": STREAM})
        await send({"type": "http.response.body", "body": b"one", "more_body": True})
        learned.append((await receive())["type"])

    exchange = Exchange(django)
    await exchange.until(2)
    exchange.leaves.set()
    await asyncio.wait_for(exchange.task, 60)
    assert learned == ["http.disconnect"]


def whole(body: bytes) -> Django:
    async def django(scope: Message, receive: Any, send: Any) -> None:
        await receive()
        headers = [(b"Content-Length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        half = len(body) // 2
        await send({"type": "http.response.body", "body": body[:half], "more_body": True})
        await send({"type": "http.response.body", "body": body[half:], "more_body": False})

    return django


async def test_a_whole_answer_is_sent_when_the_view_is_over(
    one_thread: caller_threads.CallerThreads,
) -> None:
    exchange = Exchange(whole(b"x" * 900))
    # A caller's only answer may exceed its share, a quarter.
    exchange_of_another = Exchange(whole(b"y" * 10))
    await asyncio.wait_for(asyncio.gather(exchange.task, exchange_of_another.task), 60)
    assert [each["type"] for each in exchange.sent] == [
        "http.response.start",
        "http.response.body",
        "http.response.body",
    ]
    assert not exchange.sent[-1].get("more_body")
    assert one_thread.answers.held == 0


async def test_a_large_part_is_handed_to_the_server_in_small_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server would take all of it at once, and nothing would bound what is unread there."""
    roomy = caller_threads.CallerThreads(1, form_bytes=4000, answer_bytes=1_000_000)
    monkeypatch.setattr(caller_threads, "strangers", roomy)
    exchange = Exchange(whole(b"x" * 500_000))
    await asyncio.wait_for(exchange.task, 60)
    bodies = [each.get("body", b"") for each in exchange.sent]
    assert max(map(len, bodies)) <= 65_536
    assert b"".join(bodies) == b"x" * 500_000


@pytest.mark.parametrize("size", [900, 1600], ids=["fits", "too-large"])
async def test_only_an_answer_that_is_sent_holds_memory(
    one_thread: caller_threads.CallerThreads, size: int
) -> None:
    """A refusal may wait for a client that has not read what it asked for before."""
    reads = asyncio.Event()

    class Unread(Exchange):
        async def _send(self, message: Message) -> None:
            await super()._send(message)
            await reads.wait()

    exchange = Unread(whole(b"x" * size))
    await exchange.until(1)
    held = one_thread.answers.held
    reads.set()
    await asyncio.wait_for(exchange.task, 60)
    assert held == (900 if size == 900 else 0)


async def test_an_answer_too_large_to_hold_is_refused(
    one_thread: caller_threads.CallerThreads,
) -> None:
    exchange = Exchange(whole(b"x" * 3000))
    await asyncio.wait_for(exchange.task, 60)
    assert exchange.sent[0]["status"] == 503
    assert (b"retry-after", b"2") in exchange.sent[0]["headers"]
    assert b"server_overloaded" in exchange.sent[1]["body"]
    assert (one_thread.answers.held, one_thread.places.inflight) == (0, 0)


async def test_a_failed_view_releases_its_thread(one_thread: caller_threads.CallerThreads) -> None:
    async def django(scope: Message, receive: Any, send: Any) -> None:
        raise LookupError("broken")

    with pytest.raises(LookupError):
        await Exchange(django).task
    exchange = Exchange(whole(b"fine"))
    await asyncio.wait_for(exchange.task, 60)
    assert exchange.sent[0]["status"] == 200
