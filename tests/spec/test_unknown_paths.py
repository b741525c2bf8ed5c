"""The 404 of an unknown path tells a client what to set."""

from __future__ import annotations

from collections.abc import Callable

import httpx2
import pytest

from tests.support.live import NO_TLS, Gateway


def message(port: int, path: str) -> str:
    """Return the message of the 404 at ``path``, in the surface's form."""
    answer = httpx2.post(
        f"http://127.0.0.1:{port}{path}", json={"model": "x"}, verify=NO_TLS, timeout=60
    )
    assert answer.status_code == 404, answer.text
    error = answer.json()["error"]
    assert error["type"] == "not_found_error"
    said: str = error["message"]
    return said


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/v1/responses", "/v1/responses does not exist here. Set the client to chat completions."),
        ("/v1/completions", "/v1/completions does not exist here. Set the client to chat"),
        ("/v1/embeddings", "/v1/embeddings does not exist here. Use another service"),
        ("/chat/completions", "The base URL of this service ends in /v1; set it in the client."),
        ("/v1/v1/chat/completions", "The base URL of this service ends in /v1, once and"),
        ("/v1/chat/completions/chat/completions", "The base URL of this service ends in /v1, once"),
        ("/v1/chat/completions//", "The path is /v1/chat/completions, without a slash at its end."),
        ("/v1/audio/speech", "/v1/audio/speech is at the other address of this service: the one"),
    ],
)
def test_the_inference_surface_says_what_to_set(gateway: Gateway, path: str, said: str) -> None:
    told = message(gateway.port, path)

    assert told.startswith(said)
    assert told.endswith(
        "This address has POST /v1/chat/completions, GET /v1/models and GET /v1/usage."
    )
    if "audio" in path:
        assert str(gateway.speech_port) in told


def test_the_404_has_the_contracts_form(gateway: Gateway) -> None:
    error = httpx2.get(f"{gateway.base_url}/responses", verify=NO_TLS, timeout=60).json()["error"]

    assert set(error) == {"message", "type", "param", "code"}
    assert (error["param"], error["code"]) == (None, None)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/v1/chat/completions", "/v1/chat/completions is at the other address of this service"),
        ("/v1/usage", "/v1/usage is at the other address of this service"),
        ("/v1/responses", "/v1/responses does not exist here."),
        ("/audio/speech", "The base URL of this service ends in /v1"),
        ("/console/", "There is nothing at this address."),
    ],
)
def test_the_speech_surface_says_what_to_set(gateway: Gateway, path: str, said: str) -> None:
    told = message(gateway.speech_port, path)

    assert told.startswith(said)
    assert told.endswith(
        "This address has POST /v1/audio/speech, GET /v1/models and POST /v1/voices."
    )


def test_the_message_does_not_repeat_the_callers_path(gateway: Gateway) -> None:
    assert "s3cr3t" not in message(gateway.port, "/v1/s3cr3t/chat/completions")


@pytest.mark.long
def test_hosts_that_are_not_served_are_named_in_the_log_once_and_cannot_fill_it(
    start_gateway: Callable[..., Gateway],
) -> None:
    gateway = start_gateway()

    def named(host: str) -> list[str]:
        return [line for line in gateway.command.log.read_text().splitlines() if host in line]

    paths = ["/v1/chat/completions", "/v1/models", "/console/", "/nothing"]
    with httpx2.Client(base_url=gateway.url, verify=NO_TLS, timeout=60) as client:
        for number, path in enumerate(paths * 3):
            host = f"ai{number % len(paths)}.example.com"
            answer = client.get(path, headers={"host": host})
            assert answer.status_code == 400
            assert "ALLOWED_HOSTS" in answer.json()["error"]["message"]
        for number in range(60):
            client.get("/v1/models", headers={"host": f"{number}.scanner.example"})

    for number in range(len(paths)):
        (line,) = named(f"ai{number}.example.com")
        assert "ALLOWED_HOSTS" in line
    assert len(named("scanner.example")) == 20 - len(paths)


@pytest.mark.parametrize("coding", ["gzip", "br", "deflate, gzip"])
def test_a_compressed_body_is_refused_with_a_message(gateway: Gateway, coding: str) -> None:
    answer = gateway.post(b"\x1f\x8b\x08", headers={"content-encoding": coding})

    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["type"], error["code"], error["param"]) == ("invalid_request_error", None, None)
    assert "Content-Encoding" in error["message"]
    assert gateway.chat("hi").status_code == 200


def test_a_body_with_identity_encoding_is_read(gateway: Gateway) -> None:
    body = {"model": "acme/demo-8b", "messages": [{"role": "user", "content": "hi"}]}

    assert gateway.post(body, headers={"content-encoding": "identity"}).status_code == 200
