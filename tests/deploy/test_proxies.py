"""Clients reach two gateways through each proxy as ``deploy/`` ships it, and see what they see without."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from websockets.asyncio.client import connect

from accounts.models import User
from tests.deploy.conftest import Front
from tests.support.live import Gateway, events, run
from tests.support.pages.console import PASSWORD
from tests.support.pages.signed_in import token_of
from tests.support.servers.shipped import SHIPPED, SPEECH_HOST, Certificate, Shipped
from tests.support.speech.caller import SENTENCE, SpeechAccount

MODEL = "acme/demo-8b"


@pytest.mark.parametrize("shipped", SHIPPED, ids=str)
def test_the_program_takes_the_file(shipped: Shipped, made: Certificate) -> None:
    configuration = shipped.configuration(made.directory, (8001, 8002), 8443)

    done = run(*shipped.arguments(shipped.check, configuration))

    assert done.returncode == 0, done.stdout + done.stderr
    assert "[warn]" not in done.stderr
    assert "[WARNING]" not in done.stderr


def chat(text: str, **fields: object) -> dict[str, object]:
    return {"model": MODEL, "messages": [{"role": "user", "content": text}], **fields}


def test_a_chat_and_a_stream_pass(front: Front, hidden: Gateway) -> None:
    with front.client(headers=hidden.headers) as client:
        whole = client.post("/v1/chat/completions", json=chat("say: through"))
        body = chat("[[sim tokens=30 pace=20]]", stream=True)
        with client.stream("POST", "/v1/chat/completions", json=body) as stream:
            pieces = list(stream.iter_text())

    assert whole.json()["choices"][0]["message"]["content"] == "through"
    assert events("".join(pieces))[-1] == "[DONE]"
    assert len(pieces) > 10, "the proxy kept frames back"
    for request in (whole.headers["x-request-id"], stream.headers["x-request-id"]):
        assert hidden.row(request).http_status == 200


def test_a_body_as_large_as_the_largest_model_takes_passes(front: Front, hidden: Gateway) -> None:
    with front.client(headers=hidden.headers) as client:
        answer = client.post("/v1/chat/completions", json=chat("x" * 1_000_000))
        too_large = client.post("/v1/chat/completions", json=chat("x" * 1_100_000))

    assert answer.status_code in (200, 400), answer.text
    assert "x-request-id" in answer.headers
    assert too_large.status_code == 413
    assert too_large.json()["error"]["type"] == "invalid_request_error"


def test_a_head_of_30_kib_passes(front: Front, hidden: Gateway) -> None:
    with front.client(headers={**hidden.headers, "x-long": "a" * 30_000}) as client:
        assert client.get("/v1/models").status_code == 200


def test_speech_passes_over_http_and_websocket(front: Front, speaker: SpeechAccount) -> None:
    body = {"model": "tts-1", "voice": "ava", "input": SENTENCE, "response_format": "wav"}
    with front.client(headers=speaker.headers) as client:
        spoken = client.post(f"{front.speech_url}/v1/audio/speech", json=body)
    said = asyncio.run(answer_to_cancel(front, speaker))

    assert spoken.status_code == 200, spoken.text
    assert spoken.content.startswith(b"RIFF")
    assert "type" in said


async def answer_to_cancel(front: Front, speaker: SpeechAccount) -> dict[str, Any]:
    """The first message of a session; on an event loop, because the client with threads reads and
    writes one TLS connection at once, which OpenSSL
    does not allow: nginx once read a broken record."""
    address = front.speech_url.replace("https", "wss") + "/v1/audio/speech/stream"
    async with connect(
        address,
        ssl=front.certificate.context,
        additional_headers=speaker.headers,
        server_hostname=SPEECH_HOST,
        proxy=None,
    ) as socket:
        await socket.send(json.dumps({"type": "cancel"}))
        found: dict[str, Any] = json.loads(await asyncio.wait_for(socket.recv(), 30))
        return found


def test_people_log_in_at_a_port_that_is_not_443(front: Front, hidden: Gateway) -> None:
    person = User.objects.create_user(f"ada@{front.shipped}.example", PASSWORD)
    with front.client() as browser:
        token = token_of(browser.get("/console/login").text)
        answer = browser.post(
            "/console/login",
            data={"username": person.email, "password": PASSWORD, "csrfmiddlewaretoken": token},
            headers={"origin": front.url, "referer": f"{front.url}/console/login"},
        )

    assert answer.status_code == 302, answer.text
    assert "__Host-sessionid" in answer.headers["set-cookie"]


def test_no_upgrade_but_of_a_websocket_passes(front: Front, hidden: Gateway) -> None:
    with front.client(headers=hidden.headers) as client:
        answer = client.post(
            "/v1/chat/completions",
            json=chat("say: no tunnel"),
            headers={"upgrade": "h2c", "connection": "upgrade"},
        )

    assert answer.status_code in (200, 403), answer.text
