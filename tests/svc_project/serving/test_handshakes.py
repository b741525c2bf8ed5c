"""Upgrades, WebSocket handshakes that cannot be accepted, and HTTP/1.0, on sockets."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from accounts.models import Scope
from tests.support.clients.raw_client import Disconnect, RawClient
from tests.support.gateways import IMPATIENT
from tests.support.live import Gateway

STREAM = "/v1/audio/speech/stream"
LIVE = "/console/requests/live"
HANDSHAKE = {
    "host": "127.0.0.1",
    "connection": "Upgrade",
    "upgrade": "websocket",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    "sec-websocket-version": "13",
}
H2C = "connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n"


def handshake(path: str = STREAM, method: str = "GET", **changes: str | None) -> bytes:
    """The head of a handshake; ``changes`` by name with underscores, None leaves a header out."""
    changed = {name.replace("_", "-"): value for name, value in changes.items()}
    headers: dict[str, str | None] = {**HANDSHAKE, **changed}
    lines = [f"{name}: {value}" for name, value in headers.items() if value is not None]
    return "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode()


def chat_body(text: str, **fields: object) -> str:
    messages = [{"role": "user", "content": text}]
    return json.dumps({"model": "acme/demo-8b", "messages": messages, **fields})


def the_answer(received: bytes) -> tuple[int, dict[str, str], str]:
    """Status, headers and message of the one answer, which closes the connection."""
    assert received.count(b"HTTP/1.1 ") == 1, received
    head, _, body = received.decode().partition("\r\n\r\n")
    line, *lines = head.split("\r\n")
    headers = dict(each.lower().split(": ", 1) for each in lines)
    assert len(headers) == len(lines), lines
    assert headers["x-request-id"].startswith("req_")
    assert headers["content-type"] == "application/json"
    assert "date" in headers
    assert "close" in headers["connection"]
    error = json.loads(body)["error"]
    assert error["type"] == "invalid_request_error"
    return int(line.split()[1]), headers, error["message"]


@pytest.mark.parametrize(
    ("changes", "status", "named"),
    [
        ({"sec_websocket_key": None}, 400, "Sec-WebSocket-Key of the WebSocket handshake is miss"),
        (
            {"sec_websocket_key": "short"},
            400,
            "Sec-WebSocket-Key of the WebSocket handshake is not",
        ),
        ({"sec_websocket_version": "99"}, 426, "version 13"),
        ({"sec_websocket_version": None}, 426, "version 13"),
        ({"sec_websocket_protocol": "a b"}, 400, "WebSocket handshake"),
        ({"sec_websocket_extensions": "@"}, 400, "WebSocket handshake"),
        ({"content_length": "5"}, 426, "without a body"),
        ({"transfer_encoding": "chunked"}, 426, "without a body"),
        ({"upgrade": "h2c"}, 426, "WebSocket client"),
        ({"upgrade": None}, 426, "WebSocket client"),
        ({"method": "POST"}, 405, "GET"),
        ({"method": "POST", "content_length": "5"}, 405, "GET"),
    ],
    ids=str,
)
@pytest.mark.parametrize("path", [STREAM, LIVE])
def test_a_handshake_that_cannot_be_accepted_is_answered(
    gateway: Gateway, path: str, changes: dict[str, str], status: int, named: str
) -> None:
    port = gateway.speech_port if path == STREAM else gateway.port
    with RawClient(gateway, port) as client:
        client.send(handshake(path, **changes))
        if status == 405:  # a message like any other, so that the connection stays
            found, headers, body = client.answer()
            message = json.loads(body)["error"]["message"]
            assert headers["allow"] == "GET"
            assert headers["x-request-id"].startswith("req_")
        else:
            found, headers, message = the_answer(client.rest())
            assert headers.get("upgrade") == ("websocket" if status == 426 else None)
            assert headers.get("sec-websocket-version") == ("13" if status == 426 else None)

    assert found == status
    assert named in message


@pytest.mark.parametrize("upgrade", [H2C, "connection: upgrade\r\nupgrade: websocket, h2c\r\n"])
def test_a_body_in_a_later_write_belongs_to_its_request(gateway: Gateway, upgrade: str) -> None:
    smuggled = f"GET /v1/models HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {gateway.key}\r\n\r\n"
    with RawClient(gateway) as client:
        client.head(*upgrade.splitlines(), f"content-length: {len(smuggled)}", key=gateway.key)
        gateway.get("/models")  # by its answer the server has read the head
        client.send(smuggled.encode())
        status, _, _ = client.answer()
        assert status == 400
        client.received = b""
        client.chat("say: the next one")
        status, _, body = client.answer()
        assert status == 200
        assert json.loads(body)["choices"][0]["message"]["content"] == "the next one"
        assert client.received.count(b"HTTP/1.1 ") == 1


def test_http_1_0_gets_a_stream_without_chunks(gateway: Gateway) -> None:
    body = chat_body("say: old", stream=True)
    with RawClient(gateway) as client:
        client.send(
            f"POST /v1/chat/completions HTTP/1.0\r\nhost: 127.0.0.1\r\nexpect: 100-continue\r\n"
            f"authorization: Bearer {gateway.key}\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode()
        )
        head, _, content = client.rest().partition(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 200 ")
    assert b"transfer-encoding" not in head.lower()
    assert re.findall(rb"\r\nconnection: (.*?)(?:\r|$)", head) == [b"close"]
    assert content.startswith(b"data: {")
    assert content.endswith(b"\n\ndata: [DONE]\n\n")


def test_a_client_of_http_1_0_may_leave_its_stream(gateway: Gateway) -> None:
    log = gateway.command.log
    before = log.stat().st_size
    body = chat_body("[[sim tokens=200 pace=100]]", stream=True)
    for _ in range(10):
        with RawClient(gateway) as client:
            client.send(
                f"POST /v1/chat/completions HTTP/1.0\r\nhost: 127.0.0.1\r\nauthorization: Bearer "
                f"{gateway.key}\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode()
            )
            client.read_until(5, b"data: ")
            client.disconnect(Disconnect.RST)

    assert {row.outcome for row in gateway.rows_when(10)} == {"client_disconnected"}
    assert b"Traceback" not in log.read_bytes()[before:]


def test_a_stream_that_ends_its_connection_says_so_once(gateway: Gateway) -> None:
    body = chat_body("hi", stream=True)
    with RawClient(gateway) as client:
        client.head("connection: close", f"content-length: {len(body)}", key=gateway.key)
        client.send(body.encode())
        head, _, content = client.rest().partition(b"\r\n\r\n")

    assert re.findall(rb"\r\nconnection: (.*?)(?:\r|$)", head) == [b"close"]
    assert content.endswith(b"0\r\n\r\n")


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/nothing"])
def test_a_connection_that_ends_lets_the_body_of_its_request_arrive(
    gateway: Gateway, path: str, version: str
) -> None:
    """A reset, which answers bytes behind the end, makes many clients drop the answer."""
    with RawClient(gateway) as client:
        client.send(
            f"POST {path} HTTP/{version}\r\nhost: 127.0.0.1\r\nconnection: close\r\n"
            "content-length: 300\r\n\r\n".encode()
        )
        client.read_until(1, b"}}")
        for _ in range(3):
            client.send(b"x" * 100)
        received = client.rest()

    assert received.startswith(b"HTTP/1.1 401 " if "chat" in path else b"HTTP/1.1 404 ")
    assert received.count(b"HTTP/1.1 ") == 1


SILENT = {
    "nothing": b"",
    "half a head": b"GET /v1/models HTTP/1.1\r\nhost:",
    "empty lines": b"\r\n\r\n",
    "half a handshake": handshake()[:-2],
    "a handshake whose body is missing": handshake(content_length="5"),
    "an upgrade whose body is missing": handshake("/v1/models", "POST", content_length="5"),
    "a chat whose body is missing": b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\n"
    b"authorization: Bearer KEY\r\ncontent-length: 5\r\n\r\n",
    "chunks that do not end": b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\n"
    b"authorization: Bearer KEY\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n",
    "an h2c upgrade whose body is missing": (
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\n{H2C}"
        "authorization: Bearer KEY\r\ncontent-length: 5\r\n\r\n"
    ).encode(),
    "a form whose body is missing": b"POST /console/login HTTP/1.1\r\nhost: 127.0.0.1\r\n"
    b"content-length: 5\r\n\r\n",
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TLS": b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03",
}


def test_nobody_is_left_silent(gateway_with: Callable[..., Gateway]) -> None:
    """What sent something unanswered is answered or closed soon after ``SVC_HEAD_SECONDS``."""
    gateway = gateway_with(**IMPATIENT)
    speech = gateway.mint(Scope.SPEECH)
    left = {}
    with ExitStack() as stack:
        clients = {}
        for name, sent in SILENT.items():
            for port in (gateway.port, gateway.speech_port):
                client = stack.enter_context(RawClient(gateway, port))
                key = gateway.key if port == gateway.port else speech
                client.set_timeout(60)
                client.send(sent.replace(b"KEY", key.encode()))
                clients[name, port] = client
        for where, client in clients.items():
            try:
                client.read()
            except TimeoutError:
                left[where] = client.received
    assert left == {}
