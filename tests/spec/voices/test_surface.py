"""The speech surface around its endpoints: keys, methods, paths, hosts and its health."""

from __future__ import annotations

import json
import socket

import pytest

from accounts.keys.keys import mint, revoke
from accounts.models import Scope
from tests.spec.voices.test_refused_clones import answered, opened
from tests.support.live import Gateway
from tests.support.speech.caller import SpeechAccount
from tests.support.speech.errors import kind_of
from tests.support.until import until


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("GET", "/v1/models"), ("POST", "/v1/voices"), ("DELETE", "/v1/voices/voice_x")),
        *(("POST", "/v1/audio/speech"), ("GET", "/v1/models/ava")),
        *(("GET", "/v1/audio/voices"), ("GET", "/v1/audio/models")),
    ],
)
def test_every_problem_of_the_key_is_one_401(
    gateway: Gateway, client: SpeechAccount, method: str, path: str
) -> None:
    inference = mint(client.organization, Scope.INFERENCE, "test").secret
    gone = mint(client.organization, Scope.SPEECH, "gone")
    revoke(gone.api_key)
    gateway.sees_changes()
    headers: list[dict[str, str]] = [
        {},
        {"authorization": "Bearer"},
        {"authorization": client.key},
        {"authorization": "Bearer sk_invented"},
        {"authorization": f"Bearer {client.key}x"},
        {"authorization": f"Bearer {inference}"},
        {"authorization": f"Bearer {gone.secret}"},
    ]

    answers = [client.request(method, path, headers=each) for each in headers]

    assert [kind_of(answer) for answer in answers] == [(401, "auth_error")] * len(headers)
    assert {answer.headers["www-authenticate"] for answer in answers} == {"Bearer"}
    assert len({answer.text for answer in answers}) == 1


@pytest.mark.parametrize("path", ["/v1/voices", "/v1/audio/speech"])
def test_the_key_is_checked_before_the_body(client: SpeechAccount, path: str) -> None:
    with opened(client, "content-length: 15000000", path=path) as connection:
        assert answered(connection).startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/voices", "POST"),
        ("PUT", "/v1/voices/voice_x", "DELETE"),
        ("GET", "/v1/voices/voice_x", "DELETE"),
        ("GET", "/v1/audio/speech", "POST"),
        ("OPTIONS", "/v1/audio/speech", "POST"),
        ("POST", "/v1/models", "GET, HEAD"),
        ("POST", "/v1/models/ava", "GET, HEAD"),
        ("POST", "/v1/audio/voices", "GET, HEAD"),
        ("POST", "/v1/audio/models", "GET, HEAD"),
        ("POST", "/health", "GET, HEAD"),
    ],
)
def test_a_wrong_method_is_405_with_allow(
    client: SpeechAccount, method: str, path: str, allowed: str
) -> None:
    answer = client.request(method, path)

    assert kind_of(answer) == (405, "invalid_request_error")
    assert answer.headers["allow"] == allowed


@pytest.mark.parametrize("path", ["/v1/voices", "/nothing"])
def test_a_foreign_host_is_400_in_this_surfaces_shape(client: SpeechAccount, path: str) -> None:
    answer = client.get(path, headers={**client.headers, "host": "evil.example"})

    assert kind_of(answer) == (400, "invalid_request_error")


def test_invalid_http_is_400_in_this_surfaces_shape(client: SpeechAccount) -> None:
    host, port = client.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(b"GET / HTTP/9.9\r\n\r\n\r\n")
        answer = connection.recv(65536)

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert set(json.loads(answer.partition(b"\r\n\r\n")[2])["error"]) == {"message", "type"}


def test_health_needs_no_key_and_has_the_uptime(client: SpeechAccount) -> None:
    first = client.get("/health", headers={})

    assert first.status_code == 200
    assert set(first.json()) == {"ok", "uptime_s"}
    assert first.json()["ok"] is True
    assert first.json()["uptime_s"] > 0
    assert first.headers["x-request-id"].startswith("req_")
    assert until(lambda: client.get("/health").json()["uptime_s"] > first.json()["uptime_s"])
