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
    ended,
    get,
    only,
    post,
    refused,
    request,
    served,
)

_CONNECTION = "RFC 9112, 9.3"
_OPTIONS = "RFC 9110, 7.6.1"
_OLD = "RFC 9112, 9.3 and 6.1"
_PIPELINE = "RFC 9112, 9.3.2"
_EXPECT = "RFC 9110, 10.1.1"
_UPGRADE = "RFC 9110, 7.8"
_HANDSHAKE = "RFC 6455, 4.2"
_OF_CLIENTS = "RFC 6455, 4.1"
_TUNNEL = "RFC 9110, 9.3.6"
_LENGTH = f"Content-Length: {len(CHAT)}"
_WEBSOCKET = (
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version: 13",
)
_H2C = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__")
_HIDDEN = request("GET /v1/models HTTP/1.1", HOST)
_STREAMED = json.dumps({**json.loads(CHAT), "stream": True})
_TEN = "HTTP/1.0"
_UNCHUNKED = ("transfer-encoding",)
_TWO = ("200", "200")


def cases() -> Iterator[Case]:
    """Yield the cases."""
    yield from _reuse()
    yield from _old_clients()
    yield from _pipelines()
    yield from _upgrades()
    yield from _tunnels()
    yield from only(On.INFERENCE, _chats())
    yield from only(On.INFERENCE, _upgrades_of_chats())
    yield from only(On.SPEECH, _handshakes())


def _streamed(*lines: str, version: str = "HTTP/1.1") -> str:
    return post(f"Content-Length: {len(_STREAMED)}", *lines, body=_STREAMED, version=version)


def _reuse() -> Iterator[Case]:
    yield served("kept by default", _CONNECTION, get())
    yield served("keep-alive", _CONNECTION, get("Connection: keep-alive"))
    yield served("another option", _OPTIONS, get("Connection: X-One", "X-One: 1"))
    yield served("an empty Connection", _OPTIONS, get("Connection:"))
    yield ended("close", _CONNECTION, get("Connection: close"))
    yield ended("close in capitals", _CONNECTION, get("Connection: CLOSE"))
    yield ended("close beside another option", _OPTIONS, get("Connection: X-One, close"))
    both = get("Connection: keep-alive", "Connection: close")
    yield ended("close on a second line", _OPTIONS, both)
    yield served("Expect without a body", _EXPECT, get("Expect: 100-continue"))


def _old_clients() -> Iterator[Case]:
    yield ended("HTTP/1.0", _OLD, get(version=_TEN))
    hostless = request("GET /v1/models HTTP/1.0", KEY)
    yield ended("HTTP/1.0 without Host", "RFC 9112, 3.2", hostless, answers=("200|400",))
    kept = get("Connection: keep-alive", version=_TEN)
    yield Case("HTTP/1.0 keep-alive", _OLD, kept, ("200",), without=_UNCHUNKED)
    yield refused("HTTP/1.0 and chunked", "RFC 9112, 6.1", chunked(chunks(CHAT), version=_TEN))
    switching = get(*_WEBSOCKET, version=_TEN)
    yield ended("HTTP/1.0 and Upgrade", _UPGRADE, switching, without=("upgrade",))


def _pipelines() -> Iterator[Case]:
    yield served("two requests", _PIPELINE, get() + get(), answers=_TWO)
    yield served("ten requests", _PIPELINE, get() * 10, answers=("200",) * 10)
    yield ended("one behind close", _PIPELINE, get("Connection: close") + get())
    unknown = get(target="/v1/models/none") + get()
    yield served("one behind an error", _PIPELINE, unknown, answers=("404", "200"))
    apart = get() + "\r\n" + get()
    yield served("an empty line between", "RFC 9112, 2.2", apart, answers=_TWO)


def _chats() -> Iterator[Case]:
    yield served("a stream", _CONNECTION, _streamed())
    closing = _streamed("Connection: close")
    yield ended("a stream and close", "RFC 9112, 9.6", closing, headers=("connection: close",))
    yield ended("HTTP/1.0 with a body", _OLD, chat(version=_TEN))
    old = _streamed(version=_TEN)
    yield ended("a stream of HTTP/1.0", "RFC 9112, 6.1", old, without=_UNCHUNKED)
    expecting = post(_LENGTH, "Expect: 100-continue", body=CHAT, version=_TEN)
    yield ended("HTTP/1.0 and Expect", "RFC 9110, 10.1.1 and 15.2", expecting)
    yield served("two with bodies", _PIPELINE, chat() + chat(), answers=_TWO)
    yield served("chunks and a GET", _PIPELINE, chunked(chunks(CHAT)) + get(), answers=_TWO)
    whole, cake = (post(_LENGTH, f"Expect: {each}", body=CHAT) for each in ("100-CONTINUE", "cake"))
    at_once = "Expect in capitals with its body at once"
    yield Case(at_once, _EXPECT, whole, ("200|404",), interim=True)
    yield Case("another expectation", _EXPECT, cake, ("200|417",))


def _upgrades() -> Iterator[Case]:
    yield served("h2c on a GET", _UPGRADE, get(*_H2C))
    yield served("two requests, h2c on the first", _UPGRADE, get(*_H2C) + get(), answers=_TWO)
    yield served("WebSocket fields on a path without", _UPGRADE, get(*_WEBSOCKET))
    yield served("Upgrade without Connection", _UPGRADE, get("Upgrade: websocket"))
    yield served("Connection: Upgrade alone", _UPGRADE, get("Connection: Upgrade"))
    yield served("an empty Upgrade", _UPGRADE, get("Connection: Upgrade", "Upgrade:"))
    with_body = get(*_WEBSOCKET, "Content-Length: 5", end="hello")
    yield served("WebSocket fields and a body on a GET", _UPGRADE, with_body)


def _upgrades_of_chats() -> Iterator[Case]:
    yield served("h2c with a body", _UPGRADE, chat(*_H2C))
    yield served("h2c with chunks", _UPGRADE, chunked(chunks(CHAT), *_H2C))
    hidden = post(f"Content-Length: {len(_HIDDEN)}", *_H2C, body=_HIDDEN)
    yield served("h2c with a request for a body", "RFC 9112, 11.2", hidden, answers=("400",))
    for protocol in ("TLS/1.0", "HTTP/2.0", "foo", "websocket2"):
        sent = chat("Connection: Upgrade", f"Upgrade: {protocol}")
        yield served(f"Upgrade to {protocol} with a body", _UPGRADE, sent)
    yield served("WebSocket fields on a POST", _UPGRADE, post(_LENGTH, *_WEBSOCKET, body=CHAT))
    yield served("WebSocket fields and chunks", _UPGRADE, chunked(chunks(CHAT), *_WEBSOCKET))


def _handshakes() -> Iterator[Case]:
    def handshake(*lines: str, end: str = "", method: str = "GET") -> str:
        return request(f"{method} {SPEECH_STREAM} HTTP/1.1", HOST, *lines, end=end)

    def refusal(name: str, status: str, *lines: str, **more: object) -> Case:
        return refused(name, _HANDSHAKE, handshake(*lines), status, **more)

    connection, upgrade, nonce, version = _WEBSOCKET
    switched = ("upgrade: websocket", "connection: upgrade")
    whole = handshake(KEY, *_WEBSOCKET)
    yield Case("a handshake", _HANDSHAKE, whole, ("101",), headers=switched)
    spelt = ("Connection: keep-alive, UPGRADE", "Upgrade: WebSocket", nonce, version)
    yield Case("a handshake in other cases", _HANDSHAKE, handshake(KEY, *spelt), ("101",))
    for number in (99, 8, 0):
        other = (KEY, connection, upgrade, nonce, f"Sec-WebSocket-Version: {number}")
        known = ("sec-websocket-version: 13",)
        yield refusal(f"version {number}", "426", *other, headers=known)
    yield refusal("no version", "400|426", KEY, connection, upgrade, nonce)
    unnamed = (KEY, connection, upgrade, version)
    yield refusal("no nonce", "400", *unnamed)
    yield refusal("a nonce of the wrong length", "400", *unnamed, "Sec-WebSocket-Key: eA==")
    yield refusal("a nonce that is no Base64", "400", *unnamed, "Sec-WebSocket-Key: ???")
    yield refusal("two nonces", "400", KEY, connection, upgrade, nonce, nonce, version)
    yield refusal("a handshake without a key", "401", *_WEBSOCKET)
    yield refusal("a handshake with a wrong key", "401", "Authorization: Bearer sk_x", *_WEBSOCKET)
    body = handshake(KEY, *_WEBSOCKET, "Content-Length: 5", end="hello")
    yield Case("a handshake with a body", _OF_CLIENTS, body, ("4xx",))
    pieces = handshake(KEY, *_WEBSOCKET, "Transfer-Encoding: chunked", end=chunks("hello"))
    yield Case("a handshake with chunks", _OF_CLIENTS, pieces, ("4xx",))
    cookie = handshake(KEY, *_WEBSOCKET, f"Cookie: a={'b' * 9000}")
    yield Case("a handshake with a long cookie", "RFC 6585, 5", cookie, ("101|400|431",))
    posted = handshake(KEY, *_WEBSOCKET, "Content-Length: 0", method="POST")
    yield Case("a handshake by POST", _HANDSHAKE, posted, ("4xx",))
    yield Case("the stream without Upgrade", "RFC 9110, 15.5.22", handshake(KEY), ("4xx",))
    old = get(*_WEBSOCKET, target=SPEECH_STREAM, version=_TEN)
    yield Case("a WebSocket of HTTP/1.0", _UPGRADE, old, ("426|400|404",), After.CLOSED)


def _tunnels() -> Iterator[Case]:
    for target, status in (("127.0.0.1:22", "405"), ("evil.example:443", "400|405")):
        sent = request(f"CONNECT {target} HTTP/1.1", f"Host: {target}", KEY)
        yield refused(f"CONNECT {target}", _TUNNEL, sent, status)
    path = request("CONNECT /v1/models HTTP/1.1", HOST, KEY)
    yield refused("CONNECT of a path", _TUNNEL, path, "400|405")
    body = request("CONNECT 127.0.0.1:22 HTTP/1.1", HOST, KEY, "Content-Length: 5", end="hello")
    yield refused("CONNECT with a length", _TUNNEL, body, "400|405")
