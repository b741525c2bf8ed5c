"""Requests that ask for an ``Upgrade``: one request, one answer, and the next request is the next.

The table feeds the server's protocol read by read, so that it decides where a read ends. The same on
sockets: test_handshakes.py, and through proxies tests/resilience.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import pytest
import uvicorn
from pytest_django.fixtures import Settings
from uvicorn.server import ServerState

from svc_project.serving.http_protocol import PipelinedProtocol
from svc_project.serving.websocket_protocol import BoundedWebSocket
from tests.support.until import until_async

KEY = "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n"
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n"
"""The bytes of each body, which the server must never take for a request."""
NEXT = b"GET /next HTTP/1.1\r\nhost: a\r\n\r\n"
PING, PONG = b"\x89\x80" + bytes(4), b"\x8a\0"
"""An empty ping of a client, masked with zeros, and its answer (RFC 6455, section 5.2)."""
KINDS = {
    "h2c": "connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n",
    "tls": "connection: upgrade\r\nupgrade: TLS/1.0\r\n",
    "websocket": f"connection: upgrade\r\nupgrade: websocket\r\n{KEY}",
    "mixed case": f"connection: keep-alive, UPGRADE\r\nupgrade: WebSocket\r\n{KEY}",
    "a list": f"connection: upgrade\r\nupgrade: websocket, h2c\r\n{KEY}",
    "two fields": f"connection: upgrade\r\nupgrade: websocket\r\nupgrade: h2c\r\n{KEY}",
    "a version": f"connection: upgrade\r\nupgrade: websocket/13\r\n{KEY}",
    "not in Connection": f"connection: keep-alive\r\nupgrade: websocket\r\n{KEY}",
    "by a proxy's header": "proxy-connection: upgrade\r\nupgrade: h2c\r\n",
}
BODIES = {
    "none": ("", b""),
    "length": (f"content-length: {len(SMUGGLED)}\r\n", SMUGGLED),
    "chunked": (
        "transfer-encoding: chunked\r\n",
        b"%x\r\n%b\r\n0\r\n\r\n" % (len(SMUGGLED), SMUGGLED),
    ),
}
METHODS = ("GET", "POST", "OPTIONS", "CONNECT")
WRITES = ("one read", "head and body", "byte by byte")
BEFORE = ("first", "behind a running request", "on a kept connection")


@dataclass(frozen=True)
class Case:
    """One request, how it arrives, and what came before it on its connection."""

    method: str
    kind: str
    body: str
    reads: str
    before: str
    path: str = "/plain"
    version: str = "1.1"

    def __str__(self) -> str:
        return ", ".join([self.method, self.path, self.kind, self.body, self.reads, self.before])

    @property
    def head(self) -> bytes:
        framing = BODIES[self.body][0]
        line = f"{self.method} {self.path} HTTP/{self.version}\r\nhost: a\r\n"
        return f"{line}{KINDS[self.kind]}{framing}\r\n".encode()

    def arrivals(self) -> Iterator[bytes]:
        """The request and the next one, in the bytes of each read."""
        body = BODIES[self.body][1]
        whole = self.head + body + NEXT
        if self.reads == "one read":
            yield whole
        elif self.reads == "head and body":
            yield self.head
            yield whole[len(self.head) :]
        else:
            for at in range(len(whole)):
                yield whole[at : at + 1]


OPENING = Case("GET", "websocket", "none", "", "first", "/socket").head


class Answering:
    """An application that answers with method, path and length of the body, once it goes on."""

    def __init__(self) -> None:
        self.goes_on = asyncio.Event()
        self.goes_on.set()

    def has_socket(self, scope: Mapping[str, Any]) -> bool:
        return bool(scope["path"] == "/socket")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await receive()
            await self.goes_on.wait()
            await send({"type": "websocket.accept"})
            message = await receive()
            if "text" in message:
                await send({"type": "websocket.send", "text": "<" + message["text"] + ">"})
            return
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            size += len(message.get("body", b""))
            more = message.get("more_body", False)
        await self.goes_on.wait()
        body = f"<{scope['method']} {scope['path']} {size}>".encode()
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


class Wire:
    """A transport whose bytes are kept; closing it ends the connection."""

    def __init__(self) -> None:
        self.written = b""
        self.protocol: Any = None
        self.reads = [True]
        self._closing = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def get_protocol(self) -> Any:
        return self.protocol

    def write(self, content: bytes) -> None:
        if not self._closing:
            self.written += content

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.close()

    def abort(self) -> None:
        self.close()

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        self.reads.append(False)

    def resume_reading(self) -> None:
        self.reads.append(True)

    def answers(self) -> list[str]:
        """Each answer: the application's words, or the status."""
        found = re.findall(rb"HTTP/1\.1 (\d+)[^\0]*?\r\n\r\n(<[^>]*>)?", self.written)
        return [(words or status).decode() for status, words in found]


@cache
def loaded_config() -> uvicorn.Config:
    config = uvicorn.Config(
        Answering(),
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        ws=BoundedWebSocket,
        ws_ping_interval=None,
    )
    config.load()
    return config


def connected(app: Any) -> Wire:
    """The protocol of the server on a wire."""
    config = loaded_config()
    config.loaded_app = app
    wire = Wire()
    wire.protocol = PipelinedProtocol(config=config, server_state=ServerState(), app_state={})
    wire.protocol.connection_made(cast("asyncio.Transport", wire))
    return wire


async def turns(count: int = 10) -> None:
    """Let everything that is ready run."""
    for _ in range(count):
        await asyncio.sleep(0)


async def answers_to(case: Case) -> tuple[list[str], Wire]:
    """Feed the case; what was answered, and the wire."""
    app = Answering()
    wire = connected(app)
    if case.before != "first":
        app.goes_on.clear()
        wire.protocol.data_received(b"GET /before HTTP/1.1\r\nhost: a\r\n\r\n")
        await turns()
        if case.before == "on a kept connection":
            app.goes_on.set()
            await turns()
    for read in case.arrivals():
        if wire.is_closing():
            break
        wire.protocol.data_received(read)
        if case.before != "behind a running request":
            await turns(1 if len(read) == 1 else 10)
    app.goes_on.set()
    await turns()
    found = wire.answers()
    wire.close()
    await turns()
    return found, wire


def ignored(case: Case) -> list[list[str]]:
    """The right answers to ``case``, whose Upgrade is ignored."""
    before = [] if case.before == "first" else ["<GET /before 0>"]
    size = 0 if case.body == "none" else len(SMUGGLED)
    if case.method != "CONNECT":
        return [[*before, f"<{case.method} {case.path} {size}>", "<GET /next 0>"]]
    return [[*before, "405"]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", METHODS)
async def test_an_upgrade_without_a_websocket_is_ignored(method: str, kind: str) -> None:
    """27 cases each: three kinds of body, of reads, and of what came before."""
    wrong = {}
    for rest in itertools.product(BODIES, WRITES, BEFORE):
        case = Case(method, kind, *rest)
        found, _ = await answers_to(case)
        if found not in ignored(case):
            wrong[str(case)] = found
    assert wrong == {}


@pytest.mark.parametrize(
    ("kind", "method", "body", "before", "version"),
    [
        ("websocket", "POST", "none", "first", "1.1"),
        ("websocket", "POST", "length", "first", "1.1"),
        ("websocket", "GET", "length", "first", "1.1"),
        ("websocket", "GET", "chunked", "on a kept connection", "1.1"),
        ("websocket", "GET", "none", "behind a running request", "1.1"),
        ("a list", "GET", "none", "first", "1.1"),
        ("two fields", "GET", "none", "first", "1.1"),
        ("a version", "GET", "none", "first", "1.1"),
        ("not in Connection", "GET", "none", "first", "1.1"),
        ("h2c", "GET", "none", "first", "1.1"),
    ],
)
@pytest.mark.parametrize("reads", WRITES)
async def test_what_opens_no_websocket_keeps_its_framing_where_one_is(
    kind: str, method: str, body: str, before: str, version: str, reads: str
) -> None:
    case = Case(method, kind, body, reads, before, "/socket", version)
    found, _ = await answers_to(case)
    assert found in ignored(case)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reads", WRITES)
async def test_http_1_0_upgrades_to_nothing(kind: str, reads: str) -> None:
    """RFC 9110, section 7.8. The connection ends with the answer."""
    found, wire = await answers_to(Case("GET", kind, "none", reads, "first", "/socket", "1.0"))
    assert found == ["<GET /socket 0>"]
    assert wire.is_closing()


def message(text: str) -> bytes:
    """A masked text frame (RFC 6455, section 5.2), the mask zero."""
    return bytes([0x81, 0x80 | len(text)]) + bytes(4) + text.encode()


@pytest.mark.parametrize("kind", ["websocket", "mixed case"])
@pytest.mark.parametrize("before", ["first", "on a kept connection"])
@pytest.mark.parametrize("early", [b"", message("early")], ids=["waits for the 101", "does not"])
async def test_a_websocket_is_opened_and_loses_no_frame(
    kind: str, before: str, early: bytes
) -> None:
    """Frames that arrive before the 101 are read behind it; HTTP is read no more."""
    app = Answering()
    wire = connected(app)
    if before != "first":
        wire.protocol.data_received(b"GET /before HTTP/1.1\r\nhost: a\r\n\r\n")
        await turns()
        wire.written = b""
    app.goes_on.clear()
    wire.protocol.data_received(Case("GET", kind, "none", "", before, "/socket").head + early)
    await turns()
    assert wire.written == b""

    app.goes_on.set()
    await turns()
    assert wire.answers() == ["101"]
    if not early:
        wire.protocol.data_received(message("early"))
        await turns()
    assert wire.written.partition(b"\r\n\r\n")[2].startswith(b"\x81\x07<early>")
    wire.protocol.data_received(NEXT)
    await turns()
    assert wire.written.count(b"HTTP/1.1") == 1
    wire.close()
    await turns()


async def test_frames_behind_a_long_head_reach_the_websocket() -> None:
    """One read of more than is parsed at once."""
    app = Answering()
    wire = connected(app)
    long = OPENING.replace(b"host: a", b"host: a\r\ncookie: " + b"c" * 9000)
    wire.protocol.data_received(long + message("a" * 100) + message("b" * 100) * 50)
    await turns()
    assert wire.written.partition(b"\r\n\r\n")[2].startswith(b"\x81\x66<" + b"a" * 100)
    wire.close()
    await turns()


async def test_no_frame_is_answered_before_the_handshake() -> None:
    """The application looks a key up between taking the handshake and answering it."""
    app = Answering()
    app.goes_on.clear()
    wire = connected(app)
    wire.protocol.data_received(OPENING + PING)
    wire.protocol.data_received(PING + b"\x81\x81\0\0\0\0\xff")
    await turns()
    assert wire.written == b""

    app.goes_on.set()
    await turns()
    assert wire.written.startswith(b"HTTP/1.1 101 ")
    wire.close()
    await turns()


async def test_a_large_read_is_parsed_in_turns_with_other_tasks() -> None:
    """As much as one read of the socket may hold, all pings: each is answered by a frame."""
    wire, pings = connected(Answering()), 1000
    wire.protocol.data_received(OPENING)
    await turns()
    wire.written = b""

    wire.protocol.data_received(PING * pings)

    assert len(wire.written) < pings * len(PONG) / 2
    assert wire.reads.pop() is False
    count = 0
    while len(wire.written) < pings * len(PONG):
        before = len(wire.written)
        await turns(1)
        assert 0 < len(wire.written) - before < pings * len(PONG) / 2
        count += 1
    assert count > 1
    assert wire.written == PONG * pings
    assert wire.reads.pop() is True
    wire.close()
    await turns()


async def test_a_handshake_that_is_never_answered_ends(settings: Settings) -> None:
    settings.SVC_HEAD_SECONDS = 0.05
    app = Answering()
    app.goes_on.clear()
    wire = connected(app)
    wire.protocol.data_received(OPENING)
    await until_async(wire.is_closing)
    assert wire.answers() == ["503"]
    app.goes_on.set()
    await turns()
    assert wire.answers() == ["503"]
