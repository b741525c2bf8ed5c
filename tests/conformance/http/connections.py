"""Connections: reuse, HTTP/1.0, pipelines, Expect, Upgrade and CONNECT."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.conformance.http.case import (
    CHAT,
    HOST,
    KEY,
    SPEECH_STREAM,
    After,
    Case,
    On,
    chat,
    chunked,
    chunks,
    get,
    post,
    refused,
    request,
    served,
)

_CONNECTION = "RFC 9112, 9.3"
_OLD = "RFC 9112, 9.3 and 6.1"
_PIPELINE = "RFC 9112, 9.3.2"
_EXPECT = "RFC 9110, 10.1.1"
_UPGRADE = "RFC 9110, 7.8"
_HANDSHAKE = "RFC 6455, 4.2"
_WEBSOCKET = (
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version: 13",
)
_H2C = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__")
_HIDDEN = request("GET /v1/models HTTP/1.1", HOST)
_STREAMED = json.dumps({**json.loads(CHAT), "stream": True})


def cases() -> Iterator[Case]:
    """Yield the cases."""
    yield from _reuse()
    yield from _old_clients()
    yield from _pipelines()
    yield from _expectations()
    yield from _upgrades()
    yield from _handshakes()
    yield from _tunnels()


def _streamed(*lines: str, version: str = "HTTP/1.1") -> str:
    return post(f"Content-Length: {len(_STREAMED)}", *lines, body=_STREAMED, version=version)


def _reuse() -> Iterator[Case]:
    yield served("kept by default", _CONNECTION, get())
    yield served("keep-alive", _CONNECTION, get("Connection: keep-alive"))
    yield served("another option", "RFC 9110, 7.6.1", get("Connection: X-One", "X-One: 1"))
    yield served("an empty Connection", "RFC 9110, 7.6.1", get("Connection:"))
    yield Case("close", _CONNECTION, get("Connection: close"), ("200",), After.CLOSED)
    yield Case("close in capitals", _CONNECTION, get("Connection: CLOSE"), ("200",), After.CLOSED)
    yield Case(
        "close beside another option",
        "RFC 9110, 7.6.1",
        get("Connection: X-One, close"),
        ("200",),
        After.CLOSED,
    )
    yield Case(
        "close on a second line",
        "RFC 9110, 7.6.1",
        get("Connection: keep-alive", "Connection: close"),
        ("200",),
        After.CLOSED,
    )
    yield served("a stream", _CONNECTION, _streamed(), on=On.INFERENCE)
    yield Case(
        "a stream and close",
        "RFC 9112, 9.6",
        _streamed("Connection: close"),
        ("200",),
        After.CLOSED,
        On.INFERENCE,
        headers=("connection: close",),
    )


def _old_clients() -> Iterator[Case]:
    old = "HTTP/1.0"
    yield Case("HTTP/1.0", _OLD, get(version=old), ("200",), After.CLOSED)
    yield Case(
        "HTTP/1.0 without Host",
        "RFC 9112, 3.2",
        request("GET /v1/models HTTP/1.0", KEY),
        ("200|400",),
        After.CLOSED,
    )
    yield Case(
        "HTTP/1.0 keep-alive",
        _OLD,
        get("Connection: keep-alive", version=old),
        ("200",),
        without=("transfer-encoding",),
    )
    yield Case(
        "HTTP/1.0 with a body", _OLD, chat(version=old), ("200",), After.CLOSED, On.INFERENCE
    )
    yield refused("HTTP/1.0 and chunked", "RFC 9112, 6.1", chunked(chunks(CHAT), version=old))
    yield Case(
        "a stream of HTTP/1.0",
        "RFC 9112, 6.1",
        _streamed(version=old),
        ("200",),
        After.CLOSED,
        On.INFERENCE,
        without=("transfer-encoding",),
    )
    yield Case(
        "HTTP/1.0 and Expect",
        "RFC 9110, 10.1.1 and 15.2",
        post(f"Content-Length: {len(CHAT)}", "Expect: 100-continue", body=CHAT, version=old),
        ("200",),
        After.CLOSED,
        On.INFERENCE,
    )
    yield Case(
        "HTTP/1.0 and Upgrade",
        _UPGRADE,
        get(*_WEBSOCKET, version=old),
        ("200",),
        After.CLOSED,
        without=("upgrade",),
    )
    yield Case(
        "a WebSocket of HTTP/1.0",
        _UPGRADE,
        get(*_WEBSOCKET, target=SPEECH_STREAM, version=old),
        ("426|400|404",),
        After.CLOSED,
        On.SPEECH,
    )


def _pipelines() -> Iterator[Case]:
    yield served("two requests", _PIPELINE, get() + get(), answers=("200", "200"))
    yield served("ten requests", _PIPELINE, get() * 10, answers=("200",) * 10)
    yield served(
        "two with bodies", _PIPELINE, chat() + chat(), answers=("200",) * 2, on=On.INFERENCE
    )
    yield served(
        "chunks and a GET",
        _PIPELINE,
        chunked(chunks(CHAT)) + get(),
        answers=("200",) * 2,
        on=On.INFERENCE,
    )
    yield Case(
        "one behind close", _PIPELINE, get("Connection: close") + get(), ("200",), After.CLOSED
    )
    yield served(
        "one behind an error",
        _PIPELINE,
        get(target="/v1/models/none") + get(),
        answers=("404", "200"),
    )
    yield served(
        "an empty line between", "RFC 9112, 2.2", get() + "\r\n" + get(), answers=("200", "200")
    )


def _expectations() -> Iterator[Case]:
    yield Case(
        "Expect in capitals with its body at once",
        _EXPECT,
        post(f"Content-Length: {len(CHAT)}", "Expect: 100-CONTINUE", body=CHAT),
        ("200|404",),
        interim=True,
        on=On.INFERENCE,
    )
    yield Case(
        "another expectation",
        "RFC 9110, 10.1.1",
        post(f"Content-Length: {len(CHAT)}", "Expect: cake", body=CHAT),
        ("200|417",),
        on=On.INFERENCE,
    )
    yield served("Expect without a body", _EXPECT, get("Expect: 100-continue"))


def _upgrades() -> Iterator[Case]:
    body = f"Content-Length: {len(CHAT)}"
    yield served("h2c on a GET", _UPGRADE, get(*_H2C))
    yield served("h2c with a body", _UPGRADE, chat(*_H2C), on=On.INFERENCE)
    yield served("h2c with chunks", _UPGRADE, chunked(chunks(CHAT), *_H2C), on=On.INFERENCE)
    yield served(
        "h2c with a request for a body",
        "RFC 9112, 11.2",
        post(f"Content-Length: {len(_HIDDEN)}", *_H2C, body=_HIDDEN),
        answers=("400",),
        on=On.INFERENCE,
    )
    for protocol in ("TLS/1.0", "HTTP/2.0", "foo", "websocket2"):
        yield served(
            f"Upgrade to {protocol} with a body",
            _UPGRADE,
            chat("Connection: Upgrade", f"Upgrade: {protocol}"),
            on=On.INFERENCE,
        )
    yield served(
        "two requests, h2c on the first", _UPGRADE, get(*_H2C) + get(), answers=("200",) * 2
    )
    yield served(
        "WebSocket fields on a POST", _UPGRADE, post(body, *_WEBSOCKET, body=CHAT), on=On.INFERENCE
    )
    yield served("WebSocket fields on a path without", _UPGRADE, get(*_WEBSOCKET))
    yield served("Upgrade without Connection", _UPGRADE, get("Upgrade: websocket"))
    yield served("Connection: Upgrade alone", _UPGRADE, get("Connection: Upgrade"))
    yield served("an empty Upgrade", _UPGRADE, get("Connection: Upgrade", "Upgrade:"))
    yield served(
        "WebSocket fields and chunks",
        _UPGRADE,
        chunked(chunks(CHAT), *_WEBSOCKET),
        on=On.INFERENCE,
    )
    yield served(
        "WebSocket fields and a body on a GET",
        _UPGRADE,
        get(*_WEBSOCKET, "Content-Length: 5", end="hello"),
    )


def _handshakes() -> Iterator[Case]:
    def handshake(*lines: str, end: str = "", method: str = "GET") -> str:
        return request(f"{method} {SPEECH_STREAM} HTTP/1.1", HOST, *lines, end=end)

    def refusal(name: str, status: str, *lines: str, **more: object) -> Case:
        return refused(name, _HANDSHAKE, handshake(*lines), status, on=On.SPEECH, **more)

    connection, upgrade, nonce, version = _WEBSOCKET
    yield Case(
        "a handshake",
        _HANDSHAKE,
        handshake(KEY, *_WEBSOCKET),
        ("101",),
        on=On.SPEECH,
        headers=("upgrade: websocket", "connection: upgrade"),
    )
    yield Case(
        "a handshake in other cases",
        _HANDSHAKE,
        handshake(KEY, "Connection: keep-alive, UPGRADE", "Upgrade: WebSocket", nonce, version),
        ("101",),
        on=On.SPEECH,
    )
    for number in (99, 8, 0):
        yield refusal(
            f"version {number}",
            "426",
            *(KEY, connection, upgrade, nonce, f"Sec-WebSocket-Version: {number}"),
            headers=("sec-websocket-version: 13",),
        )
    yield refusal("no version", "400|426", KEY, connection, upgrade, nonce)
    yield refusal("no nonce", "400", KEY, connection, upgrade, version)
    yield refusal(
        "a nonce of the wrong length",
        "400",
        KEY,
        connection,
        upgrade,
        version,
        "Sec-WebSocket-Key: eA==",
    )
    yield refusal(
        "a nonce that is no Base64",
        "400",
        KEY,
        connection,
        upgrade,
        version,
        "Sec-WebSocket-Key: ???",
    )
    yield refusal("two nonces", "400", KEY, connection, upgrade, nonce, nonce, version)
    yield refusal("a handshake without a key", "401", *_WEBSOCKET)
    yield refusal("a handshake with a wrong key", "401", "Authorization: Bearer sk_x", *_WEBSOCKET)
    yield Case(
        "a handshake with a body",
        "RFC 6455, 4.1",
        handshake(KEY, *_WEBSOCKET, "Content-Length: 5", end="hello"),
        ("4xx",),
        on=On.SPEECH,
    )
    yield Case(
        "a handshake with chunks",
        "RFC 6455, 4.1",
        handshake(KEY, *_WEBSOCKET, "Transfer-Encoding: chunked", end=chunks("hello")),
        ("4xx",),
        on=On.SPEECH,
    )
    yield Case(
        "a handshake with a long cookie",
        "RFC 6585, 5",
        handshake(KEY, *_WEBSOCKET, f"Cookie: a={'b' * 9000}"),
        ("101|400|431",),
        on=On.SPEECH,
    )
    yield Case(
        "a handshake by POST",
        _HANDSHAKE,
        handshake(KEY, *_WEBSOCKET, "Content-Length: 0", method="POST"),
        ("4xx",),
        on=On.SPEECH,
    )
    yield Case(
        "the stream without Upgrade", "RFC 9110, 15.5.22", handshake(KEY), ("4xx",), on=On.SPEECH
    )


def _tunnels() -> Iterator[Case]:
    for target, status in (("127.0.0.1:22", "405"), ("evil.example:443", "400|405")):
        yield refused(
            f"CONNECT {target}",
            "RFC 9110, 9.3.6",
            request(f"CONNECT {target} HTTP/1.1", f"Host: {target}", KEY),
            status,
        )
    yield refused(
        "CONNECT of a path",
        "RFC 9110, 9.3.6",
        request("CONNECT /v1/models HTTP/1.1", HOST, KEY),
        "400|405",
    )
    yield refused(
        "CONNECT with a length",
        "RFC 9110, 9.3.6",
        request("CONNECT 127.0.0.1:22 HTTP/1.1", HOST, KEY, "Content-Length: 5", end="hello"),
        "400|405",
    )
