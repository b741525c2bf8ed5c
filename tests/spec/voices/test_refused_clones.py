"""Bodies of ``POST /v1/voices`` that are refused, and the largest one that is not."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from typing import Any

import pytest

from tests.support.builders import clips
from tests.support.speech.caller import CLIP, SpeechAccount
from tests.support.speech.errors import kind_of


def _without(*names: str, **fields: Any) -> dict[str, Any]:
    whole = {"name": "Anna", "audio_b64": CLIP, "consent": True, **fields}
    return {name: value for name, value in whole.items() if name not in names}


PATH = "/v1/voices"
# The reasons of a clip are in tests/speech/audio/test_wav.py.
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no name": (_without("name"), "'name' is required"),
    "no audio": (_without("audio_b64"), "'audio_b64' is required"),
    "no consent": (_without("consent"), "'consent' must be true"),
    "consent false": (_without(consent=False), "'consent' must be true"),
    "consent 1": (_without(consent=1), "'consent' must be true"),
    "consent as text": (_without(consent="true"), "'consent' must be true"),
    "null name": (_without(name=None), "'name' is required"),
    "number as name": (_without(name=7), "'name' must be a string, not a number"),
    "object as audio": (_without(audio_b64={}), "'audio_b64' must be a string, not an object"),
    "41 characters": (_without(name="x" * 41), "'name' cannot be used: it has 41 characters"),
    "12.1 seconds": (
        _without(audio_b64=clips.base64_of(clips.wav(clips.voice(12.1)))),
        "the clip is 12.100 seconds long",
    ),
}


@pytest.mark.parametrize(("body", "told"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_body_is_refused_with_the_reason(
    client: SpeechAccount, body: dict[str, Any], told: str
) -> None:
    answer = client.request("POST", PATH, json=body)

    assert kind_of(answer) == (400, "invalid_request_error")
    assert told in answer.json()["error"]["message"]
    assert client.own() == []


@pytest.mark.parametrize(
    "body",
    [
        b'{"name": "\xc3("}',
        b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b"name=Anna&consent=true",
    ],
    ids=lambda body: repr(body[:16]),
)
def test_a_body_that_is_not_a_json_object_is_refused(client: SpeechAccount, body: bytes) -> None:
    assert kind_of(client.request("POST", PATH, content=body)) == (400, "invalid_request_error")


def opened(client: SpeechAccount, *headers: str, path: str = PATH) -> socket.socket:
    """Open a connection and send the head of a POST, of a creation by default."""
    host, port = client.url.removeprefix("http://").split(":")
    lines = [f"POST {path} HTTP/1.1", "host: 127.0.0.1", *headers]
    connection = socket.create_connection((host, int(port)), timeout=60)
    connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
    return connection


def answered(connection: socket.socket) -> bytes:
    """Read up to the end of an error's body."""
    answer = b""
    while not answer.endswith(b"}}") and (read := connection.recv(65536)):
        answer += read
    return answer


def test_a_body_with_too_large_a_length_is_refused_unread(client: SpeechAccount) -> None:
    key = f"authorization: Bearer {client.key}"
    with opened(client, key, "content-length: 16000001") as connection:
        answer = answered(connection)

    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b'"type":"invalid_request_error"' in answer


def test_a_body_that_grows_too_large_is_refused_while_it_is_read(client: SpeechAccount) -> None:
    """A chunked body without end gets its answer all the same."""
    piece = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    most = 60_000_000
    sent = 0

    def send() -> None:
        nonlocal sent
        with contextlib.suppress(OSError):
            while sent < most:
                connection.sendall(piece)
                sent += len(piece)

    key = f"authorization: Bearer {client.key}"
    with opened(client, key, "transfer-encoding: chunked") as connection:
        sender = threading.Thread(target=send)
        sender.start()
        answer = answered(connection)
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        sender.join()

    assert answer.startswith(b"HTTP/1.1 413 ")
    assert sent < most


def test_exactly_sixteen_million_bytes_are_accepted(client: SpeechAccount) -> None:
    frame = json.dumps(_without(padding="")).encode()
    body = frame.replace(
        b'"padding": ""', b'"padding": "' + b"x" * (16_000_000 - len(frame)) + b'"'
    )
    assert len(body) == 16_000_000

    assert client.request("POST", PATH, content=body).status_code == 201
    assert kind_of(client.request("POST", PATH, content=body + b" ")) == (
        413,
        "invalid_request_error",
    )
