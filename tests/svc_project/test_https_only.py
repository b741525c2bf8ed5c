"""Behind a proxy that ends TLS, the API refuses requests that came over plain http."""

from __future__ import annotations

import json
from collections.abc import Callable

import httpx2

from accounts.keys.keys import mint
from accounts.models import Scope
from tests.support.clients.raw_client import RawClient
from tests.support.live import NO_TLS, Gateway

CLEAR = {"x-forwarded-proto": "http"}


def asked(gateway: Gateway, method: str, path: str, key: str, proto: str) -> httpx2.Response:
    on_speech = path.startswith(("/v1/audio", "/v1/voices"))
    return httpx2.request(
        method,
        f"http://127.0.0.1:{gateway.speech_port if on_speech else gateway.port}{path}",
        headers={"authorization": f"Bearer {key}", "x-forwarded-proto": proto},
        content=b"{}" if method == "POST" else None,
        timeout=60,
        verify=NO_TLS,
    )


def test_nothing_of_the_api_is_answered_or_redirected_over_plain_http(
    gateway_with: Callable[..., Gateway],
) -> None:
    gateway = gateway_with(SVC_HTTPS_ONLY="true")
    speech = mint(gateway.organization, Scope.SPEECH, "test").secret
    calls = [
        ("POST", "/v1/chat/completions", gateway.key),
        ("GET", "/v1/models", gateway.key),
        ("GET", "/manage/v1/organizations", gateway.key),
        ("POST", "/v1/audio/speech", speech),
        ("POST", "/v1/voices", speech),
        ("GET", "/v1/audio/voices", speech),
    ]
    for method, path, key in calls:
        for proto in ("http", "http, https", "ftp"):
            refused = asked(gateway, method, path, key, proto)
            assert refused.status_code == 400, path
            assert "https" in refused.json()["error"]["message"]
            assert "location" not in refused.headers
        by_tls = asked(gateway, method, path, key, "https")
        assert "https" not in by_tls.text, path

    chat = {"model": gateway.models["running"], "messages": [{"role": "user", "content": "say: a"}]}
    assert gateway.post(chat, headers=CLEAR).status_code == 400
    assert gateway.post(chat, headers={"x-forwarded-proto": "https"}).status_code == 200
    assert gateway.post(chat).status_code == 200
    assert len(gateway.rows()) == 2

    page = httpx2.get(f"{gateway.url}/console/login", headers=CLEAR, verify=NO_TLS)
    assert page.status_code == 301
    assert page.headers["location"].startswith("https://")
    assert httpx2.get(f"{gateway.url}/livez", headers=CLEAR, verify=NO_TLS).status_code == 200

    for proto, status in (("http", 400), ("https", 101)):
        with RawClient(gateway, gateway.speech_port) as client:
            client.send(
                (
                    "GET /v1/audio/speech/stream HTTP/1.1\r\nhost: 127.0.0.1\r\n"
                    "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n"
                    f"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nx-forwarded-proto: {proto}\r\n"
                    f"authorization: Bearer {speech}\r\n\r\n"
                ).encode()
            )
            client.read_until(1, b"\r\n\r\n")
            assert client.received.startswith(f"HTTP/1.1 {status}".encode()), client.received
            if status == 400:
                body = client.rest().partition(b"\r\n\r\n")[2]
                assert (
                    "https"
                    in json.loads(body[body.index(b"{") : body.rindex(b"}") + 1])["error"][
                        "message"
                    ]
                )
