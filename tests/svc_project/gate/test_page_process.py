"""Pages that another process answers: the exchange between a worker's gate and that process."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from accounts.keys.callers import RECOGNIZED, Caller, caller_of, known_callers
from core.errors import InternalError
from svc_project.gate.gate import Gate
from svc_project.gate.page_client import PageProcess
from svc_project.gate.page_server import PageServer
from svc_project.surfaces import Surface
from tests.support.until import until_async

Message = dict[str, Any]
Django = Callable[[Message, Any, Any], Awaitable[None]]
SECRET = "a text of a client"


class Client:
    """A worker's client: what it is sent, and its disconnect."""

    def __init__(self, body: bytes = b"") -> None:
        self.sent: list[Message] = []
        self.leaves = asyncio.Event()
        self._body: bytes | None = body

    async def receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self.leaves.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.sent[1:])

    async def until(self, count: int) -> None:
        await until_async(lambda: len(self.sent) >= count)


def asked(path: str = "/v1/models", method: str = "GET", **scope: Any) -> Message:
    return {
        "type": "http",
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "root_path": "",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"a=1&b=%20",
        "headers": [(b"host", b"127.0.0.1"), (b"x-twice", b"1"), (b"x-twice", b"\xff")],
        "client": ("198.51.100.7", 4711),
        "server": ("127.0.0.1", 8000),
        "surface": Surface.SPEECH,
        **scope,
    }


@asynccontextmanager
async def page_process(django: Django, directory: Path) -> AsyncIterator[Gate]:
    """A gate whose pages a server beside it answers with ``django``."""
    address = str(directory / "socket")
    pages = PageServer(django)
    server = await asyncio.start_unix_server(pages.connected, address)
    try:
        yield Gate(PageProcess(address))
    finally:
        server.close()
        await pages.close()


async def answered(django: Django, directory: Path, scope: Message | None = None) -> Client:
    """The client of one request, which the page process has answered."""
    client = Client()
    async with page_process(django, directory) as gate:
        await gate(scope or asked(), client.receive, client.send)
    return client


async def begin(receive: Any, send: Any, status: int = 200) -> None:
    await receive()
    await send({"type": "http.response.start", "status": status, "headers": []})


async def disconnected(client: Client, ended: asyncio.Event, task: asyncio.Task[None]) -> None:
    """Disconnect the client, and return when the view and the worker have ended."""
    client.leaves.set()
    async with asyncio.timeout(60):
        await ended.wait()
        await task


async def test_a_request_arrives_whole_and_its_answer_is_passed_back(tmp_path: Path) -> None:
    seen: list[Message] = []

    async def django(scope: Message, receive: Any, send: Any) -> None:
        seen.append({**scope, "body": (await receive())["body"]})
        headers = [(b"content-length", b"200000"), (b"set-cookie", b"a=1"), (b"set-cookie", b"b=2")]
        await send({"type": "http.response.start", "status": 201, "headers": headers})
        await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})
        await send({"type": "http.response.body", "body": b"y" * 100_000})

    scope = asked("/console/login", "POST", surface=Surface.INFERENCE)
    scope["headers"].append((b"content-length", b"65000"))
    client = Client(b"f" * 65_000)
    async with page_process(django, tmp_path) as gate:
        await gate(scope, client.receive, client.send)

    arrived = seen[0]
    assert arrived["body"] == b"f" * 65_000
    assert arrived["surface"] is Surface.INFERENCE
    for name, value in asked("/console/login", "POST").items():
        if name not in ("surface", "headers"):
            assert arrived[name] == value, name
    assert [tuple(pair) for pair in arrived["headers"]] == scope["headers"]
    assert client.status == 201
    assert [tuple(pair) for pair in client.sent[0]["headers"]] == [
        (b"content-length", b"200000"),
        (b"set-cookie", b"a=1"),
        (b"set-cookie", b"b=2"),
    ]
    assert client.body == b"x" * 100_000 + b"y" * 100_000


async def test_a_stream_is_passed_on_as_it_comes_and_ends_with_its_client(tmp_path: Path) -> None:
    ended = asyncio.Event()

    async def django(_scope: Message, receive: Any, send: Any) -> None:
        await begin(receive, send)
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        assert (await receive())["type"] == "http.disconnect"
        ended.set()

    client = Client()
    async with page_process(django, tmp_path) as gate:
        task = asyncio.create_task(gate(asked(), client.receive, client.send))
        await client.until(2)
        await disconnected(client, ended, task)

    assert client.sent[1] == {"type": "http.response.body", "body": b"first", "more_body": True}


async def test_a_view_that_sends_learns_that_its_client_has_disconnected(tmp_path: Path) -> None:
    ended = asyncio.Event()

    async def django(_scope: Message, receive: Any, send: Any) -> None:
        await begin(receive, send)
        leaving = asyncio.create_task(receive())
        while not leaving.done():
            await send({"type": "http.response.body", "body": b"z" * 65_536, "more_body": True})
        ended.set()

    class Stuck(Client):
        async def send(self, message: Message) -> None:
            await super().send(message)
            if len(self.sent) > 3:
                await self.leaves.wait()

    client = Stuck()
    async with page_process(django, tmp_path) as gate:
        task = asyncio.create_task(gate(asked(), client.receive, client.send))
        await client.until(4)
        await disconnected(client, ended, task)


async def test_a_client_that_reads_slowly_holds_the_view_back(tmp_path: Path) -> None:
    block, blocks = b"z" * 65_536, 200
    written = 0

    async def django(_scope: Message, receive: Any, send: Any) -> None:
        nonlocal written
        await begin(receive, send)
        for _ in range(blocks):
            await send({"type": "http.response.body", "body": block, "more_body": True})
            written += 1
        await send({"type": "http.response.body", "body": b""})

    reads = asyncio.Event()

    class Slow(Client):
        async def send(self, message: Message) -> None:
            await reads.wait()
            await super().send(message)

    client = Slow()
    async with page_process(django, tmp_path) as gate:
        task = asyncio.create_task(gate(asked(), client.receive, client.send))
        before = -1
        while before != written or not written:
            before = written
            await asyncio.sleep(0.1)
        held_at = written
        reads.set()
        await task

    assert held_at < blocks / 4
    assert len(client.body) == blocks * len(block)


async def test_a_stream_that_fails_in_the_middle_is_not_ended_as_if_complete(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def django(_scope: Message, receive: Any, send: Any) -> None:
        await begin(receive, send)
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        raise RuntimeError(SECRET)

    client = Client()
    async with page_process(django, tmp_path) as gate:
        with pytest.raises(InternalError):
            await gate(asked(), client.receive, client.send)

    assert client.body == b"first"
    assert client.sent[-1]["more_body"]
    assert "unexpected RuntimeError" in caplog.text
    assert SECRET not in caplog.text


async def test_a_process_that_ends_before_its_answer_leads_to_500(tmp_path: Path) -> None:
    async def django(_scope: Message, _receive: Any, _send: Any) -> None:
        return

    client = await answered(django, tmp_path)

    assert client.status == 500
    assert b"error" in client.body


async def test_while_there_is_no_process_pages_are_refused_with_503(tmp_path: Path) -> None:
    client = Client()
    gate = Gate(PageProcess(str(tmp_path / "nothing")))

    await gate(asked(), client.receive, client.send)

    assert client.status == 503
    assert dict(client.sent[0]["headers"])[b"retry-after"] == b"2"


async def test_a_caller_whom_a_view_recognized_is_known_to_the_worker(tmp_path: Path) -> None:
    digest, name = uuid.uuid4().bytes, f"organization:{uuid.uuid4()}"

    async def django(scope: Message, receive: Any, send: Any) -> None:
        await receive()
        scope[RECOGNIZED] = digest, name
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    client = await answered(django, tmp_path)

    assert client.status == 204
    assert known_callers.name_of(digest) == name


def test_a_remembered_key_and_session_are_known_and_others_are_strangers() -> None:
    key, session = f"Bearer {uuid.uuid4()}".encode(), uuid.uuid4().hex
    known_callers.remember(sha256(key).digest(), "organization:1")
    known_callers.remember(sha256(session.encode()).digest(), "user:2")
    cookie = f"other=1; sessionid={session}".encode()

    def caller(*headers: tuple[bytes, bytes]) -> Caller:
        return caller_of(asked(headers=list(headers)))

    assert caller((b"authorization", key)) == Caller("organization:1", is_known=True)
    assert caller((b"cookie", cookie)) == Caller("user:2", is_known=True)
    # A header decides alone, as it does in the views.
    assert not caller((b"cookie", cookie), (b"authorization", b"Bearer wrong")).is_known
    assert not caller((b"cookie", b"sessionid=")).is_known
    assert not caller().is_known
